//! GTK 3 and GTK 4, operated by the built binary in desktops of their own.
//!
//! The judge is the application: the fixture's log, a file it wrote, its window's title, or another reader. A reply of the
//! product is believed only where it is compared with one of these.

use std::time::Duration;

use agent_desktop_testkit::cli::{find_node, find_nodes, find_ref, nodes, outline};
use agent_desktop_testkit::{App, Cli, Desktop, desktop_test, look, wait_until};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(5);

fn tree(cli: &Cli, app: &App, more: &[&str]) -> Value {
    let mut args = vec!["snapshot", "--app", app.name()];
    args.extend(more);
    cli.ok(&args)["tree"].clone()
}

fn delivery(data: &Value) -> &str {
    data["disposition"]["delivery"].as_str().unwrap_or_default()
}

/// The line of the log that starts so, the last one.
fn last_line(app: &App, start: &str) -> String {
    app.log_lines().into_iter().rfind(|line| line.starts_with(start)).unwrap_or_default()
}

/// Both fixtures on one page, one after the other.
fn both<'a>(desktop: &'a Desktop, page: &'a str) -> impl Iterator<Item = App> + 'a {
    [Desktop::gtk3, Desktop::gtk4].into_iter().map(move |start| start(desktop, page))
}

/// A click that must be refused without `--headed`, and the log must stay as it was.
#[track_caller]
fn refused(cli: &Cli, app: &App, args: &[&str]) -> Value {
    let before = app.effects();
    let error = cli.fails(args);
    assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
    assert_eq!(app.effects(), before, "{error:#}");
    error
}

// 1. gnome-calculator

desktop_test! {
    fn calculator_multiplies_seven_by_eight_through_refs(desktop: &Desktop) {
        let app = desktop.calculator();
        let cli = desktop.cli();
        let shown = tree(&cli, &app, &["-i"]);
        for name in ["7", "×", "8", "="] {
            cli.ok(&["click", &find_ref(&shown, "button", name)]);
        }
        let display = nodes(&shown)
            .into_iter()
            .find(|node| node["role"] == "textfield" && !node["states"].to_string().contains("readonly"))
            .unwrap_or_else(|| panic!("no display in:\n{}", outline(&shown)));
        let display = display["ref_id"].as_str().expect("a ref");
        wait_until("the display to say 56", SOON, || {
            cli.ok(&["get", display, "--property", "value"])["value"] == "56"
        });
        let seen = look::find(app.name(), Some("61"), None);
        assert!(seen.iter().any(|field| field.text.as_deref() == Some("56")), "{seen:#?}");
        // By `find` as well, with refs of their own.
        for name in ["1", "+", "1", "="] {
            cli.ok(&["click", &cli.find(app.name(), "button", name)]);
        }
    }

    fn calculator_is_hit_by_the_pointer_behind_its_own_decorations(desktop: &Desktop) {
        let app = desktop.calculator();
        let cli = desktop.cli();
        desktop.move_window(app.window(desktop).id, 300, 200);
        let seven = cli.find(app.name(), "button", "7");
        let done = cli.ok(&["click", &seven, "--headed"]);
        assert_eq!(done["steps"][0]["mechanism"], "physical_synthetic", "{done:#}");
        wait_until("the display to say 7", SOON, || {
            look::find(app.name(), Some("61"), None).iter().any(|field| field.text.as_deref() == Some("7"))
        });
    }
}

// 2. gedit

const TEXT: &str = "Hello, World! äöüß é П 你好 🙂\nSecond line";

fn save_with_the_keyboard(desktop: &Desktop, cli: &Cli, app: &App, expected: &str) {
    let path = desktop.path("saved.txt");
    cli.ok(&["press", "ctrl+shift+s", "--app", app.name(), "--headed"]);
    cli.ok(&["wait", "--window", "Save As", "--timeout", "5000"]);
    let field = cli.find(app.name(), "textfield", "Name:");
    // Of the name that is offered only the part before the dot is selected.
    cli.ok(&["press", "ctrl+a", "--headed"]);
    cli.ok(&["type", &field, "--headed", &path.to_string_lossy()]);
    cli.ok(&["press", "enter", "--headed"]);
    let saved = || std::fs::read_to_string(&path).unwrap_or_default();
    wait_until("the file to be written", SOON, || !saved().is_empty());
    assert_eq!(saved().trim_end_matches('\n'), expected);
    app.wait_title(desktop, "saved.txt");
}

fn document(cli: &Cli, app: &App) -> String {
    let data = cli.ok(&["find", "--app", app.name(), "--role", "textfield", "--first"]);
    data["match"]["ref_id"].as_str().unwrap_or_else(|| panic!("no document: {data:#}")).to_owned()
}

desktop_test! {
    fn gedit_types_headless_and_saves_through_the_dialog(desktop: &Desktop) {
        let app = desktop.gedit(&desktop.file("note.txt", ""));
        let cli = desktop.cli();
        let done = cli.ok(&["type", &document(&cli, &app), TEXT]);
        assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
        assert_eq!(done["steps"][0]["mechanism"], "semantic_api", "{done:#}");
        app.wait_title(desktop, "*note.txt");
        save_with_the_keyboard(desktop, &cli, &app, TEXT);
    }

    fn gedit_types_with_the_keyboard_and_saves_through_the_dialog(desktop: &Desktop) {
        let app = desktop.gedit(&desktop.file("note.txt", ""));
        let cli = desktop.cli();
        let done = cli.ok(&["type", &document(&cli, &app), TEXT, "--headed"]);
        assert!(done["steps"].to_string().contains("physical_synthetic"), "{done:#}");
        app.wait_title(desktop, "*note.txt");
        save_with_the_keyboard(desktop, &cli, &app, TEXT);
    }
}

// 3. Where GTK 4 differs

desktop_test! {
    fn click_on_a_text_view_never_changes_its_text(desktop: &Desktop) {
        for app in both(desktop, "texts") {
            let cli = desktop.cli();
            let view = cli.find(app.name(), "textfield", "Notes");
            // Without an action that is a click there is nothing to send.
            let error = refused(&cli, &app, &["click", &view]);
            assert!(error["suggestion"].to_string().contains("--headed"), "{error:#}");
            let done = cli.ok(&["click", &view, "--headed"]);
            assert_eq!(done["steps"][0]["mechanism"], "physical_synthetic", "{done:#}");
            assert_eq!(last_line(&app, "textview"), "", "{}", app.log());
            assert_eq!(look::text(app.name(), "61", "Notes"), "First line\nSecond line\nThird line");
        }
    }

    fn set_value_of_a_spin_button_and_a_slider_arrives(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let spin = cli.find(app.name(), "incrementor", "Amount");
            let done = cli.ok(&["set-value", &spin, "4"]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            app.wait_log("spin 4");
            assert_eq!(look::one(app.name(), "52", "Amount").value, Some(4.0));
            assert_eq!(cli.ok(&["get", &spin, "--property", "value"])["value"], "4");
            let slider = cli.find(app.name(), "slider", "Volume");
            cli.ok(&["set-value", &slider, "75"]);
            app.wait_log("slider 75");
            let error = refused(&cli, &app, &["set-value", &slider, "175"]);
            assert_eq!(error["code"], "INVALID_ARGS", "{error:#}");
        }
    }

    fn menu_button_of_gtk4_opens_its_menu(desktop: &Desktop) {
        let app = desktop.gtk4("controls");
        let cli = desktop.cli();
        let done = cli.ok(&["click", &cli.find(app.name(), "menubutton", "More")]);
        assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
        assert_eq!(done["surfaces"][0]["type"], "menu", "{done:#}");
        cli.ok(&["wait", "--menu", "--app", app.name(), "--timeout", "3000"]);
        let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
        assert_eq!(listed["surfaces"].as_array().map(Vec::len), Some(1), "{listed:#}");
        let menu = tree(&cli, &app, &["--surface", "menu"]);
        assert_eq!(menu["role"], "menu", "{}", outline(&menu));
        cli.ok(&["click", &find_ref(&menu, "menuitem", "Beta")]);
        app.wait_log("menu Beta");
        cli.ok(&["wait", "--menu-closed", "--app", app.name(), "--timeout", "3000"]);
    }

    fn menu_button_of_gtk3_opens_its_menu(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let more = cli.ok(&["find", "--app", app.name(), "--name", "More", "--exact", "--first"]);
        let done = cli.ok(&["click", more["match"]["ref_id"].as_str().expect("a ref")]);
        assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
        app.wait_log("menu shown");
        let menu = tree(&cli, &app, &["--surface", "menu"]);
        cli.ok(&["click", &find_ref(&menu, "menuitem", "Beta")]);
        app.wait_log("menu Beta");
        cli.ok(&["wait", "--menu-closed", "--app", app.name(), "--timeout", "3000"]);
    }

    fn pointer_hits_a_tiny_button_of_a_moved_window(desktop: &Desktop) {
        // Both at once: one covers the other, and is raised for the click.
        for app in [desktop.gtk3("controls"), desktop.gtk4("controls")] {
            let cli = desktop.cli();
            let before = cli.find(app.name(), "button", "Tiny");
            desktop.move_window(app.window(desktop).id, 300, 200);
            let done = cli.ok(&["click", &before, "--headed"]);
            assert_eq!(done["steps"][0]["mechanism"], "physical_synthetic", "{done:#}");
            app.wait_log("clicked Tiny");
            cli.ok(&["click", &cli.find(app.name(), "button", "Tiny")]);
            wait_until("the second click", SOON, || app.effects() == ["clicked Tiny", "clicked Tiny"]);
        }
    }
}

// 4. Controls

desktop_test! {
    fn gtk3_switches_are_switched(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let check = cli.find(app.name(), "checkbox", "Remember me");
        let done = cli.ok(&["check", &check]);
        assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
        assert_eq!(done["post_state"]["value"], "1", "{done:#}");
        app.wait_log("check Remember me on");
        assert_eq!(delivery(&cli.ok(&["check", &check])), "not_delivered");
        assert!(look::one(app.name(), "7", "Remember me").is("checked"));
        cli.ok(&["uncheck", &check]);
        app.wait_log("check Remember me off");
        cli.ok(&["toggle", &check]);
        cli.ok(&["click", &cli.find(app.name(), "radiobutton", "Large")]);
        app.wait_log("radio Large");
        cli.ok(&["check", &cli.find(app.name(), "radiobutton", "Medium")]);
        app.wait_log("radio Medium");
        let switch = cli.find(app.name(), "switch", "Wifi");
        cli.ok(&["check", &switch]);
        app.wait_log("switch Wifi on");
        assert_eq!(cli.ok(&["is", &switch, "--property", "checked"])["result"], true);
        cli.ok(&["uncheck", &switch, "--headed"]);
        app.wait_log("switch Wifi off");
        let bold = cli.find(app.name(), "button", "Bold");
        cli.ok(&["click", &bold]);
        app.wait_log("toggle Bold on");
        assert!(cli.ok(&["get", &bold, "--property", "states"])["value"].to_string().contains("pressed"));
        let error = refused(&cli, &app, &["toggle", &bold]);
        assert_eq!(error["code"], "ACTION_NOT_SUPPORTED", "{error:#}");
        assert_eq!(app.effects(), [
            "check Remember me on", "check Remember me off", "check Remember me on", "radio Large", "radio Medium",
            "switch Wifi on", "switch Wifi off", "toggle Bold on",
        ]);
    }

    fn gtk4_check_boxes_are_refused_headless_and_switched_headed(desktop: &Desktop) {
        let app = desktop.gtk4("controls");
        let cli = desktop.cli();
        let check = cli.find(app.name(), "checkbox", "Remember me");
        for action in ["check", "toggle", "click"] {
            let error = refused(&cli, &app, &[action, &check]);
            assert!(matches!(error["code"].as_str(), Some("POLICY_DENIED" | "ACTION_NOT_SUPPORTED")), "{error:#}");
            assert!(error["suggestion"].to_string().contains("--headed"), "{error:#}");
        }
        // Already so: nothing needs to be sent.
        assert_eq!(delivery(&cli.ok(&["check", &check, "--headed"])), "delivered_verified");
        app.wait_log("check Remember me on");
        cli.ok(&["uncheck", &check, "--headed"]);
        app.wait_log("check Remember me off");
        cli.ok(&["toggle", &check, "--headed"]);
        cli.ok(&["check", &cli.find(app.name(), "checkbox", "Large"), "--headed"]);
        app.wait_log("radio Large");
        // The switch has an action.
        let switch = cli.find(app.name(), "switch", "Wifi");
        cli.ok(&["toggle", &switch]);
        app.wait_log("switch Wifi on");
        cli.ok(&["uncheck", &switch]);
        app.wait_log("switch Wifi off");
        let bold = cli.find(app.name(), "button", "Bold");
        cli.ok(&["click", &bold]);
        app.wait_log("toggle Bold on");
        assert!(cli.ok(&["get", &bold, "--property", "states"])["value"].to_string().contains("pressed"));
    }

    fn entries_take_text_and_passwords_stay_secret(desktop: &Desktop) {
        for app in both(desktop, "texts") {
            let cli = desktop.cli();
            let name = cli.find(app.name(), "textfield", "Full name");
            let done = cli.ok(&["set-value", &name, "Ada Lovelace"]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            app.wait_log("entry Full name text=\"Ada Lovelace\"");
            cli.ok(&["clear", &name]);
            app.wait_log("entry Full name text=\"\"");
            cli.ok(&["type", &name, "Грейс 🙂"]);
            app.wait_log("entry Full name text=\"Грейс 🙂\"");
            assert_eq!(cli.ok(&["get", &name, "--property", "value"])["value"], "Грейс 🙂");
            cli.ok(&["set-value", &cli.find(app.name(), "textfield", "Search here"), "query"]);
            app.wait_log("entry Search text=\"query\"");
            // What is cut is said.
            let error = cli.fails(&["set-value", &cli.find(app.name(), "textfield", "Short"), "too long"]);
            assert_eq!(error["code"], "ACTION_FAILED", "{error:#}");
            assert_eq!(error["disposition"]["retry"], "unsafe", "{error:#}");

            let secret = cli.find(app.name(), "textfield", "Secret");
            let done = cli.run(&["type", &secret, "hunter2"]);
            done.ok();
            app.wait_log("entry Secret text=\"hunter2\"");
            assert!(!done.stdout.contains("hunter2"), "{done}");
            for args in [vec!["get", &secret, "--property", "value"], vec!["snapshot", "--app", app.name()]] {
                let reply = cli.run(&args);
                reply.ok();
                assert!(!reply.stdout.contains("hunter2"), "{reply}");
            }
            let stored = std::process::Command::new("grep").args(["-r", "hunter2"]).arg(cli.home()).output();
            assert!(!stored.expect("grep runs").status.success(), "the state folder holds the password");

            let fixed = cli.find(app.name(), "textfield", "Fixed");
            for args in [["set-value", &fixed, "x"], ["type", &fixed, "x"]] {
                let error = refused(&cli, &app, &args);
                assert_eq!(error["code"], "ACTION_NOT_SUPPORTED", "{error:#}");
            }
        }
    }

    fn entries_take_keys_when_headed(desktop: &Desktop) {
        for app in both(desktop, "texts") {
            let cli = desktop.cli();
            let search = cli.find(app.name(), "textfield", "Search here");
            cli.ok(&["type", &search, "with keys é 🙂", "--headed"]);
            app.wait_log("entry Search text=\"with keys é 🙂\"");
            cli.ok(&["clear", &search, "--headed"]);
            app.wait_log("entry Search text=\"\"");
            cli.ok(&["type", &cli.find(app.name(), "textfield", "Secret"), "geheim", "--headed"]);
            app.wait_log("entry Secret text=\"geheim\"");
        }
    }

    fn focus_goes_where_the_toolkit_lets_it(desktop: &Desktop) {
        let app = desktop.gtk3("texts");
        let cli = desktop.cli();
        let short = cli.find(app.name(), "textfield", "Short");
        cli.ok(&["focus", &short]);
        app.wait_log("focus Short");
        assert_eq!(cli.ok(&["is", &short, "--property", "focused"])["result"], true);
    }

    fn items_of_lists_combo_boxes_and_tabs_are_selected(desktop: &Desktop) {
        for app in both(desktop, "lists") {
            let cli = desktop.cli();
            let lists = cli.ok(&["find", "--app", app.name(), "--name", "Cities", "--exact", "--first"]);
            let cities = lists["match"]["ref_id"].as_str().expect("a ref").to_owned();
            let done = cli.ok(&["select", &cities, "Rome"]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            app.wait_log("list Rome");
            cli.ok(&["click", &cli.find(app.name(), "option", "Oslo")]);
            app.wait_log("list Oslo");
            let tabs = cli.ok(&["find", "--app", app.name(), "--role", "tablist", "--first"]);
            cli.ok(&["select", tabs["match"]["ref_id"].as_str().expect("a ref"), "Third"]);
            app.wait_log("tab Third");
            cli.ok(&["click", &cli.find(app.name(), "tab", "Second")]);
            app.wait_log("tab Second");
            let error = refused(&cli, &app, &["select", &cities, "Atlantis"]);
            assert_eq!(error["code"], "ELEMENT_NOT_FOUND", "{error:#}");
        }
    }

    fn combo_boxes_are_chosen_from_headless_and_headed(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let colour = cli.find(app.name(), "combobox", "Colour");
            assert_eq!(cli.ok(&["get", &colour, "--property", "value"])["value"], "Red");
            assert_eq!(delivery(&cli.ok(&["select", &colour, "red"])), "not_delivered");
            if app.name() == "fixture-gtk3" {
                let done = cli.ok(&["select", &colour, "Blue"]);
                assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
                app.wait_log("combo Blue");
                assert_eq!(cli.ok(&["get", &colour, "--property", "value"])["value"], "Blue");
            } else {
                // The drop-down of GTK 4.8 lets its list be selected in and takes no notice.
                let error = cli.fails(&["select", &colour, "Blue"]);
                assert_eq!(error["code"], "ACTION_FAILED", "{error:#}");
                assert!(error["suggestion"].to_string().contains("--headed"), "{error:#}");
                assert!(error["details"]["left_open"].is_null(), "{error:#}");
                assert_eq!(cli.ok(&["get", &colour, "--property", "value"])["value"], "Red");
            }
            let error = cli.fails(&["select", &colour, "Purple"]);
            assert_eq!(error["code"], "ELEMENT_NOT_FOUND", "{error:#}");
            assert!(error["details"]["items"].to_string().contains("Green"), "{error:#}");
            cli.ok(&["select", &colour, "Green", "--headed"]);
            app.wait_log("combo Green");
            let closed = || {
                let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
                listed["surfaces"].as_array().map_or(0, Vec::len) == 0
            };
            wait_until("the list to close", SOON, closed);
        }
    }

    fn old_combo_box_of_gtk4_has_nameless_items_and_is_refused(desktop: &Desktop) {
        let app = desktop.gtk4("controls");
        let cli = desktop.cli();
        let line = cli.find(app.name(), "combobox", "Line");
        // `Large` is the name of a check box beside it: no item of this one.
        for (text, more) in [("Thick", &["--headed"][..]), ("Large", &["--headed"]), ("Large", &[])] {
            let error = cli.fails(&[&["select", &line, text], more].concat());
            assert_eq!(error["code"], "ELEMENT_NOT_FOUND", "{error:#}");
        }
        assert!(app.effects().is_empty(), "{}", app.log());
    }

    fn sections_and_tree_rows_expand_and_collapse(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let details = cli.find(app.name(), "disclosure", "Details");
            let done = cli.ok(&["expand", &details]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            app.wait_log("expander on");
            wait_until("the text inside", SOON, || {
                find_nodes(&tree(&cli, &app, &[]), "statictext", "Hidden text").len() == 1
            });
            assert_eq!(delivery(&cli.ok(&["expand", &details])), "not_delivered");
            cli.ok(&["collapse", &details]);
            app.wait_log("expander off");
        }
        let app = desktop.gtk3("lists");
        let cli = desktop.cli();
        let fruits = cli.find(app.name(), "treeitem", "Fruits");
        let done = cli.ok(&["expand", &fruits]);
        assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
        app.wait_log("tree expanded Fruits");
        cli.ok(&["click", &cli.find(app.name(), "cell", "Apple")]);
        app.wait_log("tree selected Apple");
        cli.ok(&["collapse", &fruits]);
        app.wait_log("tree collapsed Fruits");
    }

    fn menu_bars_are_opened_and_chosen_from(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        cli.ok(&["click", &cli.find(app.name(), "menuitem", "File")]);
        app.wait_log("menu shown");
        cli.ok(&["click", &cli.find(app.name(), "menuitem", "Open")]);
        app.wait_log("menu Open");
        cli.ok(&["wait", "--menu-closed", "--app", app.name(), "--timeout", "3000"]);
        // Closed menus are there with --all, and work.
        let all = cli.ok(&["find", "--app", app.name(), "--role", "menuitem", "--name", "PNG", "--all", "--first"]);
        assert_eq!(all["match"]["name"], "PNG", "{all:#}");
        drop(app);
        for app in both(desktop, "controls") {
            cli.ok(&["click", &cli.find(app.name(), "menuitem", "File"), "--headed"]);
            cli.ok(&["wait", "--menu", "--app", app.name(), "--timeout", "3000"]);
            let menu = tree(&cli, &app, &["--surface", "menu"]);
            cli.ok(&["click", &find_ref(&menu, "menuitem", "New"), "--headed"]);
            app.wait_log("menu New");
        }
    }

    fn gtk4_menu_bar_item_without_an_action_is_refused_headless(desktop: &Desktop) {
        let app = desktop.gtk4("controls");
        let cli = desktop.cli();
        let error = refused(&cli, &app, &["click", &cli.find(app.name(), "menuitem", "File")]);
        assert!(error["suggestion"].to_string().contains("--headed"), "{error:#}");
    }

    fn context_menus_open_and_are_chosen_from(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &["--include-bounds"]);
            let canvas = find_node(&shown, "group", "Canvas");
            let middle = |key: &str, size: &str| {
                canvas["bounds"][key].as_f64().unwrap_or(0.0) + canvas["bounds"][size].as_f64().unwrap_or(0.0) / 2.0
            };
            let at = format!("{},{}", middle("x", "width"), middle("y", "height"));
            cli.ok(&["focus-window", "--app", app.name()]);
            cli.ok(&["mouse-click", "--xy", &at, "--button", "right", "--headed"]);
            cli.ok(&["wait", "--menu", "--app", app.name(), "--timeout", "3000"]);
            let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
            assert_eq!(listed["surfaces"][0]["type"], "context_menu", "{listed:#}");
            let menu = tree(&cli, &app, &["--surface", "menu"]);
            cli.ok(&["click", &find_ref(&menu, "menuitem", "Context Paste")]);
            app.wait_log("menu Context Paste");
        }
    }

    fn text_fields_open_their_context_menu_when_headed(desktop: &Desktop) {
        for app in both(desktop, "texts") {
            let cli = desktop.cli();
            let notes = cli.find(app.name(), "textfield", "Notes");
            let error = refused(&cli, &app, &["right-click", &notes]);
            assert!(error["suggestion"].to_string().contains("--headed"), "{error:#}");
            let done = cli.ok(&["right-click", &notes, "--headed"]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert_eq!(done["surfaces"][0]["type"], "context_menu", "{done:#}");
            cli.ok(&["press", "escape", "--headed"]);
        }
    }

    fn pages_scroll_until_a_far_row_can_be_clicked(desktop: &Desktop) {
        for app in both(desktop, "scroll") {
            let cli = desktop.cli();
            let area = cli.ok(&["find", "--app", app.name(), "--role", "scrollarea", "--first"]);
            let area = area["match"]["ref_id"].as_str().expect("a ref").to_owned();
            let done = cli.ok(&["scroll", &area, "--amount", "2"]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            wait_until("the page to scroll", SOON, || last_line(&app, "scrolled ") > "scrolled 0".into());
            let scrolled = last_line(&app, "scrolled ");
            cli.ok(&["scroll", &area, "--amount", "3", "--headed"]);
            wait_until("the wheel to scroll", SOON, || last_line(&app, "scrolled ") != scrolled);
            let found = cli.ok(&["find", "--app", app.name(), "--name", "Row 150", "--exact", "--all", "--first"]);
            let row = found["match"]["ref_id"].as_str().expect("a ref").to_owned();
            let done = cli.ok(&["scroll-to", &row]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert_eq!(cli.ok(&["is", &row, "--property", "visible"])["result"], true);
            cli.ok(&["click", &row, "--headed"]);
            app.wait_log("clicked Row 150");
            // A headless click needs no scrolling, and a headed one scrolls by itself.
            let found = cli.ok(&["find", "--app", app.name(), "--name", "Row 20", "--exact", "--all", "--first"]);
            cli.ok(&["click", found["match"]["ref_id"].as_str().expect("a ref"), "--headed"]);
            app.wait_log("clicked Row 20");
        }
    }

    fn pointer_hovers_drags_and_clicks_twice(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let save = cli.find(app.name(), "button", "Save");
            let error = refused(&cli, &app, &["double-click", &save]);
            assert_eq!(error["code"], "POLICY_DENIED", "{error:#}");
            cli.ok(&["double-click", &save, "--headed"]);
            wait_until("two clicks", SOON, || app.effects().iter().filter(|line| *line == "clicked Save").count() == 2);
            let shown = tree(&cli, &app, &["--include-bounds"]);
            let bounds = find_node(&shown, "group", "Canvas")["bounds"].clone();
            let (x, y) = (bounds["x"].as_f64().expect("x"), bounds["y"].as_f64().expect("y"));
            let at = |dx: f64, dy: f64| format!("{},{}", x + dx, y + dy);
            cli.ok(&["hover", "--xy", &at(30.0, 30.0), "--headed"]);
            wait_until("the pointer", SOON, || !last_line(&app, "pointer entered").is_empty());
            cli.ok(&["drag", "--from-xy", &at(20.0, 20.0), "--to-xy", &at(100.0, 50.0), "--headed"]);
            app.wait_log("pointer pressed 20,20 1");
            app.wait_log("pointer released 100,50 1");
            assert!(!last_line(&app, "pointer dragged").is_empty(), "{}", app.log());
            cli.ok(&["mouse-click", "--xy", &at(60.0, 40.0), "--count", "2", "--headed"]);
            wait_until("a double click", SOON, || !last_line(&app, "pointer double").is_empty());
            cli.ok(&["mouse-wheel", "--x", &format!("{}", x + 60.0), "--y", &format!("{}", y + 40.0), "--headed"]);
            app.wait_log("pointer wheel down");
            let slider = find_node(&shown, "slider", "Volume")["bounds"].clone();
            let (x, y) = (slider["x"].as_f64().expect("x"), slider["y"].as_f64().expect("y"));
            let (width, height) = (slider["width"].as_f64().expect("w"), slider["height"].as_f64().expect("h"));
            let along = |part: f64| format!("{},{}", x + 8.0 + (width - 16.0) * part, y + height - 8.0);
            cli.ok(&["drag", "--from-xy", &along(0.2), "--to-xy", &along(0.8), "--headed"]);
            wait_until("the slider to be dragged", SOON, || {
                last_line(&app, "slider ").trim_start_matches("slider ").parse::<f64>().is_ok_and(|n| n > 60.0)
            });
        }
    }
}

// 5. Dialogs

desktop_test! {
    fn modal_dialogs_are_read_and_operated_and_cover_what_is_behind(desktop: &Desktop) {
        for app in both(desktop, "dialogs") {
            let cli = desktop.cli();
            let behind = cli.find(app.name(), "button", "Behind");
            let ask = cli.find(app.name(), "button", "Ask");
            let opened = cli.ok(&["click", &ask, "--wait-for", ":Really do it?", "--wait-timeout", "5000"]);
            assert_eq!(opened["matched_selector"], ":Really do it?", "{opened:#}");
            app.wait_log("dialog opened Question");
            let window = desktop.wait_window("Question");
            wait_until("the dialog to be active", SOON, || desktop.active_window() == Some(window.id));
            let shown = cli.ok(&["snapshot", "--app", app.name()]);
            assert_eq!(shown["window"]["title"], "Question", "{shown:#}");
            for more in [&[][..], &["--headed"][..]] {
                let mut args = vec!["click", &behind, "--timeout-ms", "400"];
                args.extend(more);
                let error = refused(&cli, &app, &args);
                assert!(error["message"].to_string().contains("Question"), "{error:#}");
            }
            let answer = find_ref(&shown["tree"], "textfield", "Answer");
            cli.ok(&["type", &answer, "yes"]);
            app.wait_log("entry Answer text=\"yes\"");
            let ok = find_ref(&shown["tree"], "button", "OK");
            let closed = cli.ok(&["click", &ok, "--wait-for-gone", ":Really do it?", "--wait-timeout", "5000"]);
            assert_eq!(closed["gone"], true, "{closed:#}");
            app.wait_log("dialog closed OK");
            cli.ok(&["click", &behind]);
            app.wait_log("clicked Behind");
        }
    }
}

// 6. Twins, and what becomes of refs

desktop_test! {
    fn twins_are_told_apart_and_never_taken_for_each_other(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &[]);
            let refs: Vec<String> = find_nodes(&shown, "button", "Twin")
                .iter()
                .map(|node| node["ref_id"].as_str().expect("a ref").to_owned())
                .collect();
            assert_eq!(refs.len(), 2, "{}", outline(&shown));
            cli.ok(&["click", &refs[1]]);
            app.wait_log("clicked Twin 2");
            cli.ok(&["click", &refs[0]]);
            app.wait_log("clicked Twin 1");
            cli.ok(&["click", &refs[1], "--headed"]);
            wait_until("the third click", SOON, || app.effects().len() == 3);
            assert_eq!(app.effects(), ["clicked Twin 2", "clicked Twin 1", "clicked Twin 2"]);
            // One is gone: the other is not it.
            app.command("remove Twin1");
            let error = refused(&cli, &app, &["click", &refs[0]]);
            assert_eq!(error["code"], "STALE_REF", "{error:#}");
            assert_eq!(error["details"]["reason"], "removed", "{error:#}");
            cli.ok(&["click", &refs[1]]);
            wait_until("the fourth click", SOON, || app.effects().len() == 4);

            let save = find_ref(&shown, "button", "Save");
            app.command("rename Save Store");
            let error = refused(&cli, &app, &["click", &save]);
            assert_eq!(error["code"], "STALE_REF", "{error:#}");
            assert_eq!(error["details"]["reason"], "renamed", "{error:#}");
            assert!(error["message"].to_string().contains("Store"), "{error:#}");
        }
    }

    fn a_ref_whose_element_went_while_two_like_it_came_is_no_guess(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let save = cli.find(app.name(), "button", "Save");
            app.command("duplicate Save");
            app.command("duplicate Save");
            cli.ok(&["click", &save]);
            app.wait_log("clicked Save");
            app.command("remove Save");
            let error = refused(&cli, &app, &["click", &save, "--timeout-ms", "500"]);
            assert_eq!(error["code"], "AMBIGUOUS_TARGET", "{error:#}");
            assert_eq!(error["details"]["candidate_count"], 2, "{error:#}");
        }
    }
}

// 7. The flags of snapshot

/// A tree without what differs from one snapshot to the next.
fn without_refs(tree: &Value) -> Value {
    fn strip(node: &mut Value) {
        if let Some(map) = node.as_object_mut() {
            map.remove("ref_id");
            map.values_mut().for_each(strip);
        } else if let Some(list) = node.as_array_mut() {
            list.iter_mut().for_each(strip);
        }
    }
    let mut copy = tree.clone();
    strip(&mut copy);
    copy
}

desktop_test! {
    fn snapshot_flags_cut_and_show_as_they_say(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let whole = tree(&cli, &app, &[]);
            let cut = tree(&cli, &app, &["--max-depth", "1"]);
            let at_cut: Vec<_> = nodes(&cut).into_iter().filter(|node| node["children_count"].is_u64()).collect();
            assert!(!at_cut.is_empty() && nodes(&cut).len() < nodes(&whole).len(), "{cut:#}");
            let skeleton = cli.ok(&["snapshot", "--app", app.name(), "--skeleton"]);
            assert!(nodes(&skeleton["tree"]).len() <= nodes(&whole).len());
            let interactive = tree(&cli, &app, &["-i"]);
            assert!(find_nodes(&interactive, "statictext", "Nothing yet").is_empty(), "{}", outline(&interactive));
            find_node(&whole, "statictext", "Nothing yet");
            let refs = |tree: &Value| nodes(tree).iter().filter(|node| node["ref_id"].is_string()).count();
            assert_eq!(refs(&interactive), refs(&whole));
            let compact = tree(&cli, &app, &["--compact"]);
            assert!(nodes(&compact).len() < nodes(&whole).len());
            assert_eq!(refs(&compact), refs(&whole));
            assert!(nodes(&whole).iter().all(|node| node["bounds"].is_null()));
            let bounds = tree(&cli, &app, &["--include-bounds"]);
            let save = find_node(&bounds, "button", "Save");
            let area = desktop.area(app.window(desktop).id);
            let x = save["bounds"]["x"].as_f64().expect("x");
            assert!(x > f64::from(area.x) && x < f64::from(area.x + area.width), "{save:#} in {area:?}");
            let all = tree(&cli, &app, &["--all"]);
            assert!(nodes(&all).len() > nodes(&whole).len());
        }
    }

    fn snapshot_drills_into_a_branch_and_keeps_other_refs(desktop: &Desktop) {
        for app in both(desktop, "lists") {
            let cli = desktop.cli();
            let shown = cli.ok(&["snapshot", "--app", app.name(), "--max-depth", "2"]);
            let anchored = |node: &&Value| node["children_count"].is_u64() && node["ref_id"].is_string();
            let anchor = nodes(&shown["tree"]).into_iter().find(anchored).unwrap_or_else(|| panic!("{shown:#}")).clone();
            let anchor_ref = anchor["ref_id"].as_str().expect("a ref").to_owned();
            let others: Vec<String> = nodes(&shown["tree"])
                .into_iter()
                .filter_map(|node| Some(node["ref_id"].as_str()?.to_owned()))
                .filter(|other| *other != anchor_ref)
                .collect();
            let inside = cli.ok(&["snapshot", "--root", &anchor_ref]);
            assert_eq!(inside["snapshot_id"], shown["snapshot_id"], "{inside:#}");
            assert_eq!(inside["tree"]["role"], anchor["role"], "{inside:#}");
            assert!(nodes(&inside["tree"]).len() > 1, "{inside:#}");
            for other in others.iter().chain([&anchor_ref]) {
                cli.ok(&["get", other, "--property", "role"]);
            }
        }
    }

    fn snapshot_reads_surfaces(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let bar = tree(&cli, &app, &["--surface", "menubar"]);
            find_ref(&bar, "menuitem", "Edit");
            let error = cli.fails(&["snapshot", "--app", app.name(), "--surface", "dock"]);
            assert_eq!(error["code"], "PLATFORM_NOT_SUPPORTED", "{error:#}");
            let error = cli.fails(&["snapshot", "--app", app.name(), "--surface", "menu"]);
            assert_ne!(error["code"], "INTERNAL", "{error:#}");
            let info = cli.ok(&["find", "--app", app.name(), "--name", "Info", "--exact", "--first"]);
            cli.ok(&["click", info["match"]["ref_id"].as_str().expect("a ref")]);
            app.wait_log("popover opened");
            let popover = tree(&cli, &app, &["--surface", "popover"]);
            cli.ok(&["click", &find_ref(&popover, "button", "Popover OK")]);
            app.wait_log("clicked Popover OK");
        }
        for app in both(desktop, "dialogs") {
            let cli = desktop.cli();
            cli.ok(&["click", &cli.find(app.name(), "button", "Ask")]);
            app.wait_log("dialog opened Question");
            let sheet = tree(&cli, &app, &["--surface", "sheet"]);
            cli.ok(&["click", &find_ref(&sheet, "button", "Cancel")]);
            app.wait_log("dialog closed CANCEL");
            cli.ok(&["click", &cli.find(app.name(), "button", "Alert")]);
            app.wait_log("dialog opened Alert");
            // The message dialogs of GTK 4.8 are dialogs like others.
            let kind = if app.name() == "fixture-gtk3" { "alert" } else { "sheet" };
            let alert = tree(&cli, &app, &["--surface", kind]);
            cli.ok(&["click", &find_ref(&alert, "button", "Close")]);
            app.wait_log("dialog closed Alert");
        }
    }

    fn the_walk_and_the_cache_give_the_same_tree(desktop: &Desktop) {
        for app in [desktop.gtk3_widget_factory(), desktop.gtk4_widget_factory()] {
            let cli = desktop.cli();
            for more in [&["--max-depth", "50"][..], &["--max-depth", "50", "--all"][..]] {
                let first = without_refs(&tree(&cli, &app, more));
                let second = without_refs(&tree(&cli, &app, more));
                assert!(nodes(&first).len() > 100, "{}", outline(&first));
                assert!(first == second, "{}\n----\n{}", outline(&first), outline(&second));
            }
        }
    }
}

// 8. Waiting

desktop_test! {
    fn waits_end_when_it_is_so(desktop: &Desktop) {
        for app in both(desktop, "controls") {
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &[]);
            let (save, off) = (find_ref(&shown, "button", "Save"), find_ref(&shown, "button", "Unavailable"));
            let met = |reference: &str, predicate: &str| {
                let args = ["wait", "--element", reference, "--predicate", predicate, "--timeout", "4000"];
                let data = cli.ok(&args);
                assert_eq!(data["found"], true, "{data:#}");
            };
            for predicate in ["exists", "enabled", "visible", "actionable"] {
                met(&save, predicate);
            }
            let error = cli.fails(&["wait", "--element", &off, "--predicate", "enabled", "--timeout", "300"]);
            assert_eq!((&error["code"], &error["details"]["kind"]), (&"TIMEOUT".into(), &"wait_timeout".into()), "{error:#}");
            app.send("enable Unavailable");
            met(&off, "enabled");
            cli.ok(&["click", &off]);
            app.wait_log("clicked Unavailable");
            let amount = find_ref(&shown, "incrementor", "Amount");
            cli.ok(&["set-value", &amount, "7"]);
            cli.ok(&["wait", "--element", &amount, "--predicate", "value", "--value", "7", "--timeout", "3000"]);
            app.send("text Status All done");
            let data = cli.ok(&["wait", "--text", "all done", "--app", app.name(), "--timeout", "4000"]);
            assert_eq!(data["role"], "statictext", "{data:#}");
            // The label that GTK 4 puts inside each button is not counted beside it.
            let twice = cli.ok(&["wait", "--text", "Twin", "--count", "2", "--app", app.name(), "--timeout", "3000"]);
            assert_eq!(twice["count"], 2, "{twice:#}");
            app.send("title Other title");
            cli.ok(&["wait", "--window", "Other title", "--timeout", "4000"]);
            app.send("hide Save");
            cli.ok(&["snapshot", "--app", app.name(), "--wait-for-gone", "button:Save", "--wait-timeout", "4000"]);
        }
    }
}

desktop_test! {
    fn a_batch_finds_clicks_and_reads(desktop: &Desktop) {
        let cli = desktop.cli();
        for app in both(desktop, "controls") {
            let list = serde_json::json!([
                {"command": "find", "args": {"app": app.name(), "role": "button", "name": "Save", "exact": true, "first": true}},
                {"command": "click", "args": {"ref_id": {"$result": "0.data.match.ref_id"}}},
                {"command": "find", "args": {"app": app.name(), "role": "incrementor", "first": true}},
                {"command": "set-value", "args": {"ref_id": {"$result": "2.data.match.ref_id"}, "value": "6"}},
                {"command": "get", "args": {"ref_id": {"$result": "2.data.match.ref_id"}, "property": "value"}},
            ]);
            let data = cli.ok(&["batch", &list.to_string()]);
            assert_eq!(data["failed_entries"], 0, "{data:#}");
            app.wait_log("clicked Save");
            assert_eq!(data["results"][4]["data"]["value"], "6", "{data:#}");
        }
    }
}

desktop_test! {
    /// The application's own side: the windows of the screen and the end of its process.
    fn the_factories_are_operated_until_they_are_closed(desktop: &Desktop) {
        let cli = desktop.cli();
        // The check boxes of GTK 4.8 offer no action.
        for (mut app, opener, item, more) in [
            (desktop.gtk3_widget_factory(), "button:Menu", "button", &[][..]),
            (desktop.gtk4_widget_factory(), "menubutton", "menuitem", &["--headed"][..]),
        ] {
            let refs = cli.ok(&["find", "--app", app.name(), "--role", "checkbox", "--name", "checkbutton", "--limit", "20"]);
            let off = refs["matches"].as_array().expect("matches").iter();
            let off = off.filter(|found| found["states"] == serde_json::json!([])).collect::<Vec<_>>();
            assert_eq!(off.len(), 1, "{refs:#}");
            let reference = off[0]["ref_id"].as_str().expect("a ref");
            let done = cli.ok(&[&["check", reference][..], more].concat());
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            let (role, name) = opener.split_once(':').unwrap_or((opener, ""));
            let mut args = vec!["find", "--app", app.name(), "--role", role, "--first"];
            if !name.is_empty() {
                args.extend(["--name", name]);
            }
            let menu = cli.ok(&args)["match"]["ref_id"].as_str().expect("a ref").to_owned();
            cli.ok(&["click", &menu]);
            wait_until("the menu to be listed", SOON, || {
                let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
                listed["surfaces"].as_array().is_some_and(|surfaces| surfaces.len() == 1)
            });
            cli.ok(&["click", &cli.find(app.name(), item, "About Widget Factory")]);
            let about = desktop.wait_window("About");
            cli.ok(&["press", "Escape", "--window-id", &format!("w-{:x}", about.id), "--headed"]);
            wait_until("the window about it to be closed", SOON, || {
                desktop.windows().iter().all(|window| window.id != about.id)
            });
            cli.ok(&["click", &cli.find(app.name(), "button", "Close")]);
            assert_eq!(app.wait_exit(SOON), 0);
        }
    }
}
