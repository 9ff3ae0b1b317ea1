//! What happens to windows, as the X server tells it.
//!
//! Decided here: which events of the server mean that the list of windows is another one, and that each is followed by a
//! look at once, in a thread of its own. Events carry numbers only; who waits for the next command before he looks finds that
//! the window is gone, and its title with it.

use std::time::{Duration, Instant};

use x11rb::protocol::Event;
use x11rb::protocol::xproto::{ChangeWindowAttributesAux, ConnectionExt as _, EventMask};

use super::connection::Outcome;
use super::{Result, WindowList, X11};

/// How often the thread looks whether anybody listens still.
const SLICE: Duration = Duration::from_millis(200);
/// How long one look may take.
const LOOK: Duration = Duration::from_secs(5);

impl X11 {
    /// From now on the server tells this connection when a window comes or goes, or another one is active. One round trip.
    ///
    /// # Errors
    /// `Timeout`, `Lost`.
    pub fn begin_watch(&self, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        let listen = || -> Outcome<()> {
            let mask = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE;
            self.wire
                .change_window_attributes(self.root, &ChangeWindowAttributesAux::new().event_mask(mask))?
                .check()?;
            Ok(())
        };
        listen().map_err(|failure| failure.during("listening to the windows"))
    }

    /// Hands on every list of windows that differs from the one before, until the listener says that it wants no more, or the
    /// server ends. `None`: nothing has changed for a while.
    pub fn watch(&self, mut before: WindowList, mut hand_on: impl FnMut(Option<Result<WindowList>>) -> bool) {
        loop {
            let news = match self.changed() {
                Ok(false) => None,
                Ok(true) => match self.windows(Instant::now() + LOOK) {
                    Ok(list) if list == before => None,
                    Ok(list) => {
                        before = list.clone();
                        Some(Ok(list))
                    }
                    Err(error) => Some(Err(error)),
                },
                Err(failure) => Some(Err(failure.during("listening to the windows"))),
            };
            let is_lost = matches!(news, Some(Err(_)));
            if !hand_on(news) || is_lost {
                return;
            }
        }
    }

    /// Waits a slice of time for something that may change the list.
    fn changed(&self) -> Outcome<bool> {
        let until = Instant::now() + SLICE;
        self.begin(until + LOOK);
        let mut is_changed = false;
        // All that has arrived counts as one change.
        while let Some(event) = self.wait_event(if is_changed { Instant::now() } else { until })? {
            is_changed |= match event {
                Event::MapNotify(_)
                | Event::UnmapNotify(_)
                | Event::DestroyNotify(_)
                | Event::ReparentNotify(_) => true,
                Event::PropertyNotify(event) => {
                    event.window == self.root
                        && [self.atoms._NET_CLIENT_LIST, self.atoms._NET_ACTIVE_WINDOW].contains(&event.atom)
                }
                _ => false,
            };
        }
        Ok(is_changed)
    }
}
