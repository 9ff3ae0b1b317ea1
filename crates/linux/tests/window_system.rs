//! The window system against a real X server: Xvfb, with and without openbox.
//!
//! Every test starts its own server and ends exactly that. What happened is always asked from another side than the one
//! that did it: clients written here count their events, and real programs write what was typed to a file. When a
//! program is not installed, that is printed and the test passes as not run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use agent_desktop_linux::window_system::{
    Button, Drag, Point, Rectangle, TypingOptions, Window, WindowId, WindowState, WindowSystemError, X11,
    encode_png, keysym_for_name,
};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeGCAux, ConfigureWindowAux, ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask,
    PropMode, Rectangle as XRectangle, WindowClass,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

const RED: u32 = 0x00c0_1010;
const BLUE: u32 = 0x0010_10c0;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An X server, maybe with a window manager. Fields are dropped in order: the server last.
struct Desk {
    window_manager: Option<Running>,
    display: String,
    _server: Running,
}

impl Desk {
    /// `None`: Xvfb (or the window manager) is not installed.
    fn start(window_manager: Option<&str>) -> Option<Self> {
        let spawned = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1000x700x24", "-nolisten", "tcp", "-noreset"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = spawned else {
            eprintln!("NOT RUN: Xvfb is not installed");
            return None;
        };
        let mut number = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut number).ok()?;
        let display = format!(":{}", number.trim());
        let mut desk = Self { window_manager: None, display, _server: Running(child) };
        if let Some(name) = window_manager {
            let Ok(child) = desk.command(name).spawn() else {
                eprintln!("NOT RUN: {name} is not installed");
                return None;
            };
            desk.window_manager = Some(Running(child));
            let server = desk.connect();
            wait(|| server.windows(soon()).unwrap().has_window_manager);
        }
        Some(desk)
    }

    fn connect(&self) -> X11 {
        X11::connect(Some(&self.display), soon()).unwrap()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DISPLAY", &self.display).env("GDK_BACKEND", "x11").env("QT_QPA_PLATFORM", "xcb");
        command.env_remove("WAYLAND_DISPLAY").env("NO_AT_BRIDGE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn client(&self) -> Client {
        let (wire, screen) = x11rb::connect(Some(&self.display)).unwrap();
        let root = wire.setup().roots[screen].root;
        Client { wire, root }
    }
}

#[track_caller]
fn wait(mut is_done: impl FnMut() -> bool) {
    let limit = soon();
    while !is_done() {
        assert!(Instant::now() < limit, "did not happen in time");
        sleep(Duration::from_millis(10));
    }
}

/// A small X client of our own.
struct Client {
    wire: RustConnection,
    root: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Look {
    /// The server paints it.
    Colour(u32),
    /// Nobody does, once it has been drawn over.
    Unpainted,
}

impl Client {
    fn window(&self, title: &str, area: Rectangle, look: Look, is_popup: bool) -> WindowId {
        let window = self.wire.generate_id().unwrap();
        let mask = EventMask::BUTTON_PRESS
            | EventMask::BUTTON_RELEASE
            | EventMask::KEY_PRESS
            | EventMask::KEY_RELEASE
            | EventMask::STRUCTURE_NOTIFY;
        let mut look_of = CreateWindowAux::new().event_mask(mask).override_redirect(u32::from(is_popup));
        if let Look::Colour(colour) = look {
            look_of = look_of.background_pixel(colour);
        }
        self.wire
            .create_window(
                0,
                window,
                self.root,
                area.x as i16,
                area.y as i16,
                area.width as u16,
                area.height as u16,
                0,
                WindowClass::INPUT_OUTPUT,
                0,
                &look_of,
            )
            .unwrap();
        self.wire
            .change_property8(
                PropMode::REPLACE,
                window,
                AtomEnum::WM_NAME,
                AtomEnum::STRING,
                title.as_bytes(),
            )
            .unwrap();
        let class = format!("{title}\0Test\0");
        self.wire
            .change_property8(
                PropMode::REPLACE,
                window,
                AtomEnum::WM_CLASS,
                AtomEnum::STRING,
                class.as_bytes(),
            )
            .unwrap();
        // USPosition: the window manager keeps the place.
        let mut hints = [0u32; 18];
        hints[0] = 1;
        self.wire
            .change_property32(
                PropMode::REPLACE,
                window,
                AtomEnum::WM_NORMAL_HINTS,
                AtomEnum::WM_SIZE_HINTS,
                &hints,
            )
            .unwrap();
        let protocols = self.atom("WM_PROTOCOLS");
        let delete = self.atom("WM_DELETE_WINDOW");
        self.wire.change_property32(PropMode::REPLACE, window, protocols, AtomEnum::ATOM, &[delete]).unwrap();
        self.wire.map_window(window).unwrap();
        self.wire.sync().unwrap();
        // openbox 3.6.1 may read the request to map while it waits for a reply, and then not look at it until the next
        // event arrives. So it gets one more.
        sleep(Duration::from_millis(50));
        let poke = self.atom("_AGENT_DESKTOP_TEST");
        self.wire.change_property8(PropMode::REPLACE, self.root, poke, AtomEnum::STRING, b"").unwrap();
        self.wire.sync().unwrap();
        WindowId(window)
    }

    fn atom(&self, name: &str) -> u32 {
        self.wire.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom
    }

    fn place(&self, window: u32, area: XRectangle, colour: u32) {
        let context = self.wire.generate_id().unwrap();
        self.wire.create_gc(context, window, &CreateGCAux::new()).unwrap();
        self.wire.change_gc(context, &ChangeGCAux::new().foreground(colour)).unwrap();
        self.wire.poly_fill_rectangle(window, context, &[area]).unwrap();
        self.wire.sync().unwrap();
    }

    fn events(&self) -> Vec<Event> {
        self.wire.sync().unwrap();
        std::iter::from_fn(|| self.wire.poll_for_event().unwrap()).collect()
    }

    fn raise(&self, window: WindowId) {
        let above = ConfigureWindowAux::new().stack_mode(x11rb::protocol::xproto::StackMode::ABOVE);
        self.wire.configure_window(window.0, &above).unwrap();
        self.wire.sync().unwrap();
    }
}

fn find(server: &X11, id: WindowId) -> Option<Window> {
    server.windows(soon()).unwrap().windows.into_iter().find(|window| window.id == id)
}

/// For a person to look at: set `AGENT_DESKTOP_TEST_PICTURES` to a folder.
fn keep_picture(name: &str, image: &agent_desktop_linux::window_system::Image) {
    if let Some(folder) = std::env::var_os("AGENT_DESKTOP_TEST_PICTURES") {
        std::fs::write(PathBuf::from(folder).join(name), encode_png(image)).unwrap();
    }
}

fn colour(pixel: [u8; 4]) -> u32 {
    u32::from(pixel[0]) << 16 | u32::from(pixel[1]) << 8 | u32::from(pixel[2])
}

#[test]
fn windows_under_a_window_manager() {
    let Some(desk) = Desk::start(Some("openbox")) else { return };
    let server = desk.connect();
    let client = desk.client();
    let one = client.window("one", Rectangle::new(100, 120, 300, 200), Look::Colour(RED), false);
    let two = client.window("two", Rectangle::new(250, 200, 300, 200), Look::Colour(BLUE), false);
    wait(|| find(&server, two).is_some_and(|window| window.is_visible && window.top_level != window.id));
    wait(|| find(&server, one).is_some_and(|window| window.is_visible && window.top_level != window.id));
    let popup = client.window("menu", Rectangle::new(500, 300, 60, 80), Look::Colour(RED), true);
    let list = server.windows(soon()).unwrap();
    assert!(list.has_window_manager);
    assert_eq!(list.popups.iter().map(|popup| popup.id).collect::<Vec<_>>(), [popup]);
    assert_eq!(list.popups[0].area, Rectangle::new(500, 300, 60, 80));
    assert_eq!(list.popups[0].pid, Some(std::process::id()));

    let window = find(&server, one).unwrap();
    assert_eq!(
        (window.title.as_str(), window.instance.as_str(), window.class.as_str()),
        ("one", "one", "Test")
    );
    // No _NET_WM_PID was set, so this comes from the server.
    assert_eq!((window.pid, window.claimed_pid), (Some(std::process::id()), None));
    let truth = client.wire.translate_coordinates(one.0, client.root, 0, 0).unwrap().reply().unwrap();
    assert_eq!(window.client, Rectangle::new(truth.dst_x.into(), truth.dst_y.into(), 300, 200));
    assert_eq!(window.frame.intersection(&window.client), Some(window.client));
    assert!(window.frame.height > window.client.height, "no title bar: {window:?}");

    // Hit tests: content, title bar, popup, root.
    server.activate(two, soon()).unwrap();
    wait(|| server.active_window(soon()).unwrap() == Some(two));
    assert!(find(&server, two).unwrap().is_focused && !find(&server, one).unwrap().is_focused);
    let two_now = find(&server, two).unwrap();
    let hit = |x, y| server.window_at(Point { x, y }, soon()).unwrap();
    let inside = hit(two_now.client.x + 5, two_now.client.y + 5).unwrap();
    assert_eq!((inside.window, inside.is_on_frame, inside.is_popup), (Some(two), false, false));
    let title = hit(two_now.frame.x + 40, two_now.frame.y + 8).unwrap();
    assert_eq!((title.window, title.is_on_frame), (Some(two), true));
    client.raise(popup);
    let on_popup = hit(510, 310).unwrap();
    assert_eq!((on_popup.window, on_popup.is_popup), (Some(popup), true));
    assert_eq!(hit(990, 690), None);
    assert_eq!(hit(-5, 3), None);

    server.minimize(one, soon()).unwrap();
    wait(|| find(&server, one).unwrap().state == WindowState::Minimized);
    assert!(!find(&server, one).unwrap().is_visible);
    assert!(matches!(server.capture_window(one, soon()), Err(WindowSystemError::NotViewable { .. })));
    server.restore(one, soon()).unwrap();
    wait(|| find(&server, one).unwrap().is_visible);
    server.maximize(one, soon()).unwrap();
    wait(|| find(&server, one).unwrap().state == WindowState::Maximized);
    server.restore(one, soon()).unwrap();
    wait(|| find(&server, one).unwrap().state == WindowState::Normal);
    let wanted = Rectangle::new(33, 44, 400, 260);
    server
        .move_resize(
            one,
            Some(Point { x: wanted.x, y: wanted.y }),
            Some((wanted.width, wanted.height)),
            soon(),
        )
        .unwrap();
    wait(|| find(&server, one).unwrap().frame == wanted);
    let tiny = server.move_resize(one, None, Some((1, 1)), soon());
    assert!(matches!(tiny, Err(WindowSystemError::InvalidArgument { .. })), "{tiny:?}");

    client.events();
    server.close_window(one, soon()).unwrap();
    wait(|| {
        client
            .events()
            .iter()
            .any(|event| matches!(event, Event::ClientMessage(event) if event.window == one.0))
    });
    client.wire.destroy_window(one.0).unwrap();
    client.wire.sync().unwrap();
    assert!(matches!(server.activate(one, soon()), Err(WindowSystemError::Gone { .. })));
    assert!(matches!(server.close_window(one, soon()), Err(WindowSystemError::Gone { .. })));
    assert!(matches!(server.capture_window(one, soon()), Err(WindowSystemError::Gone { .. })));
}

#[test]
fn a_dead_window_manager_is_noticed() {
    let Some(mut desk) = Desk::start(Some("openbox")) else { return };
    let server = desk.connect();
    let client = desk.client();
    let window = client.window("left", Rectangle::new(100, 100, 200, 100), Look::Colour(RED), false);
    wait(|| find(&server, window).is_some_and(|window| window.top_level != window.id));
    // Killed, it cannot clean up: the root still carries its client list.
    desk.window_manager = None;
    wait(|| !server.windows(soon()).unwrap().has_window_manager);
    wait(|| find(&server, window).is_some_and(|window| window.top_level == window.id && window.is_visible));
    server.activate(window, soon()).unwrap();
    assert_eq!(server.active_window(soon()).unwrap(), Some(window));
    assert!(matches!(server.minimize(window, soon()), Err(WindowSystemError::Unsupported { .. })));
}

#[test]
fn windows_without_a_window_manager() {
    let Some(desk) = Desk::start(None) else { return };
    let server = desk.connect();
    let client = desk.client();
    let window = client.window("alone", Rectangle::new(100, 100, 200, 100), Look::Colour(RED), false);
    let popup = client.window("menu", Rectangle::new(150, 150, 50, 50), Look::Colour(BLUE), true);
    let list = server.windows(soon()).unwrap();
    assert!(!list.has_window_manager);
    assert_eq!(list.windows.iter().map(|window| window.id).collect::<Vec<_>>(), [window]);
    assert_eq!(list.popups.iter().map(|popup| popup.id).collect::<Vec<_>>(), [popup]);
    assert!(list.popups[0].stacking > list.windows[0].stacking);
    server.activate(window, soon()).unwrap();
    assert!(find(&server, window).unwrap().is_focused);
    server.move_resize(window, Some(Point { x: 7, y: 8 }), Some((90, 80)), soon()).unwrap();
    assert_eq!(find(&server, window).unwrap().frame, Rectangle::new(7, 8, 90, 80));
    let displays = server.displays(soon()).unwrap();
    assert_eq!(displays.len(), 1);
    assert_eq!((displays[0].area, displays[0].is_primary), (Rectangle::new(0, 0, 1000, 700), true));
}

#[test]
fn a_capture_never_holds_foreign_pixels() {
    let Some(desk) = Desk::start(None) else { return };
    let server = desk.connect();
    let client = desk.client();
    let painted = client.window("painted", Rectangle::new(100, 100, 200, 100), Look::Colour(RED), false);
    let stale = client.window("stale", Rectangle::new(500, 100, 200, 100), Look::Unpainted, false);
    client.place(stale.0, XRectangle { x: 0, y: 0, width: 200, height: 100 }, 0x0010_c010);
    let only = |window: WindowId, wanted: u32, name: &str| {
        let capture = server.capture_window(window, soon()).unwrap();
        keep_picture(name, &capture.image);
        for pixel in capture.image.pixels().chunks_exact(4) {
            assert_eq!(colour(pixel.try_into().unwrap()), wanted, "{name}");
        }
        capture.area
    };
    assert_eq!(only(painted, RED, "painted.png"), Rectangle::new(100, 100, 200, 100));
    only(stale, 0x0010_c010, "stale.png");

    let cover = client.window("cover", Rectangle::new(150, 120, 400, 50), Look::Colour(BLUE), true);
    let region = server.capture_region(Rectangle::new(90, 90, 100, 100), soon()).unwrap();
    keep_picture("region.png", &region.image);
    assert_eq!(region.image.pixel(15, 15).map(colour), Some(RED));
    assert_eq!(region.image.pixel(70, 40).map(colour), Some(BLUE));
    only(painted, RED, "covered.png");
    only(cover, BLUE, "cover.png");
    // Nobody repaints this one, so the covered part cannot be had, and the error says who covers it.
    match server.capture_window(stale, soon()) {
        Err(WindowSystemError::Obscured { window, by, .. }) => assert_eq!((window, by), (stale, vec![cover])),
        other => panic!("{other:?}"),
    }
    // Capturing has left nothing behind on screen.
    let after = server.capture_region(Rectangle::new(90, 90, 100, 100), soon()).unwrap();
    assert_eq!(after, region);

    client.wire.unmap_window(cover.0).unwrap();
    client.wire.configure_window(painted.0, &ConfigureWindowAux::new().x(-50).y(650)).unwrap();
    client.wire.sync().unwrap();
    assert_eq!(only(painted, RED, "off-screen.png"), Rectangle::new(-50, 650, 200, 100));
    let outside = server.capture_region(Rectangle::new(2000, 0, 10, 10), soon());
    assert!(matches!(outside, Err(WindowSystemError::OutsideScreen { .. })));
}

#[test]
fn a_server_that_does_not_answer_hits_the_deadline() {
    let Some(desk) = Desk::start(None) else { return };
    let server = desk.connect();
    let other = desk.client();
    other.wire.grab_server().unwrap();
    other.wire.sync().unwrap();
    let start = Instant::now();
    let outcome = server.windows(Instant::now() + Duration::from_millis(200));
    assert!(matches!(outcome, Err(WindowSystemError::Timeout { .. })), "{outcome:?}");
    assert!(matches!(
        X11::connect(Some(&desk.display), Instant::now() + Duration::from_millis(200)),
        Err(WindowSystemError::Timeout { .. })
    ));
    assert!(start.elapsed() < Duration::from_secs(2));
    other.wire.ungrab_server().unwrap();
    other.wire.sync().unwrap();
    // The late replies do not confuse what follows.
    assert!(server.windows(soon()).unwrap().windows.is_empty());
    assert!(matches!(X11::connect(Some(":4711"), soon()), Err(WindowSystemError::Connect { .. })));
}

#[test]
fn clicks_wheels_and_drags_arrive_and_let_go() {
    let Some(desk) = Desk::start(None) else { return };
    let server = desk.connect();
    let client = desk.client();
    client.window("target", Rectangle::new(0, 0, 900, 600), Look::Colour(RED), false);
    let point = Point { x: 200, y: 150 };
    // (is press, button, x, y, state)
    let buttons = || -> Vec<(bool, u8, i16, i16, u16)> {
        client
            .events()
            .iter()
            .filter_map(|event| match event {
                Event::ButtonPress(event) => {
                    Some((true, event.detail, event.root_x, event.root_y, event.state.into()))
                }
                Event::ButtonRelease(event) => {
                    Some((false, event.detail, event.root_x, event.root_y, event.state.into()))
                }
                _ => None,
            })
            .collect()
    };
    server.click(point, Button::Left, 2, &[], soon()).unwrap();
    let seen = buttons();
    assert_eq!(
        seen.iter().map(|event| (event.0, event.1)).collect::<Vec<_>>(),
        [(true, 1), (false, 1), (true, 1), (false, 1)]
    );
    assert!(seen.iter().all(|event| (event.2, event.3) == (200, 150)));

    // A left-handed user's buttons are swapped; applications must still see the one asked for.
    let usual = client.wire.get_pointer_mapping().unwrap().reply().unwrap().map;
    let mut swapped = usual.clone();
    swapped.swap(0, 2);
    client.wire.set_pointer_mapping(&swapped).unwrap().reply().unwrap();
    server.click(point, Button::Right, 1, &[keysym_for_name("ctrl").unwrap()], soon()).unwrap();
    let seen = buttons();
    assert_eq!(
        seen.iter().map(|event| (event.0, event.1, event.4 & 4)).collect::<Vec<_>>(),
        [(true, 3, 4), (false, 3, 4)]
    );
    client.wire.set_pointer_mapping(&usual).unwrap().reply().unwrap();

    server.wheel(point, 2, -12, &[], soon()).unwrap();
    let presses: Vec<u8> = buttons().iter().filter(|event| event.0).map(|event| event.1).collect();
    assert_eq!(presses, [[5; 12].as_slice(), &[6; 2]].concat());

    let drag = Drag {
        from: point,
        to: Point { x: 400, y: 350 },
        button: Button::Left,
        duration: Duration::from_millis(100),
        drop_delay: Duration::from_millis(50),
        modifiers: Vec::new(),
    };
    server.drag(&drag, soon()).unwrap();
    let seen = buttons();
    assert_eq!((seen[0].0, seen[0].2, seen[0].3), (true, 200, 150));
    assert_eq!((seen[1].0, seen[1].2, seen[1].3), (false, 400, 350));

    // Too little time: nothing is sent.
    let outcome = server.drag(&drag, Instant::now() + Duration::from_millis(100));
    assert!(matches!(outcome, Err(WindowSystemError::TooLate { .. })), "{outcome:?}");
    assert!(buttons().is_empty());
    assert!(!server.pointer(soon()).unwrap().is_button_down);
    let outside = server.click(Point { x: 5000, y: 1 }, Button::Left, 1, &[], soon());
    assert!(matches!(outside, Err(WindowSystemError::OutsideScreen { .. })));
}

#[test]
fn a_drag_that_breaks_off_is_released_where_it_began() {
    let Some(desk) = Desk::start(None) else { return };
    let server = desk.connect();
    let client = desk.client();
    client.window("target", Rectangle::new(0, 0, 900, 600), Look::Colour(RED), false);
    let other = desk.client();
    let display = desk.display.clone();
    let drag = Drag {
        from: Point { x: 50, y: 60 },
        to: Point { x: 400, y: 350 },
        button: Button::Left,
        duration: Duration::from_millis(400),
        drop_delay: Duration::ZERO,
        modifiers: Vec::new(),
    };
    // In the midst of it the server stops answering until after the deadline.
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(400));
            other.wire.grab_server().unwrap();
            other.wire.sync().unwrap();
            sleep(Duration::from_millis(500));
            other.wire.ungrab_server().unwrap();
            other.wire.sync().unwrap();
        });
        server.drag(&drag, Instant::now() + Duration::from_millis(750))
    });
    assert!(
        matches!(outcome, Err(WindowSystemError::Timeout { started: true, .. })),
        "{outcome:?} on {display}"
    );
    wait(|| !server.pointer(soon()).unwrap().is_button_down);
    let released = client.events().into_iter().find_map(|event| match event {
        Event::ButtonRelease(event) => Some((event.root_x, event.root_y)),
        _ => None,
    });
    assert_eq!(released, Some((50, 60)));
}

/// The keyboard map and which keys are down: what typing must leave as it was.
fn keyboard(client: &Client) -> (Vec<u32>, [u8; 32], u8) {
    let map = client.wire.get_keyboard_mapping(8, 248).unwrap().reply().unwrap().keysyms;
    let keys = client.wire.query_keymap().unwrap().reply().unwrap().keys;
    let state = client.wire.query_pointer(client.root).unwrap().reply().unwrap().mask;
    (map, keys, u16::from(state) as u8)
}

#[test]
fn typing_leaves_the_keyboard_as_it_was() {
    let Some(desk) = Desk::start(None) else { return };
    let server = desk.connect();
    let client = desk.client();
    let window = client.window("target", Rectangle::new(0, 0, 900, 600), Look::Colour(RED), false);
    server.activate(window, soon()).unwrap();
    let before = keyboard(&client);
    assert_eq!(server.type_text("aB П🙂\r\n", TypingOptions::default(), soon()).unwrap(), 6);
    assert_eq!(keyboard(&client), before);
    let presses = client.events().iter().filter(|event| matches!(event, Event::KeyPress(_))).count();
    assert_eq!(presses, 7, "six characters and one Shift");

    // Nothing is sent of a text that cannot be typed whole.
    let refused = server.type_text("ab\u{1b}", TypingOptions::default(), soon()).unwrap_err();
    assert_eq!(refused.sent, 0);
    assert!(matches!(refused.cause, WindowSystemError::Untypable { index: 2, .. }));
    assert!(client.events().iter().all(|event| !matches!(event, Event::KeyPress(_))));

    // A deadline in the middle: counted, nothing held, map restored.
    let slow = TypingOptions { pause: Duration::from_millis(20) };
    let text = "ABCDEFGHIJП".repeat(20);
    let stopped = server.type_text(&text, slow, Instant::now() + Duration::from_millis(600)).unwrap_err();
    assert!(matches!(stopped.cause, WindowSystemError::Timeout { started: true, .. }), "{stopped}");
    assert!((1..220).contains(&stopped.sent), "{}", stopped.sent);
    assert_eq!(keyboard(&client), before);
    client.events();

    // Somebody holds Control, and CapsLock is on.
    let keycode = |keysym: u32| {
        let width = before.0.len() / 248;
        8 + (before.0.iter().position(|candidate| *candidate == keysym).unwrap() / width) as u8
    };
    let fake = |kind: u8, keysym: u32| {
        client.wire.xtest_fake_input(kind, keycode(keysym), 0, 0, 0, 0, 0).unwrap();
        client.wire.sync().unwrap();
    };
    fake(2, 0xffe5);
    fake(3, 0xffe5);
    fake(2, 0xffe3);
    assert_eq!(keyboard(&client).2 & 6, 6, "Control and Lock are on");
    client.events();
    server.type_text("aé", TypingOptions::default(), soon()).unwrap();
    for event in client.events() {
        if let Event::KeyPress(event) = event {
            assert_eq!(u16::from(event.state), 0, "typed with modifiers");
        }
    }
    assert_eq!(keyboard(&client).2 & 6, 2, "CapsLock is back, Control is not held");
    fake(2, 0xffe5);
    fake(3, 0xffe5);

    // A chord holds its modifiers around its key and lets go of all.
    client.events();
    let names = ["ctrl", "shift"].map(|name| keysym_for_name(name).unwrap());
    server.press_chord(&names, keysym_for_name("k").unwrap(), soon()).unwrap();
    let states: Vec<u16> = client
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::KeyPress(event) => Some(event.state.into()),
            _ => None,
        })
        .collect();
    assert_eq!(states, [0, 4, 5]);
    assert_eq!(keyboard(&client), before);
}

/// The line of the reports, then more foreign characters than there are spare keys, so that every level of those is used
/// and the map changes twice.
const TEXT: &str = "Hello, World! @#{}[]~ äöüß é П 你好 🙂\n\
    абвгдежзийклмнопрстуфхцчшщъыьэюя АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ αβγδεζηθικλμνξοπρστυφχψω ΑΒΓΔ";

const GTK: &str = r"
import gi, sys
gi.require_version('Gtk', '3.0')
from gi.repository import Gtk
window = Gtk.Window(title='entry'); view = Gtk.TextView(); window.add(view)
text = view.get_buffer()
def write(*_):
    open(sys.argv[1], 'w').write(text.get_text(text.get_start_iter(), text.get_end_iter(), True))
text.connect('changed', write)
window.show_all(); Gtk.main()
";

const QT: &str = r"
import sys
from PyQt5.QtWidgets import QApplication, QPlainTextEdit
application = QApplication(sys.argv); view = QPlainTextEdit(); view.setWindowTitle('entry')
view.textChanged.connect(lambda: open(sys.argv[1], 'w').write(view.toPlainText()))
view.show(); application.exec_()
";

/// Reports in <https://github.com/ilysenko/codex-desktop-linux/issues/132> and trycua/cua#2314: wrong characters on
/// every layout but one, whole alphabets skipped in silence.
fn types_in_every_layout(toolkit: &str, script: &str) {
    let probe = Command::new("/usr/bin/python3")
        .args([
            "-c",
            if toolkit == "gtk" {
                "import gi; gi.require_version('Gtk', '3.0')"
            } else {
                "import PyQt5.QtWidgets"
            },
        ])
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("NOT RUN: no {toolkit} for /usr/bin/python3");
        return;
    }
    let Some(desk) = Desk::start(Some("openbox")) else { return };
    let server = desk.connect();
    let client = desk.client();
    let file = std::env::temp_dir().join(format!("agent-desktop-typed-{toolkit}-{}", std::process::id()));
    for layout in ["us", "de", "fr", "cz", "ru", "us(dvorak)", "us,ru"] {
        if !desk.command("setxkbmap").arg(layout).status().is_ok_and(|status| status.success()) {
            eprintln!("NOT RUN: no setxkbmap");
            return;
        }
        let _ = std::fs::remove_file(&file);
        let program =
            Running(desk.command("/usr/bin/python3").arg("-c").arg(script).arg(&file).spawn().unwrap());
        let pid = program.0.id();
        wait(|| {
            server
                .windows(soon())
                .unwrap()
                .windows
                .iter()
                .any(|window| window.is_focused && window.pid == Some(pid))
        });
        let before = keyboard(&client);
        let count = server.type_text(TEXT, TypingOptions::default(), soon()).unwrap();
        assert_eq!(count, TEXT.chars().count());
        assert_eq!(keyboard(&client), before, "{toolkit} {layout}");
        assert_typed(&file, &format!("{toolkit} {layout}"));
    }
    let _ = std::fs::remove_file(&file);
}

#[track_caller]
fn assert_typed(file: &Path, what: &str) {
    let limit = Instant::now() + Duration::from_secs(3);
    loop {
        let typed = std::fs::read_to_string(file).unwrap_or_default();
        if typed == TEXT {
            return;
        }
        assert!(Instant::now() < limit, "{what}: {typed:?}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn types_into_gtk_in_every_layout() {
    types_in_every_layout("gtk", GTK);
}

#[test]
fn types_into_qt_in_every_layout() {
    types_in_every_layout("qt", QT);
}
