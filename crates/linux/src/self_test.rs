//! Proof that windows, pictures, the pointer and the keyboard work, with a window of our own: another process of this program
//! opens it and says what it was sent, so that nothing is taken from the side that sends.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use agent_desktop_core::Deadline;
use agent_desktop_core::platform::{Check, CheckState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::platform::Linux;
use crate::window_system::{Button, Point, Rectangle, Window, WindowId, X11, keysym_for_character};

/// First argument of the program when it is to open the window. Not for callers.
pub const WINDOW: &str = "open-the-window-of-the-self-test";
/// Title of the window, before the number of its process.
const TITLE: &str = "agent-desktop self-test";
/// Size of the window, pixels.
const SIZE: (u16, u16) = (240, 160);
/// Its colour: red, green, blue.
const COLOUR: [u8; 3] = [0x1e, 0x6f, 0x50];
/// By how much a pixel may differ: a display may have fewer bits a colour.
const TOLERANCE: u8 = 8;
/// The key that is pressed.
const KEY: char = 'a';
/// How long the window lives when nobody ends it.
const LIFE: Duration = Duration::from_secs(60);
/// How long one step may take.
const STEP: Duration = Duration::from_millis(1500);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the process of the window may take to end.
const FAREWELL: Duration = Duration::from_secs(1);

type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Opens the window and writes down what it is sent, one line an event, until standard input ends. What the program does when
/// its first argument is [`WINDOW`].
pub fn serve() -> ExitCode {
    if open_and_listen().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn open_and_listen() -> Outcome<()> {
    let (connection, screen) = RustConnection::connect(None)?;
    let root = &connection.setup().roots[screen];
    let channel = |byte: u8| u16::from(byte) << 8 | u16::from(byte);
    let [red, green, blue] = COLOUR.map(channel);
    let pixel = connection.alloc_color(root.default_colormap, red, green, blue)?.reply()?.pixel;
    let window = connection.generate_id()?;
    let place = |whole: u16, part: u16| i16::try_from(whole.saturating_sub(part) / 2).unwrap_or(0);
    connection.create_window(
        x11rb::COPY_DEPTH_FROM_PARENT,
        window,
        root.root,
        place(root.width_in_pixels, SIZE.0),
        place(root.height_in_pixels, SIZE.1),
        SIZE.0,
        SIZE.1,
        0,
        WindowClass::INPUT_OUTPUT,
        x11rb::COPY_FROM_PARENT,
        &CreateWindowAux::new()
            .background_pixel(pixel)
            .event_mask(EventMask::BUTTON_PRESS | EventMask::KEY_PRESS | EventMask::STRUCTURE_NOTIFY),
    )?;
    let pid = std::process::id();
    let title = format!("{TITLE} {pid}");
    let atom =
        |name: &str| -> Outcome<u32> { Ok(connection.intern_atom(false, name.as_bytes())?.reply()?.atom) };
    let (name, text, process) = (atom("_NET_WM_NAME")?, atom("UTF8_STRING")?, atom("_NET_WM_PID")?);
    connection.change_property8(PropMode::REPLACE, window, name, text, title.as_bytes())?;
    connection.change_property8(
        PropMode::REPLACE,
        window,
        AtomEnum::WM_NAME,
        AtomEnum::STRING,
        title.as_bytes(),
    )?;
    connection.change_property8(
        PropMode::REPLACE,
        window,
        AtomEnum::WM_CLASS,
        AtomEnum::STRING,
        b"agent-desktop-self-test\0Agent-desktop-self-test\0",
    )?;
    connection.change_property32(PropMode::REPLACE, window, process, AtomEnum::CARDINAL, &[pid])?;
    // WM_HINTS with `input`: whoever manages windows may give it the keyboard.
    let hints = [1, 1, 0, 0, 0, 0, 0, 0, 0];
    connection.change_property32(
        PropMode::REPLACE,
        window,
        AtomEnum::WM_HINTS,
        AtomEnum::WM_HINTS,
        &hints,
    )?;
    connection.map_window(window)?;
    connection.flush()?;
    let end = Instant::now() + LIFE;
    loop {
        while let Some(event) = connection.poll_for_event()? {
            tell(&connection, &event)?;
        }
        if is_left(&connection, end)? {
            return Ok(());
        }
    }
}

/// Waits for an event; true when standard input has ended, or time is over.
fn is_left(connection: &RustConnection, end: Instant) -> Outcome<bool> {
    let left = end.saturating_duration_since(Instant::now());
    let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    let input = std::io::stdin();
    let stream = connection.stream().as_fd();
    let mut both = [PollFd::new(&input, PollFlags::IN), PollFd::from_borrowed_fd(stream, PollFlags::IN)];
    match poll(&mut both, Some(&timeout)) {
        Ok(count) => Ok(count == 0 || !both[0].revents().is_empty()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// `shown`, `button NUMBER X Y ORIGIN`, `key KEYSYM ORIGIN`; the origin is `server` for what came from the input of the display,
/// `client` for what a program put there.
fn tell(connection: &RustConnection, event: &Event) -> Outcome<()> {
    let origin = if event.sent_event() { "client" } else { "server" };
    let line = match event {
        Event::MapNotify(_) => "shown".to_owned(),
        Event::ButtonPress(event) => {
            format!("button {} {} {} {origin}", event.detail, event.event_x, event.event_y)
        }
        Event::KeyPress(event) => {
            let map = connection.get_keyboard_mapping(event.detail, 1)?.reply()?;
            format!("key {:x} {origin}", map.keysyms.first().copied().unwrap_or(0))
        }
        _ => return Ok(()),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

/// The process with the window, and what it says.
struct Fixture {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Fixture {
    fn start() -> std::io::Result<Fixture> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(WINDOW)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            crate::signals::leave_to_others();
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                if line.is_ok_and(|line| sender.send(line).is_err()) {
                    return;
                }
            }
        });
        Ok(Fixture { child, input, lines })
    }

    /// The next line that begins so.
    fn wait(&self, start: &str, until: Instant) -> Option<String> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).ok()?;
            if line.starts_with(start) {
                return Some(line);
            }
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(self.input.take());
        let end = Instant::now() + FAREWELL;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts the pointer and the focus back.
struct Before<'a> {
    display: &'a X11,
    pointer: Option<Point>,
    active: Option<WindowId>,
}

impl Drop for Before<'_> {
    fn drop(&mut self) {
        let until = || Instant::now() + STEP;
        if let Some(pointer) = self.pointer {
            let _ = self.display.move_pointer(pointer, until());
        }
        if let Some(active) = self.active {
            let _ = self.display.activate(active, until());
        }
    }
}

const STEPS: [(&str, &str); 4] = [
    ("self_test_window", "a window that is opened is listed, with its process and its place"),
    ("self_test_picture", "a picture of a window shows what the window shows"),
    ("self_test_pointer", "a click reaches the window at its place"),
    ("self_test_keyboard", "a key reaches the window that has the focus"),
];

/// What a step found, or why it failed.
type Step = std::result::Result<String, String>;

fn words(error: &dyn std::fmt::Display) -> String {
    error.to_string()
}

fn wait_window(display: &X11, pid: u32, until: Instant) -> std::result::Result<Window, String> {
    loop {
        let list = display.windows(until).map_err(|error| words(&error))?;
        let is_ours = |window: &Window| {
            window.title.starts_with(TITLE) && (window.pid == Some(pid) || window.claimed_pid == Some(pid))
        };
        if let Some(window) = list.windows.into_iter().find(|window| is_ours(window) && window.is_visible) {
            return Ok(window);
        }
        if Instant::now() >= until {
            return Err("a window was opened and is not in the list of windows".to_owned());
        }
        std::thread::sleep(PAUSE);
    }
}

fn picture(display: &X11, window: &Window, until: Instant) -> Step {
    let capture = display.capture_window(window.id, until).map_err(|error| words(&error))?;
    let middle = Rectangle::new(
        window.client.x + window.client.width as i32 / 4,
        window.client.y + window.client.height as i32 / 4,
        window.client.width / 2,
        window.client.height / 2,
    );
    let (mut same, mut all) = (0_u32, 0_u32);
    for y in middle.y..middle.bottom() {
        for x in middle.x..middle.right() {
            let (Ok(column), Ok(row)) = ((x - capture.area.x).try_into(), (y - capture.area.y).try_into())
            else {
                continue;
            };
            let Some(pixel) = capture.image.pixel(column, row) else { continue };
            all += 1;
            let is_same = pixel.iter().zip(COLOUR).all(|(one, other)| one.abs_diff(other) <= TOLERANCE);
            same += u32::from(is_same);
        }
    }
    let seen = format!("{same} of {all} pixels in the middle of the window have its colour");
    if all > 0 && same == all { Ok(seen) } else { Err(seen) }
}

fn click(display: &X11, fixture: &Fixture, window: &Window, until: Instant) -> Step {
    let (width, height) = (window.client.width as i32, window.client.height as i32);
    let middle = Point { x: window.client.x + width / 2, y: window.client.y + height / 2 };
    let hit = display.window_at(middle, until).map_err(|error| words(&error))?;
    // Nobody else's window is clicked.
    if hit.and_then(|hit| hit.window) != Some(window.id) {
        return Err("another window covers it, so nothing was clicked".to_owned());
    }
    display.click(middle, Button::Left, 1, &[], until).map_err(|error| words(&error))?;
    let expected = format!("button 1 {} {} server", width / 2, height / 2);
    match fixture.wait("button ", until) {
        Some(line) if line == expected => Ok(format!("the window was sent `{line}`")),
        Some(line) => Err(format!("the window was sent `{line}` instead of `{expected}`")),
        None => Err("the button was pressed, and the window was sent nothing".to_owned()),
    }
}

fn press(display: &X11, fixture: &Fixture, window: &Window, until: Instant) -> Step {
    display.activate(window.id, until).map_err(|error| words(&error))?;
    // What has the focus gets the key; it must not be anybody else's window.
    while display.active_window(until).map_err(|error| words(&error))? != Some(window.id) {
        if Instant::now() + PAUSE >= until {
            return Err("the window does not get the focus, so no key was pressed".to_owned());
        }
        std::thread::sleep(PAUSE);
    }
    let key = keysym_for_character(KEY).ok_or("no key gives it")?;
    display.press_chord(&[], key, until).map_err(|error| words(&error))?;
    let expected = format!("key {key:x} server");
    match fixture.wait("key ", until) {
        Some(line) if line == expected => Ok(format!("the window was sent `{line}`")),
        Some(line) => Err(format!("the window was sent `{line}` instead of `{expected}`")),
        None => Err("the key was pressed, and the window was sent nothing".to_owned()),
    }
}

impl Linux {
    /// Opens a window, and sees that it is listed, pictured, clicked and typed into.
    pub(crate) fn prove(&self, deadline: Deadline) -> Vec<Check> {
        let until = || deadline.at().min(Instant::now() + STEP);
        let mut done: Vec<Step> = Vec::new();
        let mut skipped = "the step before failed".to_owned();
        match self.display(deadline.within(Instant::now(), STEP)) {
            Err(error) => skipped = format!("there is no display: {error}"),
            Ok(display) => done = prove_on(display, &until),
        }
        let checks = STEPS.iter().enumerate().map(|(index, &(id, why))| match done.get(index) {
            Some(Ok(seen)) => Check::new(id, why, CheckState::Ok, seen.clone()),
            Some(Err(seen)) => Check::new(id, why, CheckState::Failed, seen.clone())
                .advise("see the checks of the display, the window manager and the input"),
            None => Check::new(id, why, CheckState::Skipped, skipped.clone()),
        });
        checks.collect()
    }
}

fn prove_on(display: &X11, until: &dyn Fn() -> Instant) -> Vec<Step> {
    let before = Before {
        display,
        pointer: display.pointer(until()).ok().map(|pointer| pointer.position),
        active: display.active_window(until()).ok().flatten(),
    };
    let fixture = match Fixture::start() {
        Ok(fixture) => fixture,
        Err(error) => return vec![Err(format!("the process of the window cannot be started: {error}"))],
    };
    let steps = prove_with(display, &fixture, until);
    // The window goes before the focus is put back, or its end would move the focus again.
    drop(fixture);
    drop(before);
    steps
}

fn prove_with(display: &X11, fixture: &Fixture, until: &dyn Fn() -> Instant) -> Vec<Step> {
    if fixture.wait("shown", until()).is_none() {
        return vec![Err("a window was opened and never came on the screen".to_owned())];
    }
    let window = match wait_window(display, fixture.child.id(), until()) {
        Ok(window) => window,
        Err(cause) => return vec![Err(cause)],
    };
    let area = window.client;
    let seen = format!(
        "{:?}, pid {}, {}x{} at {},{}",
        window.title,
        fixture.child.id(),
        area.width,
        area.height,
        area.x,
        area.y
    );
    vec![
        Ok(seen),
        picture(display, &window, until()),
        click(display, fixture, &window, until()),
        press(display, fixture, &window, until()),
    ]
}
