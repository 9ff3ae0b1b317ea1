//! What kind of server this is, and who manages its windows.

use std::time::Instant;

use x11rb::connection::{Connection as _, RequestConnection as _};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};

use super::connection::{Outcome, X11, present};
use super::{Rectangle, Result};

/// What the server and its window manager say about themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Who made the server, with its release number.
    pub vendor: String,
    /// The whole desktop.
    pub screen: Rectangle,
    /// Whether it shows its windows in those of a Wayland compositor.
    pub is_xwayland: bool,
    /// Whether it takes synthetic input.
    pub has_xtest: bool,
    /// The name of the window manager, possibly empty; `None`: none that speaks EWMH.
    pub window_manager: Option<String>,
    /// What the window manager lacks of what commands ask for, as names of EWMH.
    pub missing: Vec<&'static str>,
}

impl X11 {
    /// What the server and its window manager are. Five round trips.
    ///
    /// # Errors
    /// `Timeout`, `Lost`.
    pub fn server(&self, deadline: Instant) -> Result<Server> {
        self.begin(deadline);
        self.server_now().map_err(|failure| failure.during("asking the server what it is"))
    }

    fn server_now(&self) -> Outcome<Server> {
        let setup = self.wire.setup();
        let vendor = String::from_utf8_lossy(&setup.vendor).into_owned();
        let manager = self.window_manager()?;
        let asked = [
            ("_NET_ACTIVE_WINDOW", self.atoms._NET_ACTIVE_WINDOW),
            ("_NET_CLIENT_LIST", self.atoms._NET_CLIENT_LIST),
            ("_NET_WM_STATE", self.atoms._NET_WM_STATE),
            ("_NET_WM_STATE_MAXIMIZED_VERT", self.atoms._NET_WM_STATE_MAXIMIZED_VERT),
            ("_NET_WM_STATE_MAXIMIZED_HORZ", self.atoms._NET_WM_STATE_MAXIMIZED_HORZ),
        ];
        let lacks = |atom| manager.is_alive && !manager.supports(atom);
        Ok(Server {
            vendor: format!("{vendor} {}", setup.release_number),
            screen: self.screen_now()?,
            is_xwayland: self.wire.extension_information("XWAYLAND")?.is_some(),
            has_xtest: self.extensions.xtest,
            window_manager: if manager.is_alive { Some(self.name_of_window_manager()?) } else { None },
            missing: asked.into_iter().filter(|(_, atom)| lacks(*atom)).map(|(name, _)| name).collect(),
        })
    }

    fn name_of_window_manager(&self) -> Outcome<String> {
        let check = self.wire.get_property(
            false,
            self.root,
            self.atoms._NET_SUPPORTING_WM_CHECK,
            AtomEnum::WINDOW,
            0,
            1,
        )?;
        let check = present(check.reply())?.and_then(|reply| reply.value32()?.next());
        let Some(window) = check else { return Ok(String::new()) };
        let name = self.wire.get_property(false, window, self.atoms._NET_WM_NAME, AtomEnum::ANY, 0, 64)?;
        let name = present(name.reply())?.map(|reply| reply.value).unwrap_or_default();
        Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    }
}
