//! `screenshot`: pixels of a display, a window, an element or a region.

use std::path::PathBuf;

use agent_desktop_core::error::{Error, ErrorCode, Fact, Result};
use agent_desktop_core::geometry::Rect;
use agent_desktop_core::platform::{CaptureTarget, Display, Image, Window};
use agent_desktop_core::refs::RefTarget;
use base64::Engine as _;
use serde::{Deserialize, Serialize};

use super::{Effects, Reply, Run};
use crate::context::{Context, Options};
use crate::pointer::is_coordinate;
use crate::resolve;
use crate::{output, picture, targets};

/// Take a picture of a display, a window, an element or a region.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Screenshot {
    /// File to write; without it the picture is in the reply, as base64.
    #[cfg_attr(feature = "clap", arg(value_name = "PATH"))]
    pub path: Option<PathBuf>,
    /// Of this application's window.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// Of the window of this id.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub window_id: Option<String>,
    /// Of the display at this position in list-displays.
    #[cfg_attr(feature = "clap", arg(long, value_name = "INDEX"))]
    pub screen: Option<usize>,
    /// Of the element of this ref, cut out of its window.
    #[cfg_attr(feature = "clap", arg(long = "ref", value_name = "REF"))]
    #[serde(rename = "ref", alias = "ref_id")]
    pub ref_id: Option<String>,
    /// Snapshot of a ref that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub snapshot: Option<String>,
    /// Only this part, in logical pixels of the desktop; of the window if one is named.
    #[cfg_attr(feature = "clap", arg(long, value_name = "X,Y,WIDTH,HEIGHT", allow_hyphen_values = true))]
    pub region: Option<String>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// The picture.
#[derive(Clone, Debug, Serialize)]
pub struct ScreenshotReply {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    format: &'static str,
    width: u32,
    height: u32,
    scale_factor: f64,
}

impl Reply for ScreenshotReply {
    fn outline(&self) -> Option<String> {
        self.path.as_ref().map(|path| format!("{path}: png, {} x {}", self.width, self.height))
    }
}

fn parse_region(text: &str) -> Result<Rect> {
    let wrong = || {
        Error::invalid("not a region: it is written X,Y,WIDTH,HEIGHT, and is not empty").hint("such as 100,200,640,480")
    };
    let numbers: Vec<f64> =
        text.split(',').map(|part| part.trim().parse().map_err(|_| wrong())).collect::<Result<_>>()?;
    match numbers[..] {
        [x, y, width, height] if numbers.iter().all(|&number| is_coordinate(number)) && width > 0.0 && height > 0.0 => {
            Ok(Rect { x, y, width, height })
        }
        _ => Err(wrong()),
    }
}

/// Pixels for a logical one.
fn scale(image: &Image) -> f64 {
    if image.area.width > 0.0 { f64::from(image.width) / image.area.width } else { 1.0 }
}

impl Screenshot {
    fn names_window(&self) -> bool {
        self.app.is_some() || self.window_id.is_some()
    }

    /// The picture of a window, and of a part of it if one is wanted.
    fn of_window(context: &Context<'_>, window: &Window, part: Option<Rect>) -> Result<Image> {
        let image = context.platform.capture(&CaptureTarget::Window(window.clone()), context.deadline)?;
        // The window may have been replaced while the pixels were read; another one's are never returned.
        let after = targets::recheck(context, window)?;
        let Some(part) = part else { return Ok(image) };
        if after.bounds != window.bounds {
            return Err(Error::new(ErrorCode::ActionFailed, "the window moved while the picture was taken")
                .retryable(true)
                .hint("take it again"));
        }
        picture::crop(&image, part)
    }

    fn of_display(&self, context: &Context<'_>) -> Result<Image> {
        let displays = context.platform.displays(context.deadline)?;
        let index = self.screen.unwrap_or(0);
        let display = displays.get(index).ok_or_else(|| match self.screen {
            Some(_) => {
                let ids: Vec<Fact> = displays.iter().map(|display| Fact::from(display.id.clone())).collect();
                Error::invalid(format!("there is no display {index}"))
                    .detail("display_count", displays.len())
                    .detail("display_ids", Fact::List(ids))
                    .hint("list-displays shows them, counted from 0")
            }
            None => Error::new(ErrorCode::ActionFailed, "there is no display"),
        })?;
        let image = context.platform.capture(&CaptureTarget::Display(display.clone()), context.deadline)?;
        let is_same = |after: &Display| after.id == display.id && after.bounds == display.bounds;
        if !context.platform.displays(context.deadline)?.iter().any(is_same) {
            return Err(Error::new(ErrorCode::ActionFailed, "the displays changed while the picture was taken")
                .retryable(true)
                .hint("take it again"));
        }
        Ok(image)
    }

    fn take(&self, context: &Context<'_>) -> Result<Image> {
        let region = self.region.as_deref().map(parse_region).transpose()?;
        if let Some(reference) = &self.ref_id {
            let resolved = resolve::resolve(context, &resolve::load(context, reference, self.snapshot.as_deref())?)?;
            let bounds = resolved.node.bounds.filter(|bounds| !bounds.is_empty()).ok_or_else(|| {
                Error::new(ErrorCode::ActionFailed, "the element has no place on the screen")
                    .hint("scroll-to brings it into view")
            })?;
            // Where the element is, is nothing that the caller said.
            return Screenshot::of_window(context, &resolved.window, Some(bounds)).map_err(|error| match error.code() {
                ErrorCode::InvalidArgs => {
                    Error::new(ErrorCode::ActionFailed, "the element lies outside of what its window shows")
                        .hint("scroll-to brings it into view")
                }
                _ => error,
            });
        }
        if self.names_window() {
            let window = targets::window(context, self.window_id.as_deref(), self.app.as_deref())?;
            return Screenshot::of_window(context, &window, region);
        }
        match region {
            Some(region) => context.platform.capture(&CaptureTarget::Region(region), context.deadline),
            None => self.of_display(context),
        }
    }
}

impl Run for Screenshot {
    type Reply = ScreenshotReply;

    fn effects(&self, table: Effects) -> Effects {
        Effects {
            mutates: self.path.is_some(),
            accessibility: self.names_window() || self.ref_id.is_some(),
            ..table
        }
    }

    fn check(&self, _: &Options) -> Result<()> {
        if self.screen.is_some() && (self.names_window() || self.ref_id.is_some() || self.region.is_some()) {
            return Err(Error::invalid("--screen excludes --app, --window-id, --ref and --region"));
        }
        if self.ref_id.is_some() && (self.names_window() || self.region.is_some()) {
            return Err(Error::invalid("--ref excludes --app, --window-id and --region"));
        }
        if let Some(reference) = &self.ref_id {
            RefTarget::parse(reference, self.snapshot.as_deref())?;
        }
        if let Some(region) = &self.region {
            parse_region(region)?;
        }
        self.path.as_deref().map_or(Ok(()), output::check)
    }

    fn run(&self, context: &Context<'_>) -> Result<ScreenshotReply> {
        let image = self.take(context)?;
        let png = picture::encode(&image)?;
        let mut reply = ScreenshotReply {
            path: None,
            data: None,
            format: "png",
            width: image.width,
            height: image.height,
            scale_factor: scale(&image),
        };
        match &self.path {
            Some(path) => {
                output::write(path, &png)?;
                reply.path = Some(path.display().to_string());
            }
            None => reply.data = Some(base64::engine::general_purpose::STANDARD.encode(png)),
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_four_numbers_with_an_inside() {
        assert_eq!(parse_region("1, -2,3.5,4").unwrap(), Rect { x: 1.0, y: -2.0, width: 3.5, height: 4.0 });
        for bad in ["", "1,2,3", "1,2,3,4,5", "1,2,0,4", "1,2,3,-4", "a,2,3,4", "nan,2,3,4"] {
            assert!(parse_region(bad).is_err(), "{bad:?}");
        }
    }
}
