//! The connection to the X server: deadlines, atoms, extensions, error translation.
//!
//! x11rb's own stream waits for ever when the server does not answer (another client may hold a server grab).
//! Ours carries the deadline of the call being made and gives up at it. The connection stays usable after a
//! timeout: requests are numbered, so a late reply is recognised and dropped.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use x11rb::connection::{Connection as _, RequestConnection as _};
use x11rb::errors::{ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::xproto::{self, ConnectionExt as _};
use x11rb::protocol::{ErrorKind, composite, damage, randr, res, shape, xkb, xtest};
use x11rb::reexports::x11rb_protocol::{parse_display::parse_display, xauth::get_auth};
use x11rb::rust_connection::{DefaultStream, PollMode, RustConnection, Stream};
use x11rb::utils::RawFdContainer;

use super::{Rectangle, Result, WindowId, WindowSystemError};
use crate::signals::Deferred;

/// A stream that gives up at a deadline, and when a signal asks for the end while input is being sent.
///
/// The `Cell` also keeps two threads from sharing one connection, which would share the deadline.
pub(super) struct DeadlineStream {
    inner: DefaultStream,
    deadline: Cell<Instant>,
    /// Signals that wait until the input that is being sent is over.
    deferred: RefCell<Option<Deferred>>,
    /// What is held is being released: a signal does not break that off.
    is_cleaning: Cell<bool>,
    /// A request was given up while it was being sent.
    is_broken: Cell<bool>,
}

impl DeadlineStream {
    fn new(inner: DefaultStream, deadline: Instant) -> Self {
        Self {
            inner,
            deadline: Cell::new(deadline),
            deferred: RefCell::new(None),
            is_cleaning: Cell::new(false),
            is_broken: Cell::new(false),
        }
    }

    /// Waits until the server can be talked to (`flags`; empty: just waits) or `until`. Whether it can be.
    fn wait(&self, flags: PollFlags, until: Instant) -> io::Result<bool> {
        let deferred = self.deferred.borrow();
        // Never while a request leaves: x11rb has numbered it by then, and one that is numbered and not sent would make
        // every later answer that of another question.
        let may_break_off = !flags.contains(PollFlags::OUT) && !self.is_cleaning.get();
        let arrivals = deferred.as_ref().filter(|_| may_break_off).and_then(Deferred::arrivals);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            let mut descriptors = Vec::with_capacity(2);
            descriptors.extend(arrivals.map(|arrivals| PollFd::from_borrowed_fd(arrivals, PollFlags::IN)));
            if !flags.is_empty() {
                descriptors.push(PollFd::from_borrowed_fd(self.inner.as_fd(), flags));
            }
            match poll(&mut descriptors, Some(&timeout)) {
                Ok(0) => return Ok(false),
                Ok(_) if arrivals.is_some() && !descriptors[0].revents().is_empty() => {
                    return Err(io::Error::other(Interruption));
                }
                Ok(_) => return Ok(true),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// A signal asked for the end.
#[derive(Debug)]
struct Interruption;

impl fmt::Display for Interruption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a signal asked for the end")
    }
}

impl std::error::Error for Interruption {}

impl Stream for DeadlineStream {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        if mode.readable() {
            flags |= PollFlags::IN;
        }
        if mode.writable() {
            flags |= PollFlags::OUT;
        }
        if self.is_broken.get() {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "a request was left half sent"));
        }
        if self.wait(flags, self.deadline.get())? {
            return Ok(());
        }
        // The server reads nothing, so nothing that is sent later could be matched with its answer.
        self.is_broken.set(mode.writable());
        Err(io::ErrorKind::TimedOut.into())
    }

    fn read(&self, buffer: &mut [u8], descriptors: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.inner.read(buffer, descriptors)
    }

    fn write(&self, buffer: &[u8], descriptors: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.inner.write(buffer, descriptors)
    }

    fn write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
        descriptors: &mut Vec<RawFdContainer>,
    ) -> io::Result<usize> {
        self.inner.write_vectored(buffers, descriptors)
    }
}

/// What x11rb sees as the connection.
pub(super) type Wire = RustConnection<DeadlineStream>;

x11rb::atom_manager! {
    /// The atoms used here, interned in one round trip.
    pub(super) Atoms: AtomsCookie {
        UTF8_STRING,
        WM_STATE,
        WM_CHANGE_STATE,
        WM_PROTOCOLS,
        WM_DELETE_WINDOW,
        WM_TAKE_FOCUS,
        _NET_SUPPORTED,
        _NET_SUPPORTING_WM_CHECK,
        _NET_CLIENT_LIST,
        _NET_ACTIVE_WINDOW,
        _NET_CURRENT_DESKTOP,
        _NET_CLOSE_WINDOW,
        _NET_MOVERESIZE_WINDOW,
        _NET_WM_NAME,
        _NET_WM_PID,
        _NET_WM_PING,
        _NET_WM_DESKTOP,
        _NET_WM_STATE,
        _NET_WM_STATE_HIDDEN,
        _NET_WM_STATE_MODAL,
        _NET_WM_STATE_FULLSCREEN,
        _NET_WM_STATE_MAXIMIZED_VERT,
        _NET_WM_STATE_MAXIMIZED_HORZ,
        _NET_WM_WINDOW_TYPE,
        _NET_WM_WINDOW_TYPE_NORMAL,
        _NET_WM_WINDOW_TYPE_DIALOG,
        _NET_WM_WINDOW_TYPE_UTILITY,
        _NET_WM_WINDOW_TYPE_TOOLBAR,
        _NET_WM_WINDOW_TYPE_SPLASH,
        _NET_WM_WINDOW_TYPE_MENU,
        _NET_WM_WINDOW_TYPE_DROPDOWN_MENU,
        _NET_WM_WINDOW_TYPE_POPUP_MENU,
        _NET_WM_WINDOW_TYPE_COMBO,
        _NET_WM_WINDOW_TYPE_TOOLTIP,
        _NET_WM_WINDOW_TYPE_NOTIFICATION,
        _NET_WM_WINDOW_TYPE_DOCK,
        _NET_WM_WINDOW_TYPE_DESKTOP,
        _NET_WM_WINDOW_TYPE_DND,
        _NET_FRAME_EXTENTS,
        _GTK_FRAME_EXTENTS,
        _AGENT_DESKTOP_TIMESTAMP,
    }
}

/// Which extensions the server has.
// A flag for each extension is what there is to know.
#[allow(clippy::struct_excessive_bools, reason = "one for each extension that may be missing")]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extensions {
    pub(super) composite: bool,
    pub(super) damage: bool,
    /// 1.5 or newer, which has monitors.
    pub(super) randr_monitors: bool,
    pub(super) resources: bool,
    pub(super) shape: bool,
    pub(super) xkb: bool,
    pub(super) xtest: bool,
}

/// A connection to an X server, or to Xwayland, which shows and moves only its own windows and pointer.
///
/// Not shared between threads (it is `Send` but not `Sync`); open one for each.
pub struct X11 {
    pub(super) wire: Wire,
    pub(super) atoms: Atoms,
    pub(super) extensions: Extensions,
    pub(super) root: xproto::Window,
    pub(super) screen_number: usize,
    /// An unmapped window of our own: receives the events that tell us the server's time.
    pub(super) own_window: xproto::Window,
}

/// How long cleaning up may take once the caller's deadline has passed: releasing buttons and keys, restoring the
/// keyboard map. Long enough for a busy server, short enough not to look like a hang.
pub(super) const CLEANUP_GRACE: Duration = Duration::from_millis(500);

impl X11 {
    /// Connects to `display`, or to `$DISPLAY`.
    ///
    /// About six round trips, once.
    ///
    /// # Errors
    /// `Connect` when there is no display or it refuses us, `Timeout` at the deadline.
    pub fn connect(display: Option<&str>, deadline: Instant) -> Result<Self> {
        let name = || display.map_or_else(|| std::env::var("DISPLAY").unwrap_or_default(), str::to_owned);
        let failed = |cause: &dyn std::fmt::Display| WindowSystemError::Connect {
            display: name(),
            cause: cause.to_string(),
        };
        let parsed = parse_display(display).map_err(|error| failed(&error))?;
        let mut last_error = None;
        let mut stream = None;
        for address in parsed.connect_instruction() {
            match DefaultStream::connect(&address) {
                Ok(connected) => {
                    stream = Some(connected);
                    break;
                }
                Err(error) => last_error = Some(error),
            }
        }
        let Some((inner, (family, address))) = stream else {
            return Err(last_error.map_or_else(|| failed(&"no address"), |error| failed(&error)));
        };
        // No cookie is not an error: the server may allow us by user id.
        let (auth_name, auth_data) =
            get_auth(family, &address, parsed.display).ok().flatten().unwrap_or_default();
        let screen_number = usize::from(parsed.screen);
        let stream = DeadlineStream::new(inner, deadline);
        let wire =
            RustConnection::connect_to_stream_with_auth_info(stream, screen_number, auth_name, auth_data)
                .map_err(|error| match error {
                    x11rb::errors::ConnectError::IoError(error)
                        if error.kind() == io::ErrorKind::TimedOut =>
                    {
                        WindowSystemError::Timeout {
                            doing: "connecting to the display server",
                            started: false,
                        }
                    }
                    error => failed(&error),
                })?;
        let root = wire.setup().roots[screen_number].root;
        Self::prepare(wire, root, screen_number).map_err(|error| match error {
            Failure::Timeout => {
                WindowSystemError::Timeout { doing: "connecting to the display server", started: false }
            }
            Failure::Interrupted => failed(&Interruption),
            Failure::Lost(cause) | Failure::Refused(_, cause) => failed(&cause),
        })
    }

    fn prepare(wire: Wire, root: xproto::Window, screen_number: usize) -> Outcome<Self> {
        for extension in [
            composite::X11_EXTENSION_NAME,
            damage::X11_EXTENSION_NAME,
            randr::X11_EXTENSION_NAME,
            res::X11_EXTENSION_NAME,
            shape::X11_EXTENSION_NAME,
            xkb::X11_EXTENSION_NAME,
            xtest::X11_EXTENSION_NAME,
        ] {
            wire.prefetch_extension_information(extension)?;
        }
        let (atoms, extensions, own_window) = Self::introduce(&wire, root)?;
        Ok(Self { wire, atoms, extensions, root, screen_number, own_window })
    }

    /// Tells each extension our version, interns the atoms and makes our own window; all questions travel together.
    fn introduce(wire: &Wire, root: xproto::Window) -> Outcome<(Atoms, Extensions, xproto::Window)> {
        let atoms = Atoms::new(wire)?;
        let has = |name| -> Outcome<bool> { Ok(wire.extension_information(name)?.is_some()) };
        let mut extensions = Extensions {
            composite: has(composite::X11_EXTENSION_NAME)?,
            damage: has(damage::X11_EXTENSION_NAME)?,
            randr_monitors: has(randr::X11_EXTENSION_NAME)?,
            resources: has(res::X11_EXTENSION_NAME)?,
            shape: has(shape::X11_EXTENSION_NAME)?,
            xkb: has(xkb::X11_EXTENSION_NAME)?,
            xtest: has(xtest::X11_EXTENSION_NAME)?,
        };
        // They serve nothing before they have heard it.
        let composite_version =
            extensions.composite.then(|| composite::query_version(wire, 0, 4)).transpose()?;
        let damage_version = extensions.damage.then(|| damage::query_version(wire, 1, 1)).transpose()?;
        let randr_version =
            extensions.randr_monitors.then(|| randr::query_version(wire, 1, 5)).transpose()?;
        let res_version = extensions.resources.then(|| res::query_version(wire, 1, 2)).transpose()?;
        let xkb_version = extensions.xkb.then(|| xkb::use_extension(wire, 1, 0)).transpose()?;
        let own_window = wire.generate_id().map_err(|error| Failure::Lost(error.to_string()))?;
        wire.create_window(
            0,
            own_window,
            root,
            -10,
            -10,
            1,
            1,
            0,
            xproto::WindowClass::INPUT_ONLY,
            0,
            &xproto::CreateWindowAux::new()
                .event_mask(xproto::EventMask::PROPERTY_CHANGE)
                .override_redirect(1),
        )?;
        if let Some(cookie) = composite_version {
            let version = cookie.reply()?;
            extensions.composite = (version.major_version, version.minor_version) >= (0, 2);
        }
        if let Some(cookie) = damage_version {
            cookie.reply()?;
        }
        if let Some(cookie) = randr_version {
            let version = cookie.reply()?;
            extensions.randr_monitors = (version.major_version, version.minor_version) >= (1, 5);
        }
        if let Some(cookie) = res_version {
            let version = cookie.reply()?;
            extensions.resources = (version.server_major, version.server_minor) >= (1, 2);
        }
        if let Some(cookie) = xkb_version {
            extensions.xkb = cookie.reply()?.supported;
        }
        let atoms = atoms.reply()?;
        Ok((atoms, extensions, own_window))
    }

    /// The whole desktop.
    ///
    /// One round trip; the size in the connection's setup is out of date once an output has changed.
    ///
    /// # Errors
    /// `Timeout`, `Lost`.
    pub fn screen(&self, deadline: Instant) -> Result<Rectangle> {
        self.begin(deadline);
        self.screen_now().map_err(|failure| failure.during("asking for the size of the screen"))
    }

    pub(super) fn screen_now(&self) -> Outcome<Rectangle> {
        let geometry = self.wire.get_geometry(self.root)?.reply()?;
        Ok(Rectangle::new(0, 0, geometry.width.into(), geometry.height.into()))
    }

    /// Sets the deadline of everything that follows on this connection.
    pub(super) fn begin(&self, deadline: Instant) {
        self.wire.stream().is_cleaning.set(false);
        self.set_deadline(deadline);
    }

    fn set_deadline(&self, deadline: Instant) {
        self.wire.stream().deadline.set(deadline);
    }

    /// The same for input: signals that end the process wait until the guard is dropped, which must outlive everything
    /// that is held.
    #[must_use]
    pub(super) fn begin_input(&self, deadline: Instant) -> InputGuard<'_> {
        self.begin(deadline);
        *self.wire.stream().deferred.borrow_mut() = Some(Deferred::start());
        InputGuard { server: self }
    }

    /// An error once a signal has asked for the end of the input that is being sent.
    pub(super) fn check_interruption(&self) -> Outcome<()> {
        self.wire.stream().wait(PollFlags::empty(), Instant::now())?;
        Ok(())
    }

    /// The deadline of the call being made.
    pub(super) fn deadline(&self) -> Instant {
        self.wire.stream().deadline.get()
    }

    /// Time to release what is held, even when the caller's deadline has passed; given once for all that is held.
    pub(super) fn begin_cleanup(&self) {
        if !self.wire.stream().is_cleaning.replace(true) {
            self.set_deadline(self.deadline().max(Instant::now() + CLEANUP_GRACE));
        }
    }

    /// Waits until the server has processed everything sent so far.
    pub(super) fn sync(&self) -> Outcome<()> {
        self.wire.get_input_focus()?.reply()?;
        Ok(())
    }

    /// Sleeps, but not beyond the deadline.
    pub(super) fn pause(&self, duration: Duration) -> Outcome<()> {
        if Instant::now() + duration > self.deadline() {
            return Err(Failure::Timeout);
        }
        self.wire.stream().wait(PollFlags::empty(), Instant::now() + duration)?;
        Ok(())
    }

    /// Waits for an event, up to `until` (and never beyond the deadline). `None`: nothing came.
    pub(super) fn wait_event(&self, until: Instant) -> Outcome<Option<x11rb::protocol::Event>> {
        let whole = self.deadline();
        loop {
            if let Some(event) = self.wire.poll_for_event()? {
                return Ok(Some(event));
            }
            let now = Instant::now();
            if now >= until || now >= whole {
                return Ok(None);
            }
            self.set_deadline(until.min(whole));
            let outcome = self.wire.stream().poll(PollMode::Readable);
            self.set_deadline(whole);
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                other => other?,
            }
        }
    }

    /// The server's time in milliseconds, which window managers compare requests by. One round trip.
    pub(super) fn server_time(&self) -> Outcome<xproto::Timestamp> {
        xproto::change_property(
            &self.wire,
            xproto::PropMode::APPEND,
            self.own_window,
            self.atoms._AGENT_DESKTOP_TIMESTAMP,
            xproto::AtomEnum::STRING,
            8,
            0,
            &[],
        )?;
        self.sync()?;
        // The notification was sent before the reply, so it is in the queue by now.
        let mut time = x11rb::CURRENT_TIME;
        while let Some(event) = self.wire.poll_for_event()? {
            if let x11rb::protocol::Event::PropertyNotify(event) = event
                && event.window == self.own_window
            {
                time = event.time;
            }
        }
        Ok(time)
    }
}

impl Drop for X11 {
    fn drop(&mut self) {
        // The server frees everything of ours when the connection closes; only buffered requests need a push.
        self.begin_cleanup();
        let _ = self.wire.flush();
    }
}

/// Input is being sent, and signals wait, until this is dropped.
pub(super) struct InputGuard<'connection> {
    server: &'connection X11,
}

impl Drop for InputGuard<'_> {
    fn drop(&mut self) {
        // Taken first: the signal is delivered when it is dropped.
        let deferred = self.server.wire.stream().deferred.borrow_mut().take();
        drop(deferred);
    }
}

/// What went wrong on the wire, before it is known what it means for the caller.
#[derive(Debug)]
pub(super) enum Failure {
    Timeout,
    /// A signal asked for the end.
    Interrupted,
    Lost(String),
    Refused(ErrorKind, String),
}

pub(super) type Outcome<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Names what was being done, for requests that concern no window.
    pub(super) fn during(self, doing: &'static str) -> WindowSystemError {
        match self {
            Self::Timeout => WindowSystemError::Timeout { doing, started: false },
            Self::Interrupted => WindowSystemError::Interrupted { doing },
            Self::Lost(cause) => WindowSystemError::Lost { cause },
            Self::Refused(_, cause) => WindowSystemError::Refused { doing, cause },
        }
    }

    /// The same once input may have reached an application.
    pub(super) fn during_input(self, doing: &'static str) -> WindowSystemError {
        match self.during(doing) {
            WindowSystemError::Timeout { doing, .. } => WindowSystemError::Timeout { doing, started: true },
            other => other,
        }
    }

    /// The same for requests on one window, where a bad window means that it is gone.
    pub(super) fn on(self, window: WindowId, doing: &'static str) -> WindowSystemError {
        match self {
            Self::Refused(ErrorKind::Window | ErrorKind::Drawable, _) => WindowSystemError::Gone { window },
            other => other.during(doing),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if matches!(error.get_ref(), Some(cause) if cause.is::<Interruption>()) {
            return Self::Interrupted;
        }
        if error.kind() == io::ErrorKind::TimedOut { Self::Timeout } else { Self::Lost(error.to_string()) }
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::IoError(error) => error.into(),
            other => Self::Lost(other.to_string()),
        }
    }
}

impl From<ReplyError> for Failure {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::ConnectionError(error) => error.into(),
            ReplyError::X11Error(error) => Self::Refused(
                error.error_kind,
                format!(
                    "{:?} in {} (value 0x{:x})",
                    error.error_kind,
                    error.request_name.unwrap_or("an unknown request"),
                    error.bad_value
                ),
            ),
        }
    }
}

impl From<ReplyOrIdError> for Failure {
    fn from(error: ReplyOrIdError) -> Self {
        match error {
            ReplyOrIdError::IdsExhausted => Self::Lost("X resource ids exhausted".to_owned()),
            ReplyOrIdError::ConnectionError(error) => error.into(),
            ReplyOrIdError::X11Error(error) => ReplyError::X11Error(error).into(),
        }
    }
}

/// A reply, or `None` when the server refused the request: what it was about has gone in the meantime.
pub(super) fn present<T>(reply: std::result::Result<T, ReplyError>) -> Outcome<Option<T>> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
