//! Replies that once said something that was not so. Each test is named after the fault.
//!
//! The judge is the application's own side: its log, its window's title, its file, the X server, another reader.

use std::time::Duration;

use agent_desktop_testkit::cli::{find_nodes, nodes, outline};
use agent_desktop_testkit::{App, Cli, Desktop, desktop_test, look, wait_until};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(5);

fn delivery(data: &Value) -> &str {
    data["disposition"]["delivery"].as_str().unwrap_or_default()
}

#[track_caller]
fn ref_of(node: &Value) -> String {
    node["ref_id"].as_str().unwrap_or_else(|| panic!("no ref: {node:#}")).to_owned()
}

fn tree(cli: &Cli, app: &App, more: &[&str]) -> Value {
    cli.ok(&[&["snapshot", "--app", app.name()], more].concat())["tree"].clone()
}

/// Scrolling.
mod scrolling {
    use super::*;

    desktop_test! {
        /// "verified", and the bar stood at 0 before and after.
        fn scroll_of_a_calc_sheet_is_verified_only_when_it_moved(desktop: &Desktop) {
            let app = desktop.calc(&desktop.sheet("empty", &[]));
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &["--max-depth", "50"]);
            let bars = find_nodes(&shown, "scrollbar", "Vertical scroll bar");
            let bar = bars.first().unwrap_or_else(|| panic!("no bar in:\n{}", outline(&shown)));
            let first = || {
                let shown = tree(&cli, &app, &["--max-depth", "50"]);
                let cell = nodes(&shown).into_iter().find(|node| node["role"] == "cell").expect("a cell").clone();
                cell["name"].as_str().unwrap_or_default().to_owned()
            };
            assert_eq!(first(), "A1");
            let reply = cli.run(&["scroll", &ref_of(bar), "--direction", "down"]);
            let has_moved = first() != "A1";
            let said = &reply.envelope()["data"]["disposition"]["delivery"];
            assert_eq!(has_moved, said == "delivered_verified", "{reply}");
            if !has_moved {
                assert_eq!(reply.err()["details"]["kind"], "scroll_advertised_but_inert", "{reply}");
            }
            // What cannot be moved by a bar needs the wheel, and the reply says so.
            let table = nodes(&shown).into_iter().find(|node| node["role"] == "table").expect("a table");
            let error = cli.fails(&["scroll", &ref_of(table)]);
            assert!(error["suggestion"].to_string().contains("--headed"), "{error:#}");
            cli.ok(&["scroll", &ref_of(table), "--headed"]);
            wait_until("the sheet to move", SOON, || first() != "A1");
        }

        /// The help says "or what contains it"; only scroll areas and bars were taken.
        fn scroll_moves_what_contains_the_element(desktop: &Desktop) {
            let app = desktop.gtk3("scroll");
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &[]);
            let inner = nodes(&shown).into_iter().find(|node| {
                node["role"] == "button" && node["name"].as_str().is_some_and(|name| name.starts_with("Row")) && node["ref_id"].is_string()
            });
            let inner = inner.unwrap_or_else(|| panic!("nothing inside:\n{}", outline(&shown)));
            let done = cli.ok(&["scroll", &ref_of(inner)]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert!(app.log().contains("scrolled "), "{}", app.log());
        }
    }
}

/// What opens, and whether it is open.
mod opening {
    use super::*;

    /// `expand` twice, `is`, `collapse`: the list opens once, and is told to be open as long as it is.
    fn opens_and_closes(app: &App, cli: &Cli, target: &str, is_open: &dyn Fn() -> bool) {
        let asks = || cli.ok(&["is", target, "--property", "expanded"]);
        assert_eq!(asks()["result"], false);
        let done = cli.ok(&["expand", target]);
        assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
        wait_until("the list to open", SOON, is_open);
        assert_eq!(asks()["result"], true, "{}", look::dump(app.name()));
        let again = cli.ok(&["expand", target]);
        assert_eq!(again["steps"][0]["outcome"], "skipped", "{again:#}");
        assert_eq!(delivery(&again), "not_delivered", "{again:#}");
        std::thread::sleep(Duration::from_millis(300));
        assert!(is_open(), "a second expand closed it: {again:#}");
        let done = cli.ok(&["collapse", target]);
        assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
        wait_until("the list to close", SOON, || !is_open());
        assert_eq!(asks()["result"], false);
        let again = cli.ok(&["collapse", target]);
        assert_eq!(again["steps"][0]["outcome"], "skipped", "{again:#}");
        std::thread::sleep(Duration::from_millis(300));
        assert!(!is_open(), "a second collapse opened it: {again:#}");
    }

    /// Whether the X server shows a popup window (one that goes past the window manager) of some size.
    fn shows_popup(desktop: &Desktop) -> bool {
        let tree = desktop.tool("xwininfo", &["-root", "-children"]);
        tree.lines().filter_map(|line| line.split_whitespace().next()).filter(|id| id.starts_with("0x")).any(
            |id| {
                let said = desktop.try_tool("xwininfo", &["-id", id]).unwrap_or_default();
                let has = |part: &str| said.contains(part);
                has("Override Redirect State: yes")
                    && has("Map State: IsViewable")
                    && !has("Width: 1\n")
                    && !has("Width: 3\n")
                    && !has("Openbox")
            },
        )
    }

    desktop_test! {
        fn expand_of_an_open_combo_box_of_gtk3_leaves_it_open(desktop: &Desktop) {
            let app = desktop.gtk3_widget_factory();
            let cli = desktop.cli();
            let target = cli.find(app.name(), "combobox", "Left");
            opens_and_closes(&app, &cli, &target, &|| shows_popup(desktop));
        }

        fn expand_of_an_open_combo_box_of_gtk4_leaves_it_open(desktop: &Desktop) {
            let app = desktop.gtk4("controls");
            let cli = desktop.cli();
            for name in ["Colour", "Line"] {
                let target = cli.find(app.name(), "combobox", name);
                opens_and_closes(&app, &cli, &target, &|| shows_popup(desktop));
            }
            let target = cli.find(app.name(), "menubutton", "More");
            opens_and_closes(&app, &cli, &target, &|| shows_popup(desktop));
        }

        /// The list of every closed select counted as an open menu.
        fn expanded_select_of_firefox_is_the_only_open_menu(desktop: &Desktop) {
            let page = desktop.file("selects.html", SELECTS);
            let app = desktop.firefox(&page);
            let cli = desktop.cli();
            let target = cli.find(app.name(), "combobox", "Color");
            opens_and_closes(&app, &cli, &target, &|| shows_popup(desktop));
            cli.ok(&["expand", &target]);
            let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
            assert_eq!(listed["surfaces"].as_array().map(Vec::len), Some(1), "{listed:#}");
            let menu = tree(&cli, &app, &["--surface", "menu"]);
            assert_eq!(find_nodes(&menu, "menuitem", "Green").len(), 1, "{}", outline(&menu));
        }

        fn expanded_select_of_chromium_is_expanded_once(desktop: &Desktop) {
            let page = desktop.file("selects.html", SELECTS);
            let app = desktop.chromium(&page);
            let cli = desktop.cli();
            let target = cli.find(app.name(), "combobox", "Color");
            opens_and_closes(&app, &cli, &target, &|| look::one(app.name(), "11", "Color").is("expanded"));
        }

        /// The menu of a button is in no tree: "no menu is open" was said while the screen showed it.
        fn menu_of_a_qt_button_is_read_chosen_from_and_closed(desktop: &Desktop) {
            let app = desktop.qt6("controls");
            let cli = desktop.cli();
            let more = cli.find(app.name(), "menubutton", "More");
            let menus = || app.log_lines().iter().filter(|line| *line == "menu shown").count();
            opens_and_closes(&app, &cli, &more, &|| shows_popup(desktop));
            assert_eq!(menus(), 1, "{}", app.log());
            cli.ok(&["click", &more]);
            cli.ok(&["wait", "--menu", "--app", app.name(), "--timeout", "3000"]);
            let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
            assert_eq!(listed["surfaces"][0]["type"], "menu", "{listed:#}");
            assert_eq!(listed["surfaces"][0]["item_count"], 2, "{listed:#}");
            let menu = tree(&cli, &app, &["--surface", "menu"]);
            let alpha = find_nodes(&menu, "menuitem", "Alpha");
            assert_eq!(alpha.len(), 1, "{}", outline(&menu));
            cli.ok(&["click", &ref_of(alpha[0])]);
            app.wait_log("menu Alpha");
            wait_until("the menu to close", SOON, || !shows_popup(desktop));
            cli.ok(&["wait", "--menu-closed", "--app", app.name(), "--timeout", "3000"]);
            for more_arguments in [&[][..], &["--headed"]] {
                let before = app.effects().len();
                cli.ok(&[&["select", &more, "Beta"], more_arguments].concat());
                wait_until("Beta", SOON, || app.effects().len() > before);
                assert_eq!(app.effects().last().map(String::as_str), Some("menu Beta"));
                wait_until("the menu to close", SOON, || !shows_popup(desktop));
            }
            // What is not there is told with what is, and nothing is left open.
            let error = cli.fails(&["select", &more, "Gamma"]);
            assert_eq!(error["details"]["items"], serde_json::json!(["Alpha", "Beta"]), "{error:#}");
            assert!(error["details"]["left_open"].is_null(), "{error:#}");
            wait_until("the menu to close", SOON, || !shows_popup(desktop));
            // A pointer reaches its items too.
            cli.ok(&["click", &more, "--headed"]);
            let menu = tree(&cli, &app, &["--surface", "menu"]);
            cli.ok(&["click", &ref_of(find_nodes(&menu, "menuitem", "Alpha")[0]), "--headed"]);
            wait_until("the menu to close", SOON, || !shows_popup(desktop));
            assert_eq!(app.effects().last().map(String::as_str), Some("menu Alpha"));
        }

        /// The check box offers nothing headless, and nothing has to be offered for what is so already.
        fn check_of_what_is_checked_is_skipped_on_gtk4(desktop: &Desktop) {
            let app = desktop.gtk4("controls");
            let cli = desktop.cli();
            let target = cli.find(app.name(), "checkbox", "Remember me");
            let done = cli.ok(&["uncheck", &target]);
            assert_eq!(done["steps"][0]["outcome"], "skipped", "{done:#}");
            assert_eq!(cli.fails(&["check", &target])["code"], "POLICY_DENIED");
            cli.ok(&["check", &target, "--headed"]);
            app.wait_log("check Remember me on");
            let before = app.effects();
            let done = cli.ok(&["check", &target]);
            assert_eq!(delivery(&done), "not_delivered", "{done:#}");
            assert_eq!(cli.fails(&["uncheck", &target])["code"], "POLICY_DENIED");
            assert_eq!(app.effects(), before);
        }
    }

    const SELECTS: &str =
        "<!doctype html><html lang=en><meta charset=utf-8><title>Selects</title><h1>Selects</h1>
<label>Color <select><option>Red<option>Green<option>Blue</select></label>
<label>Other <select><option>One<option>Two</select></label>";
}

/// Questions that a browser asks inside its window.
mod questions {
    use super::*;

    const PAGE: &str = r#"<!doctype html><html lang=en><meta charset=utf-8><title>Start</title><h1>Questions</h1>
<button onclick="document.title='asking';alert('Careful');document.title='answered'">Ask</button>
<button onclick="document.title='sent'">Send</button>
<label><input type=checkbox onchange="document.title='checked'">Agree</label>
<label>Fixed <input readonly value=fixed></label> <label>Off <input disabled readonly value=off></label>"#;

    fn a_question_covers_the_page(desktop: &Desktop, app: &App) {
        let cli = desktop.cli();
        let [ask, send] = ["Ask", "Send"].map(|name| cli.find(app.name(), "button", name));
        let agree = cli.find(app.name(), "checkbox", "Agree");
        let done = cli.ok(&["click", &ask]);
        app.wait_title(desktop, "asking");
        wait_until("the question", SOON, || {
            look::find(app.name(), Some("29"), Some("Careful")).len()
                + look::find(app.name(), Some("116"), Some("Careful")).len()
                > 0
        });
        let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
        assert_eq!(listed["surfaces"].as_array().map(Vec::len), Some(1), "{listed:#}\n{done:#}");
        assert_eq!(listed["surfaces"][0]["type"], "sheet", "{listed:#}");
        for command in [&["click", &send][..], &["click", &send, "--headed"], &["check", &agree]] {
            let error = cli.fails(&[command, &["--timeout-ms", "700"]].concat());
            assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
            assert!(error["message"].to_string().contains("covered by dialog"), "{error:#}");
        }
        assert!(app.title(desktop).contains("asking"), "{}", app.title(desktop));
        let dialog = tree(&cli, app, &["--surface", "sheet"]);
        assert_eq!(dialog["role"], "dialog", "{}", outline(&dialog));
        let ok = find_nodes(&dialog, "button", "OK");
        assert_eq!(ok.len(), 1, "{}", outline(&dialog));
        cli.ok(&["click", &ref_of(ok[0])]);
        app.wait_title(desktop, "answered");
        cli.ok(&["click", &send]);
        app.wait_title(desktop, "sent");
        cli.ok(&["check", &agree]);
        app.wait_title(desktop, "checked");
        let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
        assert_eq!(listed["surfaces"].as_array().map(Vec::len), Some(0), "{listed:#}");
    }

    desktop_test! {
        fn question_of_chromium_covers_its_page(desktop: &Desktop) {
            let app = desktop.chromium(&desktop.file("questions.html", PAGE));
            a_question_covers_the_page(desktop, &app);
            // Chromium takes "enabled" away from what can only be read.
            let cli = desktop.cli();
            let fixed = cli.find(app.name(), "textfield", "Fixed");
            assert_eq!(cli.ok(&["is", &fixed, "--property", "enabled"])["result"], true);
            let error = cli.fails(&["set-value", &fixed, "x", "--headed", "--timeout-ms", "500"]);
            assert!(error["message"].to_string().contains("read-only"), "{error:#}");
            cli.ok(&["click", &fixed, "--headed"]);
            let off = cli.find(app.name(), "textfield", "Off");
            assert_eq!(cli.ok(&["is", &off, "--property", "enabled"])["result"], false);
        }

        fn question_of_firefox_covers_its_page(desktop: &Desktop) {
            let app = desktop.firefox(&desktop.file("questions.html", PAGE));
            a_question_covers_the_page(desktop, &app);
        }
    }
}

/// What `launch` says of what it started, or found.
mod launching {
    use super::*;

    fn pid_of(app: &App, desktop: &Desktop) -> u32 {
        app.window(desktop).pid
    }

    desktop_test! {
        /// One that was still starting was "new", and so the child of the next program.
        fn launch_answers_no_window_of_another_application(desktop: &Desktop) {
            let cli = desktop.cli().env("GSK_RENDERER", "cairo");
            let first = cli.ok(&["launch", "gtk3-widget-factory", "--timeout", "0"]);
            for arguments in [&["ls", "--wait", "--timeout", "3000"][..], &["ls", "--timeout", "4000"], &["true", "--timeout", "0"]] {
                let error = cli.fails(&[&["launch"], arguments].concat());
                assert_eq!(error["code"], "APP_UNRESPONSIVE", "{error:#}");
                assert_eq!(error["disposition"]["delivery"], "delivered_unverified", "{error:#}");
            }
            // The other one did come, under a name that commands take.
            wait_until("its window", Duration::from_secs(20), || !desktop.windows().is_empty());
            let name = first["app"].as_str().expect("a name").to_owned();
            let listed = cli.ok(&["list-windows", "--app", &name]);
            assert_eq!(listed[0]["pid"], first["pid"], "{listed:#}");
            cli.ok(&["close-app", &name]);
        }

        /// A script that goes on, and one that leaves, start something of another name.
        fn launch_finds_the_window_of_what_a_script_starts(desktop: &Desktop) {
            let folder = desktop.path("bin");
            std::fs::create_dir_all(&folder).expect("a folder");
            for (name, line) in [("stays", "zenity --info --text=one"), ("leaves", "setsid zenity --info --text=two &")] {
                let path = folder.join(name);
                std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).expect("a script");
                desktop.tool("chmod", &["+x", &path.to_string_lossy()]);
            }
            let search = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
            let cli = desktop.cli().env("PATH", search);
            for name in ["stays", "leaves"] {
                let started = cli.ok(&["launch", name, "--timeout", "10000", "--wait", "--no-attach"]);
                assert!(desktop.windows().iter().any(|window| started["pid"] == window.pid), "{started:#}");
                cli.ok(&["close-app", &format!("pid:{}", started["pid"])]);
            }
        }

        /// Three calculators for three names, and an editor "ended without a window" that had opened a document.
        fn launch_attaches_by_every_name_of_a_desktop_entry(desktop: &Desktop) {
            let app = desktop.calculator();
            let cli = desktop.cli();
            for name in ["org.gnome.Calculator", "org.gnome.Calculator.desktop", "Calculator", "calculator", "gnome-calculator"] {
                let found = cli.ok(&["launch", name, "--timeout", "8000"]);
                assert_eq!(found["pid"], pid_of(&app, desktop), "{name}: {found:#}");
                assert_eq!(found["app"], app.name(), "{name}: {found:#}");
            }
            assert_eq!(desktop.windows().len(), 1, "{:?}", desktop.windows());
            let app = desktop.gedit(&desktop.file("note.txt", ""));
            let title = app.title(desktop);
            for name in ["org.gnome.gedit", "org.gnome.gedit.desktop"] {
                let found = cli.ok(&["launch", name, "--timeout", "8000"]);
                assert_eq!(found["pid"], pid_of(&app, desktop), "{name}: {found:#}");
            }
            assert_eq!(app.title(desktop), title);
        }
    }
}
