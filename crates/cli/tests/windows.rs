//! Window operations under several window managers. The judge is the X server, asked by `xwininfo` and `xprop`.

use std::time::Duration;

use agent_desktop_testkit::desktop::Area;
use agent_desktop_testkit::{App, Desktop, Setup, desktop_test, wait_until};

const SOON: Duration = Duration::from_secs(5);

/// Numbers of a property: left, right, top, bottom.
fn sides(desktop: &Desktop, window: u32, property: &str) -> [i32; 4] {
    let text = desktop.tool("xprop", &["-id", &window.to_string(), property]);
    let numbers =
        text.rsplit('=').next().expect("a value").split(',').filter_map(|side| side.trim().parse().ok());
    numbers.collect::<Vec<i32>>().try_into().unwrap_or_default()
}

/// Area of a window with the frame around it, without its shadow.
fn frame(desktop: &Desktop, window: u32) -> Area {
    let area = desktop.area(window);
    let [left, right, top, bottom] = sides(desktop, window, "_NET_FRAME_EXTENTS");
    let [shadow_left, shadow_right, shadow_top, shadow_bottom] = sides(desktop, window, "_GTK_FRAME_EXTENTS");
    Area {
        x: area.x - left + shadow_left,
        y: area.y - top + shadow_top,
        width: area.width + left + right - shadow_left - shadow_right,
        height: area.height + top + bottom - shadow_top - shadow_bottom,
    }
}

fn has_state(desktop: &Desktop, window: u32, state: &str) -> bool {
    desktop.tool("xprop", &["-id", &window.to_string(), "_NET_WM_STATE"]).contains(state)
}

fn is_iconic(desktop: &Desktop, window: u32) -> bool {
    desktop.tool("xprop", &["-id", &window.to_string(), "WM_STATE"]).contains("Iconic")
}

fn is_maximized(desktop: &Desktop, window: u32) -> bool {
    has_state(desktop, window, "_NET_WM_STATE_MAXIMIZED_VERT")
}

/// Every operation on one window, and that another window keeps the keyboard all the while.
fn operate(desktop: &Desktop, app: &App, other: &App) {
    let cli = desktop.cli();
    let window = app.window(desktop).id;
    let id = format!("w-{window:x}");
    cli.ok(&["focus-window", "--app", other.name()]);
    assert_eq!(desktop.active_window(), Some(other.window(desktop).id));

    let data = cli.ok(&["move-window", "--app", app.name(), "--x", "220", "--y", "140"]);
    assert_eq!(data["moved"], true, "{data:#}");
    let area = frame(desktop, window);
    assert!((area.x - 220).abs() <= 2 && (area.y - 140).abs() <= 2, "{area:?} {data:#}");

    let data = cli.ok(&["resize-window", "--window-id", &id, "--width", "701", "--height", "603"]);
    assert_eq!(data["resized"], true, "{data:#}");
    let area = frame(desktop, window);
    assert!((area.width - 701).abs() <= 2 && (area.height - 603).abs() <= 2, "{area:?} {data:#}");
    assert!((area.x - 220).abs() <= 2 && (area.y - 140).abs() <= 2, "resizing moved it: {area:?}");

    let data = cli.ok(&["maximize", "--window-id", &id]);
    assert_eq!((&data["maximized"], &data["window"]["maximized"]), (&true.into(), &true.into()), "{data:#}");
    assert!(is_maximized(desktop, window));
    assert!(frame(desktop, window).width >= 1000, "{:?}", frame(desktop, window));

    cli.ok(&["minimize", "--window-id", &id]);
    assert!(is_iconic(desktop, window));
    // What is minimized comes back as it was, then loses its size, then is left alone.
    cli.ok(&["restore", "--window-id", &id]);
    assert!(!is_iconic(desktop, window) && is_maximized(desktop, window));
    assert_eq!(desktop.active_window(), Some(other.window(desktop).id), "the keyboard was taken away");
    cli.ok(&["restore", "--window-id", &id]);
    assert!(!is_maximized(desktop, window));
    let area = frame(desktop, window);
    assert!((area.width - 701).abs() <= 2 && (area.height - 603).abs() <= 2, "{area:?}");
    let data = cli.ok(&["restore", "--window-id", &id]);
    assert_eq!(data["restored"], true, "{data:#}");

    wait_until("the keyboard to be where it was", SOON, || {
        desktop.active_window() == Some(other.window(desktop).id)
    });
}

fn under_this_window_manager(desktop: &Desktop) {
    let app = desktop.gtk3("controls");
    let other = desktop.qt6("controls");
    operate(desktop, &app, &other);
    operate(desktop, &other, &app);
}

desktop_test! {
    fn windows_are_operated_under_openbox(desktop: &Desktop) {
        under_this_window_manager(desktop);
    }

    on Setup::wm("xfwm4") =>
    fn windows_are_operated_under_xfwm4(desktop: &Desktop) {
        under_this_window_manager(desktop);
    }

    on Setup::wm("metacity") =>
    fn windows_are_operated_under_metacity(desktop: &Desktop) {
        under_this_window_manager(desktop);
    }

    fn windows_with_shadows_are_moved_by_what_is_seen(desktop: &Desktop) {
        let cli = desktop.cli();
        let app = desktop.calculator();
        cli.ok(&["move-window", "--app", app.name(), "--x", "90", "--y", "70"]);
        let area = frame(desktop, app.window(desktop).id);
        assert!((area.x - 90).abs() <= 2 && (area.y - 70).abs() <= 2, "{area:?}");
    }

    fn a_size_that_the_application_refuses_is_told(desktop: &Desktop) {
        let cli = desktop.cli();
        let app = desktop.gtk3("controls");
        let error = cli.fails(&["resize-window", "--app", app.name(), "--width", "40", "--height", "40"]);
        assert_eq!((&error["code"], &error["details"]["kind"]), (&"TIMEOUT".into(), &"deadline".into()), "{error:#}");
        assert_eq!(error["disposition"]["delivery"], "delivered_unverified", "{error:#}");
        let area = frame(desktop, app.window(desktop).id);
        let told = &error["details"]["actual"]["frame"];
        assert_eq!(
            (told["width"].as_f64(), told["height"].as_f64()),
            (Some(f64::from(area.width)), Some(f64::from(area.height))),
            "{error:#}"
        );
    }

    on Setup::wm("none") =>
    fn without_a_window_manager_windows_are_moved_and_nothing_else(desktop: &Desktop) {
        let cli = desktop.cli();
        let app = desktop.gtk3("controls");
        let window = cli.ok(&["list-windows", "--app", app.name()])[0]["id"].as_str().expect("an id").to_owned();
        cli.ok(&["move-window", "--window-id", &window, "--x", "33", "--y", "44"]);
        let id = u32::from_str_radix(&window[2..], 16).expect("a number");
        let area = desktop.area(id);
        assert_eq!((area.x, area.y), (33, 44));
        for command in ["minimize", "maximize"] {
            let error = cli.fails(&[command, "--window-id", &window]);
            assert_eq!(error["code"], "PLATFORM_NOT_SUPPORTED", "{error:#}");
            assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
        }
    }

    fn windows_that_are_not_there_or_not_one(desktop: &Desktop) {
        let cli = desktop.cli();
        let error = cli.fails(&["minimize", "--window-id", "w-99999"]);
        assert_eq!((&error["code"], &error["disposition"]["delivery"]), (&"WINDOW_NOT_FOUND".into(), &"not_delivered".into()));
        let error = cli.fails(&["maximize", "--app", "nobody"]);
        assert_eq!(error["code"], "APP_NOT_FOUND");
        for args in [
            &["resize-window", "--width", "0", "--height", "10"][..],
            &["resize-window", "--width", "nan", "--height", "10"],
            &["move-window", "--x", "1e7", "--y", "0"],
            &["minimize", "--app", " "],
        ] {
            assert_eq!(cli.fails(args)["code"], "INVALID_ARGS", "{args:?}");
        }
    }
}
