//! The displays (monitors) and where they lie, from `RandR`.

use std::time::Instant;

use x11rb::protocol::randr::ConnectionExt as _;
use x11rb::protocol::xproto::ConnectionExt as _;

use super::connection::{Outcome, X11, present};
use super::{Rectangle, Result};

/// A monitor.
#[derive(Debug, Clone, PartialEq)]
pub struct Display {
    /// Name of the output, for example `eDP-1`; `screen` when the server has no notion of outputs.
    pub id: String,
    /// Its part of the desktop.
    pub area: Rectangle,
    /// Whether the user made it the main one. Exactly one display is primary.
    pub is_primary: bool,
    /// Physical pixels for each logical one. Always 1 on X11, where applications scale themselves.
    pub scale: f64,
}

impl X11 {
    /// The displays, the primary one first, the others from left to right and top to bottom.
    ///
    /// Two round trips.
    ///
    /// # Errors
    /// `Timeout`, `Lost`.
    pub fn displays(&self, deadline: Instant) -> Result<Vec<Display>> {
        self.begin(deadline);
        self.displays_now().map_err(|failure| failure.during("asking for the displays"))
    }

    fn displays_now(&self) -> Outcome<Vec<Display>> {
        let mut displays = Vec::new();
        if self.extensions.randr_monitors
            && let Some(reply) = present(self.wire.randr_get_monitors(self.root, true)?.reply())?
        {
            let names = reply
                .monitors
                .iter()
                .map(|monitor| self.wire.get_atom_name(monitor.name))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            for (monitor, name) in reply.monitors.iter().zip(names) {
                let name =
                    present(name.reply())?.map(|reply| String::from_utf8_lossy(&reply.name).into_owned());
                displays.push(Display {
                    id: name.unwrap_or_else(|| format!("output-{}", displays.len())),
                    area: Rectangle::new(
                        monitor.x.into(),
                        monitor.y.into(),
                        monitor.width.into(),
                        monitor.height.into(),
                    ),
                    is_primary: monitor.primary,
                    scale: 1.0,
                });
            }
            // A monitor without pixels is a disabled output that some drivers still list.
            displays.retain(|display| !display.area.is_empty());
        }
        if displays.is_empty() {
            let area = self.screen_now()?;
            displays.push(Display { id: "screen".to_owned(), area, is_primary: true, scale: 1.0 });
        }
        order(&mut displays);
        Ok(displays)
    }
}

/// Primary first, exactly one primary.
fn order(displays: &mut [Display]) {
    displays.sort_by_key(|display| (!display.is_primary, display.area.x, display.area.y));
    for (index, display) in displays.iter_mut().enumerate() {
        display.is_primary = index == 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_primary_the_leftmost_display_is_it() {
        let display = |id: &str, x, is_primary| Display {
            id: id.to_owned(),
            area: Rectangle::new(x, 0, 100, 100),
            is_primary,
            scale: 1.0,
        };
        let mut displays = vec![display("b", 100, false), display("a", -100, false)];
        order(&mut displays);
        assert_eq!((displays[0].id.as_str(), displays[0].is_primary), ("a", true));
        assert!(!displays[1].is_primary);
        let mut displays = vec![display("a", 0, false), display("b", 100, true)];
        order(&mut displays);
        assert_eq!(displays[0].id, "b");
    }
}
