//! The window system: which windows there are, where they are, what they look like, and physical input.
//!
//! Decided here: plain data types that any window system can fill, and the errors all of them share. [`X11`] is
//! the first backend; Wayland ones will offer the same operations under the same names. Not decided here: which
//! window a caller means, whether an operation is allowed, and whether it had its effect (callers poll for that).
//!
//! One coordinate space everywhere in this module: physical pixels, origin at the top left of the whole desktop
//! (the X root window), y downwards. Every call that talks to the display server takes a deadline and returns
//! [`WindowSystemError::Timeout`] when it passes; a hung server never hangs us.

mod capture;
mod clipboard;
mod connection;
mod displays;
mod input;
mod keymap;
mod server;
mod watch;
mod windows;

use std::fmt;
use std::time::Duration;

pub use capture::{Capture, Image, encode_png};
pub use clipboard::{Content, Form, Offer};
pub use connection::X11;
pub use displays::Display;
pub use input::{Button, Drag, Pointer, TypingError, TypingOptions};
pub use keymap::{Keysym, keysym_for_character, keysym_for_name};
pub use server::Server;
pub use windows::{Extents, Hit, Popup, Window, WindowKind, WindowList, WindowState};

/// Identifies a window for as long as it exists: on X11 its XID.
///
/// The number may be given to another window later, so keep the process instance beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowId(pub u32);

impl fmt::Display for WindowId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "0x{:x}", self.0)
    }
}

/// A point on the desktop. Physical pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Point {
    /// To the right of the desktop's left edge.
    pub x: i32,
    /// Below the desktop's top edge.
    pub y: i32,
}

/// A rectangle on the desktop. Physical pixels; may lie partly or wholly outside the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rectangle {
    /// Left edge.
    pub x: i32,
    /// Top edge.
    pub y: i32,
    /// Width; the right edge is at `x + width`, exclusive.
    pub width: u32,
    /// Height; the bottom edge is at `y + height`, exclusive.
    pub height: u32,
}

impl Rectangle {
    /// A rectangle from its top left corner and its size.
    pub const fn new(x: i32, y: i32, width: u32, height: u32) -> Self {
        Self { x, y, width, height }
    }

    /// Right edge, exclusive.
    pub const fn right(&self) -> i32 {
        self.x.saturating_add_unsigned(self.width)
    }

    /// Bottom edge, exclusive.
    pub const fn bottom(&self) -> i32 {
        self.y.saturating_add_unsigned(self.height)
    }

    /// Whether it covers no pixel.
    pub const fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// Whether the pixel at `point` lies inside.
    pub const fn contains(&self, point: Point) -> bool {
        point.x >= self.x && point.y >= self.y && point.x < self.right() && point.y < self.bottom()
    }

    /// The common part; `None` when there is none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let (right, bottom) = (self.right().min(other.right()), self.bottom().min(other.bottom()));
        (right > x && bottom > y).then(|| Self::new(x, y, (right - x) as u32, (bottom - y) as u32))
    }

    /// What is left of `self` once `cut` is taken away: up to four rectangles that do not overlap.
    pub fn subtract(&self, cut: &Self) -> Vec<Self> {
        let Some(hole) = self.intersection(cut) else {
            return if self.is_empty() { Vec::new() } else { vec![*self] };
        };
        let mut rest = Vec::new();
        let mut push = |left: i32, top: i32, right: i32, bottom: i32| {
            if right > left && bottom > top {
                rest.push(Self::new(left, top, (right - left) as u32, (bottom - top) as u32));
            }
        };
        push(self.x, self.y, self.right(), hole.y);
        push(self.x, hole.bottom(), self.right(), self.bottom());
        push(self.x, hole.y, hole.x, hole.bottom());
        push(hole.right(), hole.y, self.right(), hole.bottom());
        rest
    }
}

/// What can go wrong when talking to the window system.
#[derive(Debug)]
#[non_exhaustive]
pub enum WindowSystemError {
    /// No display server could be reached. Nothing was sent.
    Connect {
        /// The display asked for.
        display: String,
        /// What the operating system or the server said.
        cause: String,
    },
    /// The deadline passed while waiting for the server, or there was too little time to begin.
    Timeout {
        /// What was being done.
        doing: &'static str,
        /// Whether input may have reached an application already.
        started: bool,
    },
    /// A call of its own length would not be over at the deadline. Nothing was sent.
    TooLate {
        /// What was to be done.
        doing: &'static str,
        /// How long it takes.
        needed: Duration,
    },
    /// A signal asked for the end. Input may have been sent; what was held is released.
    Interrupted {
        /// What was being done.
        doing: &'static str,
    },
    /// The connection broke: the server ended or cut us off.
    Lost {
        /// What the operating system said.
        cause: String,
    },
    /// The window does not exist any more.
    Gone {
        /// The window asked for.
        window: WindowId,
    },
    /// The window is unmapped, minimised or on another desktop, so it has no pixels and takes no input.
    NotViewable {
        /// The window asked for.
        window: WindowId,
    },
    /// Other windows cover it and its own pixels cannot be had.
    Obscured {
        /// The window asked for.
        window: WindowId,
        /// The windows in front of it, topmost first; empty when only the screen's edge cuts it.
        by: Vec<WindowId>,
        /// Why asking for its own pixels did not work.
        reason: String,
    },
    /// The area asked for lies outside the screen.
    OutsideScreen {
        /// The area asked for.
        area: Rectangle,
        /// The whole desktop.
        screen: Rectangle,
    },
    /// The character cannot be typed. Nothing was sent for it.
    Untypable {
        /// The character.
        character: char,
        /// Its place in the text, counted in characters from 0.
        index: usize,
    },
    /// No key gives this symbol and no spare key is left to carry it.
    NoSuchKey {
        /// The symbol asked for.
        keysym: Keysym,
    },
    /// An argument is out of range.
    InvalidArgument {
        /// What is wrong with it, with its value.
        what: String,
    },
    /// The server, the window manager or the window does not offer this.
    Unsupported {
        /// What is missing.
        what: String,
    },
    /// The server refused a request for a reason that has no name of its own here.
    Refused {
        /// What was being done.
        doing: &'static str,
        /// The server's error, as x11rb names it.
        cause: String,
    },
}

impl fmt::Display for WindowSystemError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { display, cause } => write!(formatter, "display {display:?}: {cause}"),
            Self::Timeout { doing, started: false } => {
                write!(
                    formatter,
                    "the display server was not done in time: deadline passed while {doing}; no input was sent"
                )
            }
            Self::Timeout { doing, started: true } => {
                write!(
                    formatter,
                    "the display server was not done in time: deadline passed while {doing}; input had been sent"
                )
            }
            Self::TooLate { doing, needed } => {
                write!(
                    formatter,
                    "{doing} takes {} ms, more than is left; no input was sent",
                    needed.as_millis()
                )
            }
            Self::Interrupted { doing } => write!(formatter, "a signal ended {doing}"),
            Self::Lost { cause } => write!(formatter, "connection to the display server lost: {cause}"),
            Self::Gone { window } => write!(formatter, "window {window} does not exist any more"),
            Self::NotViewable { window } => {
                write!(
                    formatter,
                    "window {window} is not on screen (minimised, unmapped or on another desktop)"
                )
            }
            Self::Obscured { window, by, reason } => {
                write!(formatter, "window {window} cannot be captured without foreign pixels: ")?;
                if by.is_empty() {
                    write!(formatter, "it lies partly off screen")?;
                } else {
                    write!(formatter, "it is covered by")?;
                    for (index, cover) in by.iter().enumerate() {
                        write!(formatter, "{} {cover}", if index == 0 { "" } else { "," })?;
                    }
                }
                write!(formatter, " ({reason})")
            }
            Self::OutsideScreen { area, screen } => write!(
                formatter,
                "{}x{} at {},{} lies outside the screen ({}x{} at {},{})",
                area.width, area.height, area.x, area.y, screen.width, screen.height, screen.x, screen.y
            ),
            Self::Untypable { character, index } => {
                write!(formatter, "character {character:?} at index {index} cannot be typed")
            }
            Self::NoSuchKey { keysym } => {
                write!(formatter, "no key gives keysym 0x{keysym:x} and no spare key is left")
            }
            Self::InvalidArgument { what } => write!(formatter, "invalid argument: {what}"),
            Self::Unsupported { what } => write!(formatter, "not supported: {what}"),
            Self::Refused { doing, cause } => {
                write!(formatter, "the display server refused {doing}: {cause}")
            }
        }
    }
}

impl std::error::Error for WindowSystemError {}

/// Result of an operation on the window system.
pub type Result<T> = std::result::Result<T, WindowSystemError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intersection_of_touching_rectangles_is_nothing() {
        let left = Rectangle::new(0, 0, 10, 10);
        assert_eq!(left.intersection(&Rectangle::new(10, 0, 5, 5)), None);
        assert_eq!(left.intersection(&Rectangle::new(9, 9, 5, 5)), Some(Rectangle::new(9, 9, 1, 1)));
    }

    #[test]
    fn subtract_keeps_every_pixel_but_the_hole() {
        let whole = Rectangle::new(-5, -5, 20, 20);
        for cut in [
            Rectangle::new(0, 0, 3, 3),
            Rectangle::new(-9, -9, 8, 40),
            Rectangle::new(10, 10, 50, 50),
            Rectangle::new(100, 100, 1, 1),
            Rectangle::new(-50, -50, 200, 200),
        ] {
            let rest = whole.subtract(&cut);
            for x in -6..16 {
                for y in -6..16 {
                    let point = Point { x, y };
                    let expected = usize::from(whole.contains(point) && !cut.contains(point));
                    assert_eq!(
                        rest.iter().filter(|part| part.contains(point)).count(),
                        expected,
                        "{cut:?} {x},{y}"
                    );
                }
            }
        }
    }
}
