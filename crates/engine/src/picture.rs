//! Pictures: cutting out a part, and PNG.

use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::geometry::Rect;
use agent_desktop_core::platform::Image;

/// Pixels that a picture may have.
pub(crate) const MAX_PIXELS: u64 = 100_000_000;
/// Bytes that a PNG may have.
pub(crate) const MAX_PNG: usize = 64 * 1024 * 1024;

/// Cuts `part`, logical pixels of the desktop, out of a picture.
///
/// What lies outside of the picture is cut off. Part pixels at the edges are kept.
///
/// # Errors
/// `INVALID_ARGS` when nothing of it is in the picture.
pub fn crop(image: &Image, part: Rect) -> Result<Image> {
    let outside = || Error::invalid("the part asked for lies outside of the picture");
    let whole = image.area;
    let shown = whole.intersection(&part).ok_or_else(outside)?;
    let (across, down) = (f64::from(image.width) / whole.width, f64::from(image.height) / whole.height);
    // A hair's breadth of tolerance keeps whole coordinates from growing by a pixel through rounding.
    let edge = |position: f64, limit: u32, up: bool| {
        let position = if up { (position - 1e-6).ceil() } else { (position + 1e-6).floor() };
        position.clamp(0.0, f64::from(limit)) as u32
    };
    let left = edge((shown.x - whole.x) * across, image.width, false);
    let top = edge((shown.y - whole.y) * down, image.height, false);
    let right = edge((shown.x + shown.width - whole.x) * across, image.width, true);
    let bottom = edge((shown.y + shown.height - whole.y) * down, image.height, true);
    if right <= left || bottom <= top {
        return Err(outside());
    }
    let (width, height) = (right - left, bottom - top);
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for row in top..bottom {
        let start = (row as usize * image.width as usize + left as usize) * 3;
        rgb.extend_from_slice(&image.rgb[start..start + width as usize * 3]);
    }
    let area = Rect {
        x: whole.x + f64::from(left) / across,
        y: whole.y + f64::from(top) / down,
        width: f64::from(width) / across,
        height: f64::from(height) / down,
    };
    Ok(Image { area, width, height, rgb })
}

/// The picture as PNG; compressed for speed, not for size.
///
/// # Errors
/// `ACTION_FAILED` when it is too large.
pub fn encode(image: &Image) -> Result<Vec<u8>> {
    let too_large = || {
        Error::new(
            ErrorCode::ActionFailed,
            format!("a picture of {} x {} is too large", image.width, image.height),
        )
        .hint("take a part of it with --region or a single window")
    };
    if u64::from(image.width) * u64::from(image.height) > MAX_PIXELS {
        return Err(too_large());
    }
    let failed = |error: png::EncodingError| {
        Error::internal("the picture cannot be encoded").platform_detail(error.to_string())
    };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, image.width, image.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&image.rgb).map_err(failed)?;
    writer.finish().map_err(failed)?;
    if bytes.len() > MAX_PNG { Err(too_large()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(area: Rect, width: u32, height: u32) -> Image {
        let rgb = (0..width * height).flat_map(|pixel| [pixel as u8, 0, 0]).collect();
        Image { area, width, height, rgb }
    }

    #[test]
    fn crops_at_scale_two_and_keeps_part_pixels() {
        let whole = Rect::from_pixels(100, 100, 4, 2);
        let part = crop(&image(whole, 8, 4), Rect { x: 101.0, y: 100.5, width: 1.2, height: 10.0 }).unwrap();
        assert_eq!((part.width, part.height), (3, 3));
        assert_eq!(part.rgb[0], 8 + 2);
        assert!(crop(&image(whole, 8, 4), Rect::from_pixels(0, 0, 50, 50)).is_err());
    }

    #[test]
    fn encodes_what_can_be_decoded() {
        let picture = image(Rect::default(), 7, 3);
        let bytes = encode(&picture).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut rgb).unwrap();
        assert_eq!(rgb, picture.rgb);
    }
}
