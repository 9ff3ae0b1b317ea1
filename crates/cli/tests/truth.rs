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
            let error = cli.fails(&[command, &["--timeout-ms", "3000"]].concat());
            assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
            assert!(error["message"].to_string().contains("covered by dialog"), "{error:#}");
        }
        let ready = ["wait", "--element", &send, "--predicate", "actionable", "--timeout", "0"];
        assert_eq!(cli.fails(&ready)["code"], "TIMEOUT");
        assert!(app.title(desktop).contains("asking"), "{}", app.title(desktop));
        let dialog = tree(&cli, app, &["--surface", "sheet"]);
        assert_eq!(dialog["role"], "dialog", "{}", outline(&dialog));
        let ok = find_nodes(&dialog, "button", "OK");
        assert_eq!(ok.len(), 1, "{}", outline(&dialog));
        cli.ok(&["click", &ref_of(ok[0])]);
        app.wait_title(desktop, "answered");
        cli.ok(&ready);
        cli.ok(&["click", &send]);
        app.wait_title(desktop, "sent");
        // A page has no scroll bar that could be moved.
        let error = cli.fails(&["scroll", &send]);
        assert_eq!(
            (&error["code"], &error["details"]["kind"]),
            (&"POLICY_DENIED".into(), &"scroll_needs_wheel".into())
        );
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

/// What an element holds, and what was done to it.
mod holding {
    use super::*;

    desktop_test! {
        /// The object of the cell with the cursor keeps its text when the cell is emptied.
        fn clear_of_a_calc_cell_is_read_back_as_empty(desktop: &Desktop) {
            let sheet = desktop.sheet("filled", &["A1=Text", "B2=More", "C3=7"]);
            let app = desktop.calc(&sheet);
            let cli = desktop.cli();
            let [first, second] = ["A1", "B2"].map(|name| cli.find(app.name(), "cell", name));
            let value = |cell: &str| cli.ok(&["get", cell, "--property", "value"])["value"].clone();
            assert_eq!((value(&first), value(&second)), ("Text".into(), "More".into()));
            let done = cli.ok(&["clear", &first]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert!(done["post_state"]["value"].is_null(), "{done:#}");
            let holds = |name: &str| {
                let shown = tree(&cli, &app, &["--max-depth", "50"]);
                find_nodes(&shown, "cell", name).first().map(|cell| cell["value"].clone()).expect("the cell")
            };
            assert!(value(&first).is_null() && holds("A1").is_null());
            let done = cli.ok(&["set-value", &second, ""]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            // Also of a cell that the cursor has left.
            assert!(value(&first).is_null() && value(&second).is_null() && holds("B2").is_null());
            assert_eq!(holds("C3"), "7");
            let done = cli.ok(&["set-value", &first, "again"]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert_eq!((value(&first), holds("A1")), ("again".into(), "again".into()));
            cli.ok(&["press", "ctrl+s", "--app", app.name(), "--headed"]);
            wait_until("the file to be saved", Duration::from_secs(20), || {
                if desktop.saved_cell(&sheet, "A1") == "again" {
                    return true;
                }
                let shown = cli.run(&["snapshot", "--app", app.name(), "-i"]);
                let shown = &shown.envelope()["data"]["tree"];
                let keep = nodes(shown).into_iter().find(|node| {
                    node["role"] == "button" && node["name"].as_str().is_some_and(|name| name.starts_with("Use "))
                });
                if let Some(keep) = keep {
                    cli.run(&["click", &ref_of(keep)]);
                }
                false
            });
            assert_eq!(desktop.saved_cell(&sheet, "B2"), "");
            assert_eq!(desktop.saved_cell(&sheet, "C3"), "7");
        }

        /// "refused select", and with --headed the same.
        fn rows_of_a_gtk3_tree_view_are_selected(desktop: &Desktop) {
            let app = desktop.gtk3_widget_factory();
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &[]);
            let cell = |name: &str| ref_of(find_nodes(&shown, "cell", name)[0]);
            let is_selected = |name: &str| look::one(app.name(), "56", name).is("selected");
            let table = nodes(&shown).into_iter().find(|node| {
                node["role"] == "table" && !find_nodes(node, "cell", "Otto").is_empty()
            });
            let table = ref_of(table.expect("the table"));
            let before = desktop.active_window();
            let done = cli.ok(&["select", &table, "Otto"]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert!(is_selected("Otto") && is_selected("chaotic"));
            let done = cli.ok(&["click", &cell("Andrea")]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert!(is_selected("Andrea") && !is_selected("Otto"));
            let done = cli.ok(&["select", &table, "Andrea"]);
            assert_eq!(delivery(&done), "not_delivered", "{done:#}");
            assert_eq!(desktop.active_window(), before);
            let done = cli.ok(&["select", &table, "Otto", "--headed"]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert!(is_selected("Otto"));
        }

        fn rows_of_a_gtk3_tree_are_selected_by_a_click(desktop: &Desktop) {
            let app = desktop.gtk3("lists");
            let cli = desktop.cli();
            let data = cli.ok(&["find", "--app", app.name(), "--name", "Vegetables", "--exact", "--first"]);
            let done = cli.ok(&["click", &ref_of(&data["match"])]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            app.wait_log("tree selected Vegetables");
        }

        /// 60 KB of text came back for three letters.
        fn a_reply_repeats_only_the_beginning_of_a_long_text(desktop: &Desktop) {
            let app = desktop.gedit(&desktop.file("long.txt", &"line of text\n".repeat(4500)));
            let cli = desktop.cli();
            let data = cli.ok(&["find", "--app", app.name(), "--role", "textfield", "--first"]);
            let reply = cli.run(&["type", &ref_of(&data["match"]), "ZZZ"]);
            let done = reply.ok();
            assert_eq!(delivery(&done), "delivered_verified");
            assert_eq!(done["post_state"]["value_chars"], 4500 * 13 + 3 - 1, "{reply}");
            assert_eq!(done["post_state"]["value"].as_str().map(|text| text.chars().count()), Some(1000));
            assert!(reply.stdout.len() < 3000, "{}", reply.stdout.len());
        }

        /// It said "sensitive" inside a combo box that was not, and its value was set.
        fn a_field_inside_a_disabled_combo_box_of_gtk4_is_disabled(desktop: &Desktop) {
            let app = desktop.gtk4_widget_factory();
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &[]);
            let boxes: Vec<&Value> = nodes(&shown)
                .into_iter()
                .filter(|node| node["role"] == "combobox" && nodes(node).iter().any(|inner| inner["role"] == "textfield"))
                .collect();
            assert_eq!(boxes.len(), 2, "{}", outline(&shown));
            for combo in boxes {
                let is_off = combo["states"].to_string().contains("disabled");
                let field = *nodes(combo).iter().find(|node| node["role"] == "textfield").expect("a field");
                assert_eq!(field["states"].to_string().contains("disabled"), is_off, "{field:#}");
                let field = ref_of(field);
                assert_eq!(cli.ok(&["is", &field, "--property", "enabled"])["result"], !is_off);
                let reply = cli.run(&["set-value", &field, "new", "--timeout-ms", "600"]);
                assert_eq!(reply.envelope()["ok"], !is_off, "{reply}");
            }
            let texts: Vec<Option<String>> =
                look::find(app.name(), Some("61"), None).into_iter().map(|seen| seen.text).collect();
            assert_eq!(texts.iter().filter(|text| text.as_deref() == Some("new")).count(), 1, "{texts:?}");
        }
    }
}
