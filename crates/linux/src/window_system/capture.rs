//! Pixels: of a part of the screen, or of one window and nothing else.
//!
//! The promise is that a window's capture never holds another window's pixels. So there are three ways, and an error
//! when none is safe:
//!
//! 1. A compositor runs: every top-level window has a pixmap of its own, which is read as it is.
//! 2. Nothing covers the window and it lies on screen: it is read from the screen. Events tell whether anything
//!    moved over it between the look and the read.
//! 3. Otherwise the window is given a pixmap for a moment (Composite, automatic redirection). The server fills that
//!    with what was *on screen*, foreign pixels included, and asks the application to redraw the rest. Only when Damage
//!    reports that every pixel that was covered has been drawn anew is the pixmap read.
//!
//! Outside a window's shape there are no pixels of its own; those are transparent in the result.

use std::time::{Duration, Instant};

use x11rb::connection::Connection as _;
use x11rb::protocol::composite::{ConnectionExt as _, Redirect};
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::shape::{ConnectionExt as _, SK};
use x11rb::protocol::xproto::{
    ChangeWindowAttributesAux, ConnectionExt as _, EventMask, GetImageReply, ImageFormat, ImageOrder,
    MapState, Window as Xid, WindowClass,
};
use x11rb::protocol::{ErrorKind, Event};

use super::connection::{Failure, Outcome, X11, present};
use super::windows::{Place, outer_area};
use super::{Rectangle, Result, WindowId, WindowSystemError};

/// Largest image, in pixels; the contract's limit for screenshots.
const MAXIMUM_PIXELS: u64 = 100_000_000;

/// How long an application gets to redraw what was covered. GTK and Qt take 20 to 60 ms, Chromium up to 300.
const REDRAW_LIMIT: Duration = Duration::from_millis(1500);

/// Drawing is taken to be over when nothing was drawn for so long: two frames at 60 Hz and some scheduling.
const REDRAW_QUIET: Duration = Duration::from_millis(50);

/// How long to wait for that at most: a spinner or a video never rests.
const REDRAW_SETTLE: Duration = Duration::from_millis(200);

/// How often a capture begins again when windows move meanwhile.
const ATTEMPTS: usize = 5;

/// An image: 8 bits each of red, green, blue and alpha (not premultiplied), rows from the top, no padding.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Image({}x{})", self.width, self.height)
    }
}

impl Image {
    /// An image from its pixels; `None` if their number does not fit the size or the size is zero.
    pub fn new(width: u32, height: u32, pixels: Vec<u8>) -> Option<Self> {
        let expected = u64::from(width) * u64::from(height) * 4;
        (expected > 0 && pixels.len() as u64 == expected).then_some(Self { width, height, pixels })
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Four bytes for each pixel: red, green, blue, alpha.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// One pixel, if it is inside.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 4]> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let start = (y as usize * self.width as usize + x as usize) * 4;
        self.pixels.get(start..start + 4)?.try_into().ok()
    }
}

/// An image and the part of the desktop it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The pixels.
    pub image: Image,
    /// What they show. Smaller than asked for where the screen ended.
    pub area: Rectangle,
}

impl X11 {
    /// What is on screen in `area`, whoever drew it; cut at the screen's edge.
    ///
    /// Two round trips and four bytes for each pixel.
    ///
    /// # Errors
    /// `OutsideScreen` when nothing of it is on screen, `InvalidArgument` above 100 million pixels, `Timeout`,
    /// `Lost`.
    pub fn capture_region(&self, area: Rectangle, deadline: Instant) -> Result<Capture> {
        self.begin(deadline);
        let doing = "capturing a part of the screen";
        let screen = self.screen_now().map_err(|failure| failure.during(doing))?;
        let Some(part) = area.intersection(&screen) else {
            return Err(WindowSystemError::OutsideScreen { area, screen });
        };
        check_size(part)?;
        let attempt = || {
            let reply = self.get_image(self.root, part)?.reply()?;
            let root = &self.wire.setup().roots[self.screen_number];
            self.convert(&reply, part, root.root_visual, false)
        };
        let image = attempt().map_err(|failure| failure.during(doing))?;
        Ok(Capture { image, area: part })
    }

    /// A window's own pixels, with the window manager's decoration and without a client-side shadow.
    ///
    /// Five to eight round trips; when the window is covered also the time its application takes to redraw (mostly
    /// 20 to 300 ms). The window is neither raised nor focused.
    ///
    /// # Errors
    /// `NotViewable` for minimised windows, `Obscured` when its own pixels cannot be had, `Gone`, `Timeout`, `Lost`.
    pub fn capture_window(&self, window: WindowId, deadline: Instant) -> Result<Capture> {
        self.begin(deadline);
        let doing = "capturing a window";
        let mut covers = Vec::new();
        let watch = RootWatch::start(self).map_err(|failure| failure.on(window, doing))?;
        for _ in 0..ATTEMPTS {
            let outcome = self.capture_once(window.0, &watch).map_err(|failure| failure.on(window, doing))?;
            match outcome {
                Attempt::Done(capture) => return Ok(capture),
                Attempt::NotViewable => return Err(WindowSystemError::NotViewable { window }),
                Attempt::TooLarge(area) => return Err(too_large(area)),
                Attempt::Obscured { by, reason } => {
                    return Err(WindowSystemError::Obscured { window, by, reason: reason.to_owned() });
                }
                Attempt::Moved(by) => covers = by,
            }
        }
        let reason = "windows kept moving during the capture".to_owned();
        Err(WindowSystemError::Obscured { window, by: covers, reason })
    }

    fn capture_once(&self, window: Xid, watch: &RootWatch<'_>) -> Outcome<Attempt> {
        watch.forget()?;
        let place = self.place_now(window)?;
        if !place.is_viewable {
            return Ok(Attempt::NotViewable);
        }
        if check_size(place.frame).is_err() {
            return Ok(Attempt::TooLarge(place.frame));
        }
        let shape = self.shape_of(&place)?;
        if self.extensions.composite && self.has_compositor()? {
            // Full-screen windows may be without a pixmap; those are on top, so the second way serves them.
            if let Some(image) = self.read_pixmap(&place, true)? {
                return Ok(finish(image, place.frame, &shape));
            }
        }
        let screen = self.screen_now()?;
        let covers = self.covers(&place)?;
        let mut hidden: Vec<Rectangle> = place.frame.subtract(&screen);
        hidden.extend(covers.iter().filter_map(|(_, area)| area.intersection(&place.frame)));
        let by: Vec<WindowId> = covers.iter().map(|(cover, _)| WindowId(*cover)).collect();
        if hidden.is_empty() {
            let part = relative(place.frame, &place);
            let reply = self.get_image(place.top, part)?.reply();
            if watch.has_moved(None)? {
                return Ok(Attempt::Moved(by));
            }
            let image = self.convert(&reply?, place.frame, place.visual, false)?;
            return Ok(finish(image, place.frame, &shape));
        }
        if !(self.extensions.composite && self.extensions.damage) {
            return self.capture_visible_part(&place, screen, by, watch, &shape);
        }
        self.capture_redirected(&place, &hidden, by, watch, &shape)
    }

    /// Without Composite: what lies on screen, if nothing covers that.
    fn capture_visible_part(
        &self,
        place: &Place,
        screen: Rectangle,
        by: Vec<WindowId>,
        watch: &RootWatch<'_>,
        shape: &[Rectangle],
    ) -> Outcome<Attempt> {
        let reason = "the server lacks the Composite or Damage extension";
        let Some(part) = place.frame.intersection(&screen).filter(|_| by.is_empty()) else {
            return Ok(Attempt::Obscured { by, reason });
        };
        let reply = self.get_image(place.top, relative(part, place))?.reply();
        if watch.has_moved(None)? {
            return Ok(Attempt::Moved(by));
        }
        let image = self.convert(&reply?, part, place.visual, false)?;
        Ok(finish(image, part, shape))
    }

    /// The third way: a pixmap for a moment, read once everything that was hidden has been drawn.
    fn capture_redirected(
        &self,
        place: &Place,
        hidden: &[Rectangle],
        by: Vec<WindowId>,
        watch: &RootWatch<'_>,
        shape: &[Rectangle],
    ) -> Outcome<Attempt> {
        // Damage reports in the coordinates of the window inside its border.
        let (left, top) = (place.outer.x + place.border as i32, place.outer.y + place.border as i32);
        let mut missing: Vec<Rectangle> = hidden
            .iter()
            .map(|part| Rectangle::new(part.x - left, part.y - top, part.width, part.height))
            .collect();
        let redirection = Redirection::start(self, place.top)?;
        // Whatever moved before this point may have left its pixels in places that we do not wait for.
        self.sync()?;
        if watch.has_moved(Some((&redirection, &mut missing)))? {
            return Ok(Attempt::Moved(by));
        }
        let mut limit = Instant::now() + REDRAW_LIMIT;
        let mut is_complete = false;
        let mut quiet_from = Instant::now();
        loop {
            if missing.is_empty() && !is_complete {
                is_complete = true;
                limit = Instant::now() + REDRAW_SETTLE;
            }
            let until = if is_complete { limit.min(quiet_from + REDRAW_QUIET) } else { limit };
            match self.wait_event(until)? {
                // A window that never rests would keep the queue full, so the clock is looked at as well.
                Some(_) if is_complete && Instant::now() >= until => break,
                Some(Event::DamageNotify(event)) if event.damage == redirection.damage => {
                    uncover(&mut missing, event.area);
                    quiet_from = Instant::now();
                }
                Some(_) => {}
                None if Instant::now() >= self.deadline() => return Err(Failure::Timeout),
                None if is_complete => break,
                None => {
                    let reason = "its application did not redraw the hidden part in time";
                    return Ok(Attempt::Obscured { by, reason });
                }
            }
        }
        match self.read_pixmap(place, false)? {
            Some(image) => Ok(finish(image, place.frame, shape)),
            None => Ok(Attempt::Moved(by)),
        }
    }

    /// Reads the pixmap the window has for itself. `None`: it has none, or its size has changed.
    fn read_pixmap(&self, place: &Place, with_alpha: bool) -> Outcome<Option<Image>> {
        let pixmap = self.wire.generate_id()?;
        let named = self.wire.composite_name_window_pixmap(place.top, pixmap)?;
        let geometry = self.wire.get_geometry(pixmap)?;
        // A pixmap begins at the window's border, not inside it.
        let part = Rectangle::new(
            place.frame.x - place.outer.x,
            place.frame.y - place.outer.y,
            place.frame.width,
            place.frame.height,
        );
        let image = self.get_image(pixmap, part)?;
        let freed = self.wire.free_pixmap(pixmap)?;
        freed.ignore_error();
        let is_named = match named.check() {
            Ok(()) => true,
            Err(x11rb::errors::ReplyError::X11Error(_)) => false,
            Err(error) => return Err(error.into()),
        };
        let geometry = present(geometry.reply())?;
        let image = present(image.reply())?;
        let (Some(geometry), Some(image), true) = (geometry, image, is_named) else { return Ok(None) };
        if (u32::from(geometry.width), u32::from(geometry.height)) != (place.outer.width, place.outer.height)
        {
            return Ok(None);
        }
        let with_alpha = with_alpha && place.depth == 32;
        self.convert(&image, place.frame, place.visual, with_alpha).map(Some)
    }

    fn has_compositor(&self) -> Outcome<bool> {
        let name = format!("_NET_WM_CM_S{}", self.screen_number);
        let selection = self.wire.intern_atom(true, name.as_bytes())?.reply()?.atom;
        if selection == x11rb::NONE {
            return Ok(false);
        }
        Ok(self.wire.get_selection_owner(selection)?.reply()?.owner != x11rb::NONE)
    }

    /// The windows in front of `place` that share pixels with it, topmost first. Shapes are not looked at: better
    /// to see a cover too many.
    fn covers(&self, place: &Place) -> Outcome<Vec<(Xid, Rectangle)>> {
        let children = self.wire.query_tree(self.root)?.reply()?.children;
        let above =
            children.iter().rev().take_while(|child| **child != place.top).copied().collect::<Vec<_>>();
        let questions = above
            .iter()
            .map(|window| Ok((self.wire.get_window_attributes(*window)?, self.wire.get_geometry(*window)?)))
            .collect::<Outcome<Vec<_>>>()?;
        let mut covers = Vec::new();
        for (window, (attributes, geometry)) in above.into_iter().zip(questions) {
            let (attributes, geometry) = (present(attributes.reply())?, present(geometry.reply())?);
            let (Some(attributes), Some(geometry)) = (attributes, geometry) else { continue };
            let area = outer_area(&geometry);
            if attributes.map_state == MapState::VIEWABLE
                && attributes.class != WindowClass::INPUT_ONLY
                && area.intersection(&place.frame).is_some()
            {
                covers.push((window, area));
            }
        }
        Ok(covers)
    }

    /// The parts of the desktop that the window's shape covers. A plain window's is its whole area.
    fn shape_of(&self, place: &Place) -> Outcome<Vec<Rectangle>> {
        if !self.extensions.shape {
            return Ok(vec![place.outer]);
        }
        let reply = self.wire.shape_get_rectangles(place.top, SK::BOUNDING)?.reply()?;
        let (left, top) = (place.outer.x + place.border as i32, place.outer.y + place.border as i32);
        let parts = reply.rectangles.iter().map(|part| {
            Rectangle::new(
                left + i32::from(part.x),
                top + i32::from(part.y),
                part.width.into(),
                part.height.into(),
            )
        });
        Ok(parts.collect())
    }

    fn get_image(
        &self,
        drawable: u32,
        part: Rectangle,
    ) -> Outcome<x11rb::cookie::Cookie<'_, super::connection::Wire, GetImageReply>> {
        // Sizes passed check_size and positions come from the server, so they fit its 16 bits.
        Ok(self.wire.get_image(
            ImageFormat::Z_PIXMAP,
            drawable,
            part.x as i16,
            part.y as i16,
            part.width as u16,
            part.height as u16,
            u32::MAX,
        )?)
    }

    fn convert(
        &self,
        reply: &GetImageReply,
        area: Rectangle,
        visual: u32,
        with_alpha: bool,
    ) -> Outcome<Image> {
        let setup = self.wire.setup();
        let unknown = |what: String| {
            Failure::Refused(ErrorKind::Match, format!("{what} in an image of depth {}", reply.depth))
        };
        let format = setup
            .pixmap_formats
            .iter()
            .find(|format| format.depth == reply.depth)
            .ok_or_else(|| unknown("no pixmap format".to_owned()))?;
        let masks = setup
            .roots
            .iter()
            .flat_map(|screen| &screen.allowed_depths)
            .flat_map(|depth| &depth.visuals)
            .find(|candidate| candidate.visual_id == visual)
            .ok_or_else(|| unknown(format!("unknown visual 0x{visual:x}")))?;
        let layout = PixelLayout {
            bits_per_pixel: format.bits_per_pixel,
            row_padding: format.scanline_pad,
            is_least_significant_first: setup.image_byte_order == ImageOrder::LSB_FIRST,
            red: masks.red_mask,
            green: masks.green_mask,
            blue: masks.blue_mask,
            with_alpha,
        };
        let pixels = layout
            .decode(&reply.data, area.width as usize, area.height as usize)
            .ok_or_else(|| unknown(format!("unreadable pixels ({layout:?})")))?;
        Image::new(area.width, area.height, pixels).ok_or_else(|| unknown("empty area".to_owned()))
    }
}

enum Attempt {
    Done(Capture),
    NotViewable,
    TooLarge(Rectangle),
    Obscured {
        by: Vec<WindowId>,
        reason: &'static str,
    },
    /// Something moved; begin again.
    Moved(Vec<WindowId>),
}

fn finish(mut image: Image, area: Rectangle, shape: &[Rectangle]) -> Attempt {
    mask(&mut image, area, shape);
    Attempt::Done(Capture { image, area })
}

/// Makes everything outside `shape` transparent.
fn mask(image: &mut Image, area: Rectangle, shape: &[Rectangle]) {
    let mut outside = vec![area];
    for part in shape {
        outside = outside.iter().flat_map(|rest| rest.subtract(part)).collect();
    }
    for hole in outside {
        for y in hole.y..hole.bottom() {
            let start = ((y - area.y) as usize * area.width as usize + (hole.x - area.x) as usize) * 4;
            image.pixels[start..start + hole.width as usize * 4].fill(0);
        }
    }
}

/// A part of the desktop in the coordinates of a top-level window, which begin inside its border.
fn relative(part: Rectangle, place: &Place) -> Rectangle {
    let border = place.border as i32;
    Rectangle::new(part.x - place.outer.x - border, part.y - place.outer.y - border, part.width, part.height)
}

fn uncover(missing: &mut Vec<Rectangle>, drawn: x11rb::protocol::xproto::Rectangle) {
    let drawn = Rectangle::new(drawn.x.into(), drawn.y.into(), drawn.width.into(), drawn.height.into());
    *missing = missing.iter().flat_map(|part| part.subtract(&drawn)).collect();
}

fn too_large(area: Rectangle) -> WindowSystemError {
    WindowSystemError::InvalidArgument {
        what: format!("{}x{} is more than {MAXIMUM_PIXELS} pixels", area.width, area.height),
    }
}

fn check_size(area: Rectangle) -> Result<()> {
    let fits = u16::try_from(area.width).is_ok() && u16::try_from(area.height).is_ok();
    if fits && u64::from(area.width) * u64::from(area.height) <= MAXIMUM_PIXELS {
        return Ok(());
    }
    Err(too_large(area))
}

/// Listens for top-level windows that move, appear or vanish; stops listening when dropped.
struct RootWatch<'connection> {
    server: &'connection X11,
}

impl<'connection> RootWatch<'connection> {
    fn start(server: &'connection X11) -> Outcome<Self> {
        let mask = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        server.wire.change_window_attributes(server.root, &mask)?;
        Ok(Self { server })
    }

    fn forget(&self) -> Outcome<()> {
        while self.server.wire.poll_for_event()?.is_some() {}
        Ok(())
    }

    /// Whether anything moved since [`forget`](Self::forget) and before the last reply read: the server sends events
    /// and replies in one order. Damage seen on the way is taken off what is missing.
    fn has_moved(&self, mut damage: Option<(&Redirection<'_>, &mut Vec<Rectangle>)>) -> Outcome<bool> {
        let mut has_moved = false;
        while let Some(event) = self.server.wire.poll_for_event()? {
            match event {
                Event::MapNotify(_)
                | Event::UnmapNotify(_)
                | Event::ConfigureNotify(_)
                | Event::GravityNotify(_)
                | Event::CirculateNotify(_)
                | Event::ReparentNotify(_)
                | Event::DestroyNotify(_) => has_moved = true,
                Event::DamageNotify(event) => {
                    if let Some((redirection, missing)) = &mut damage
                        && event.damage == redirection.damage
                    {
                        uncover(missing, event.area);
                    }
                }
                _ => {}
            }
        }
        Ok(has_moved)
    }
}

impl Drop for RootWatch<'_> {
    fn drop(&mut self) {
        let mask = ChangeWindowAttributesAux::new().event_mask(EventMask::NO_EVENT);
        if let Ok(cookie) = self.server.wire.change_window_attributes(self.server.root, &mask) {
            cookie.ignore_error();
        }
        let _ = self.server.wire.flush();
    }
}

/// A window drawn into a pixmap of its own, until this is dropped.
struct Redirection<'connection> {
    server: &'connection X11,
    window: Xid,
    damage: u32,
}

impl<'connection> Redirection<'connection> {
    fn start(server: &'connection X11, window: Xid) -> Outcome<Self> {
        let damage = server.wire.generate_id()?;
        let redirection = Self { server, window, damage };
        // Damage first: what is drawn from the moment of redirection on must be seen. Its first report is what was
        // visible before, which nobody waits for.
        server.wire.damage_create(damage, window, ReportLevel::RAW_RECTANGLES)?.ignore_error();
        server.wire.composite_redirect_window(window, Redirect::AUTOMATIC)?.check()?;
        Ok(redirection)
    }
}

impl Drop for Redirection<'_> {
    fn drop(&mut self) {
        self.server.begin_cleanup();
        let wire = &self.server.wire;
        if let Ok(cookie) = wire.composite_unredirect_window(self.window, Redirect::AUTOMATIC) {
            cookie.ignore_error();
        }
        if let Ok(cookie) = wire.damage_destroy(self.damage) {
            cookie.ignore_error();
        }
        let _ = wire.flush();
    }
}

/// How the server packs a pixel.
#[derive(Debug, Clone, Copy)]
struct PixelLayout {
    bits_per_pixel: u8,
    /// Rows begin at multiples of so many bits.
    row_padding: u8,
    is_least_significant_first: bool,
    red: u32,
    green: u32,
    blue: u32,
    /// What no colour uses is alpha, premultiplied.
    with_alpha: bool,
}

impl PixelLayout {
    /// Red, green, blue, alpha. `None`: too few bytes, or a layout nobody uses.
    fn decode(&self, data: &[u8], width: usize, height: usize) -> Option<Vec<u8>> {
        let bytes = match self.bits_per_pixel {
            16 => 2,
            24 => 3,
            32 => 4,
            _ => return None,
        };
        let padding = usize::from(self.row_padding / 8).max(1);
        let stride = (width * bytes).div_ceil(padding) * padding;
        if data.len() < stride * height.saturating_sub(1) + width * bytes {
            return None;
        }
        let mut pixels = vec![0xff; width * height * 4];
        let is_plain = self.is_least_significant_first
            && bytes == 4
            && (self.red, self.green, self.blue) == (0x00ff_0000, 0xff00, 0xff);
        for (row, target) in pixels.chunks_exact_mut(width * 4).enumerate() {
            let source = &data[row * stride..row * stride + width * bytes];
            if is_plain && !self.with_alpha {
                for (to, from) in target.chunks_exact_mut(4).zip(source.chunks_exact(4)) {
                    (to[0], to[1], to[2]) = (from[2], from[1], from[0]);
                }
                continue;
            }
            for (to, from) in target.chunks_exact_mut(4).zip(source.chunks_exact(bytes)) {
                to.copy_from_slice(&self.decode_pixel(from));
            }
        }
        Some(pixels)
    }

    fn decode_pixel(&self, bytes: &[u8]) -> [u8; 4] {
        let join = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
        let value = if self.is_least_significant_first {
            bytes.iter().rev().fold(0, join)
        } else {
            bytes.iter().fold(0, join)
        };
        let colours = [self.red, self.green, self.blue].map(|mask| channel(value, mask));
        if !self.with_alpha {
            return [colours[0], colours[1], colours[2], 0xff];
        }
        let alpha = channel(value, !(self.red | self.green | self.blue));
        let straight = |colour: u8| {
            if alpha == 0 { 0 } else { (u32::from(colour) * 255 / u32::from(alpha)).min(255) as u8 }
        };
        [straight(colours[0]), straight(colours[1]), straight(colours[2]), alpha]
    }
}

/// The bits under `mask`, scaled to 8.
fn channel(value: u32, mask: u32) -> u8 {
    if mask == 0 {
        return 0;
    }
    let maximum = u64::from(mask >> mask.trailing_zeros());
    let part = u64::from((value & mask) >> mask.trailing_zeros());
    ((part * 255 + maximum / 2) / maximum) as u8
}

/// Encodes an image as PNG, quickly rather than tightly; without an alpha channel when all of it is opaque.
///
/// About 15 ms a megapixel on one old core.
pub fn encode_png(image: &Image) -> Vec<u8> {
    let is_opaque = image.pixels.chunks_exact(4).all(|pixel| pixel[3] == 0xff);
    let mut file = Vec::with_capacity(image.pixels.len() / 8);
    let mut encoder = png::Encoder::new(&mut file, image.width, image.height);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_color(if is_opaque { png::ColorType::Rgb } else { png::ColorType::Rgba });
    let written = encoder.write_header().and_then(|mut writer| {
        if is_opaque {
            let colours: Vec<u8> =
                image.pixels.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
            writer.write_image_data(&colours)?;
        } else {
            writer.write_image_data(&image.pixels)?;
        }
        writer.finish()
    });
    written.expect("writing to memory does not fail, and `Image::new` has checked the size");
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: PixelLayout = PixelLayout {
        bits_per_pixel: 32,
        row_padding: 32,
        is_least_significant_first: true,
        red: 0x00ff_0000,
        green: 0xff00,
        blue: 0xff,
        with_alpha: false,
    };

    #[test]
    fn decodes_the_usual_layout() {
        let data = [3, 2, 1, 0, 6, 5, 4, 9];
        assert_eq!(PLAIN.decode(&data, 2, 1).unwrap(), [1, 2, 3, 255, 4, 5, 6, 255]);
        assert_eq!(PLAIN.decode(&data, 3, 1), None);
    }

    #[test]
    fn decodes_most_significant_byte_first() {
        let layout = PixelLayout { is_least_significant_first: false, ..PLAIN };
        assert_eq!(layout.decode(&[0, 1, 2, 3], 1, 1).unwrap(), [1, 2, 3, 255]);
    }

    #[test]
    fn decodes_sixteen_bits_with_row_padding() {
        let layout = PixelLayout { bits_per_pixel: 16, red: 0xf800, green: 0x07e0, blue: 0x001f, ..PLAIN };
        // One pixel a row, each row padded to four bytes: red, then blue.
        let data = [0x00, 0xf8, 0, 0, 0x1f, 0x00, 0, 0];
        assert_eq!(layout.decode(&data, 1, 2).unwrap(), [255, 0, 0, 255, 0, 0, 255, 255]);
    }

    #[test]
    fn decodes_ten_bits_a_channel() {
        let layout = PixelLayout { red: 0x3ff0_0000, green: 0x000f_fc00, blue: 0x3ff, ..PLAIN };
        let value: u32 = 0x3ff << 20 | 0x200 << 10;
        assert_eq!(layout.decode(&value.to_le_bytes(), 1, 1).unwrap(), [255, 128, 0, 255]);
    }

    #[test]
    fn alpha_is_no_longer_premultiplied() {
        let layout = PixelLayout { with_alpha: true, ..PLAIN };
        assert_eq!(layout.decode(&[0, 64, 128, 128], 1, 1).unwrap(), [255, 127, 0, 128]);
        assert_eq!(layout.decode(&[9, 9, 9, 0], 1, 1).unwrap(), [0, 0, 0, 0]);
    }

    #[test]
    fn outside_the_shape_is_transparent() {
        let mut image = Image::new(3, 1, vec![7; 12]).unwrap();
        mask(&mut image, Rectangle::new(10, 10, 3, 1), &[Rectangle::new(11, 0, 1, 100)]);
        assert_eq!(image.pixels(), [0, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0]);
    }

    #[test]
    fn png_keeps_every_pixel() {
        for alpha in [255, 100] {
            let pixels: Vec<u8> =
                (0..64u8).flat_map(|value| [value, value.wrapping_mul(7), 200, alpha]).collect();
            let image = Image::new(8, 8, pixels).unwrap();
            let file = encode_png(&image);
            let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
            let mut decoded = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut decoded).unwrap();
            assert_eq!((info.width, info.height), (8, 8));
            let step = if alpha == 255 { 3 } else { 4 };
            for (index, pixel) in decoded.chunks_exact(step).enumerate() {
                assert_eq!(pixel, &image.pixels()[index * 4..index * 4 + step]);
            }
        }
    }

    #[test]
    fn image_of_the_wrong_size_is_refused() {
        assert_eq!(Image::new(2, 2, vec![0; 15]), None);
        assert_eq!(Image::new(0, 0, Vec::new()), None);
    }
}
