//! The built binary against Qt 5 (kcalc) and Qt 6 (the `PySide6` fixture). What happened is asked from the application's
//! own log and from another reader, never from our reply.

use agent_desktop_testkit::{App, Cli, desktop_test, look, wait_until};
use serde_json::Value;
use std::time::Duration;

const UNICODE: &str = "Hello, World! äöüß é П 你好 🙂";
const SOON: Duration = Duration::from_secs(5);

/// Runs a command on an element that is found by role and name, and gives its data.
#[track_caller]
fn on(cli: &Cli, app: &App, role: &str, name: &str, command: &[&str]) -> Value {
    let reference = cli.find(app.name(), role, name);
    cli.ok(&with_ref(&reference, command))
}

/// The same for one that has to fail; gives the error.
#[track_caller]
fn refused(cli: &Cli, app: &App, role: &str, name: &str, command: &[&str]) -> Value {
    let reference = cli.find(app.name(), role, name);
    cli.fails(&with_ref(&reference, command))
}

fn with_ref<'a>(reference: &'a str, command: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![command[0], reference];
    args.extend(&command[1..]);
    args
}

#[track_caller]
fn assert_verified(data: &Value) {
    assert_eq!(data["disposition"]["delivery"], "delivered_verified", "{data:#}");
}

/// Refused before anything was sent, with the way that is open.
#[track_caller]
fn assert_needs_headed(error: &Value) {
    assert_eq!(error["code"], "POLICY_DENIED", "{error:#}");
    assert_eq!(error["disposition"]["retry"], "safe", "{error:#}");
    assert!(error["suggestion"].as_str().is_some_and(|hint| hint.contains("--headed")), "{error:#}");
}

desktop_test! {
    fn kcalc_multiplies_by_refs(desktop: &Desktop) {
        let app = desktop.kcalc();
        let cli = desktop.cli();
        let data = cli.ok(&["snapshot", "--app", "kcalc"]);
        for key in ["7", "×", "8", "="] {
            let reference = agent_desktop_testkit::cli::find_ref(&data["tree"], "button", key);
            cli.ok(&["click", &reference]);
        }
        let shown = || look::find(app.name(), Some("23"), Some("56")).len() == 1;
        wait_until("56 on the display", SOON, shown);
        let data = cli.ok(&["find", "--app", "kcalc", "--name", "56", "--exact"]);
        assert_eq!(data["matches"][0]["name"], "56", "{data:#}");
    }

    fn kcalc_answers_while_a_dialog_that_a_menu_started_is_open(desktop: &Desktop) {
        let app = desktop.kcalc();
        let cli = desktop.cli();
        on(&cli, &app, "menuitem", "Help", &["click"]);
        let reply = cli.run(&["click", &cli.find("kcalc", "menuitem", "About KCalc")]);
        reply.ok();
        assert!(reply.elapsed < Duration::from_secs(4), "{reply}");
        wait_until("the dialog", SOON, || app.windows(desktop).iter().any(|window| window.title.contains("About")));
    }

    fn equal_buttons_are_told_apart(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        let cli = desktop.cli();
        let data = cli.ok(&["find", "--app", app.name(), "--role", "button", "--name", "Twin"]);
        let refs: Vec<&str> = data["matches"].as_array().unwrap().iter().filter_map(|m| m["ref_id"].as_str()).collect();
        assert_eq!(refs.len(), 2, "{data:#}");
        assert_verified(&cli.ok(&["click", refs[1]]));
        app.wait_log("clicked Twin 2");
        // The first one goes: the ref of the second still means the second, the ref of the first means nobody.
        app.command("remove Twin1");
        let error = cli.fails(&["click", refs[0], "--timeout-ms", "1000"]);
        assert!(["STALE_REF", "AMBIGUOUS_TARGET"].contains(&error["code"].as_str().unwrap()), "{error:#}");
        cli.ok(&["click", refs[1]]);
        wait_until("the second click", SOON, || app.effects() == ["clicked Twin 2", "clicked Twin 2"]);
    }

    fn check_boxes_and_radio_buttons_obey(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        let cli = desktop.cli();
        assert_verified(&on(&cli, &app, "checkbox", "Remember me", &["check"]));
        let data = on(&cli, &app, "checkbox", "Remember me", &["check"]);
        assert_eq!(data["disposition"]["delivery"], "not_delivered", "{data:#}");
        assert_verified(&on(&cli, &app, "checkbox", "Remember me", &["uncheck"]));
        assert_verified(&on(&cli, &app, "checkbox", "Bold", &["toggle"]));
        assert_verified(&on(&cli, &app, "radiobutton", "Medium", &["check"]));
        // From mixed to off there is a step on the way.
        let data = on(&cli, &app, "checkbox", "Partly", &["uncheck"]);
        assert_eq!(data["post_state"]["value"], "0", "{data:#}");
        assert_verified(&data);
        assert!(!look::one(app.name(), "7", "Partly").is("checked"));
        let error = refused(&cli, &app, "radiobutton", "Medium", &["uncheck"]);
        assert_eq!(error["code"], "ACTION_NOT_SUPPORTED", "{error:#}");
        assert_eq!(
            app.effects(),
            ["check Remember me on", "check Remember me off", "toggle Bold on", "radio Medium"]
        );
    }

    fn a_disabled_button_is_waited_for(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        let cli = desktop.cli();
        let reference = cli.find(app.name(), "button", "Unavailable");
        let error = cli.fails(&["click", &reference, "--timeout-ms", "300"]);
        assert_eq!(error["code"], "TIMEOUT", "{error:#}");
        assert!(error["message"].as_str().unwrap().contains("disabled"), "{error:#}");
        app.command("enable Unavailable");
        cli.ok(&["click", &reference]);
        app.wait_log("clicked Unavailable");
    }

    fn numbers_are_set(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        let cli = desktop.cli();
        assert_verified(&on(&cli, &app, "incrementor", "Amount", &["set-value", "7"]));
        assert_verified(&on(&cli, &app, "slider", "Volume", &["set-value", "55"]));
        let error = refused(&cli, &app, "slider", "Volume", &["set-value", "700"]);
        assert_eq!(error["code"], "INVALID_ARGS", "{error:#}");
        assert_eq!(app.effects(), ["spin 7", "slider 55"]);
    }

    fn a_combo_box_changes_only_with_the_pointer(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        let cli = desktop.cli();
        assert_needs_headed(&refused(&cli, &app, "combobox", "Red", &["select", "Green"]));
        assert!(app.effects().is_empty(), "{:?}", app.effects());
        assert_verified(&on(&cli, &app, "combobox", "Red", &["select", "Green", "--headed"]));
        app.wait_log("combo Green");
        assert_eq!(on(&cli, &app, "combobox", "Green", &["get", "--property", "value"])["value"], "Green");
    }

    fn a_menu_closes_when_its_item_has_run(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        let cli = desktop.cli();
        // Closed, it says what to do first.
        let data = cli.ok(&["find", "--app", app.name(), "--all", "--role", "menuitem", "--name", "Copy"]);
        let copy = data["matches"][0]["ref_id"].as_str().unwrap_or_else(|| panic!("{data:#}"));
        let error = cli.fails(&["click", copy, "--timeout-ms", "200"]);
        assert!(error["suggestion"].as_str().unwrap().contains("a menu"), "{error:#}");
        on(&cli, &app, "menuitem", "File", &["click"]);
        on(&cli, &app, "menuitem", "Export", &["click"]);
        on(&cli, &app, "menuitem", "PNG", &["click"]);
        app.wait_log("menu PNG");
        wait_until("the menu to close", SOON, || !look::one(app.name(), "35", "New").is("showing"));
        // It closes when its item has run.
        on(&cli, &app, "menuitem", "File", &["click"]);
        app.wait_log("menu shown");
        let data = on(&cli, &app, "menuitem", "New", &["click"]);
        app.wait_log("menu New");
        assert!(data["surfaces"].as_array().is_none_or(Vec::is_empty), "{data:#}");
        wait_until("the menu to close", SOON, || !look::one(app.name(), "35", "New").is("showing"));
        assert_eq!(app.effects(), ["menu PNG", "menu New"]);
    }

    fn a_button_with_a_menu_opens_it_and_keys_choose(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        let cli = desktop.cli();
        on(&cli, &app, "menubutton", "More", &["click", "--headed"]);
        app.wait_log("menu shown");
        for key in ["down", "down", "return"] {
            cli.ok(&["press", key, "--headed"]);
        }
        app.wait_log("menu Beta");
    }

    fn texts_are_typed_set_and_cleared(desktop: &Desktop) {
        let app = desktop.qt6("texts");
        let cli = desktop.cli();
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        assert_verified(&on(&cli, &app, "textfield", "Full name", &["type", UNICODE]));
        app.wait_log(&format!("entry Full name text={}", quoted(UNICODE)));
        assert_verified(&on(&cli, &app, "textfield", "Full name", &["set-value", "Ada"]));
        assert_verified(&on(&cli, &app, "textfield", "Full name", &["clear"]));
        assert_verified(&on(&cli, &app, "textfield", "Notes", &["set-value", "one\ntwo"]));
        app.wait_log("textview \"one\\ntwo\"");
        assert_verified(&on(&cli, &app, "textfield", "Notes", &["clear"]));
        assert_verified(&on(&cli, &app, "textfield", "Notes", &["type", UNICODE, "--headed"]));
        app.wait_log(&format!("textview {}", quoted(UNICODE)));
        assert_verified(&on(&cli, &app, "textfield", "Full name", &["type", UNICODE, "--headed"]));
        assert_eq!(look::text(app.name(), "61", "Full name"), UNICODE);
    }

    fn a_text_that_did_not_arrive_whole_is_no_success(desktop: &Desktop) {
        let app = desktop.qt6("texts");
        let cli = desktop.cli();
        let error = refused(&cli, &app, "textfield", "Short", &["type", "abcdefgh"]);
        assert_eq!(error["code"], "ACTION_FAILED", "{error:#}");
        assert_eq!(error["disposition"]["delivery"], "delivered_unverified", "{error:#}");
        app.wait_log("entry Short text=\"abcde\"");
        // Qt obeys here all the same.
        for command in [&["type", "x"][..], &["set-value", "x"], &["clear"], &["type", "x", "--headed"]] {
            let error = refused(&cli, &app, "textfield", "Fixed", command);
            assert_eq!(error["code"], "ACTION_NOT_SUPPORTED", "{error:#}");
        }
        assert_eq!(look::text(app.name(), "61", "Fixed"), "Fixed value");
        assert_eq!(app.effects(), ["entry Short text=\"abcde\""]);
    }

    fn a_password_is_entered_and_never_shown(desktop: &Desktop) {
        let app = desktop.qt6("texts");
        let cli = desktop.cli();
        for command in [&["type", "hush"][..], &["set-value", "hushhush"], &["get", "--property", "value"]] {
            let data = on(&cli, &app, "textfield", "Secret", command);
            assert!(!data.to_string().contains("hush"), "{data:#}");
        }
        app.wait_log("entry Secret text=\"hushhush\"");
        assert!(!cli.run(&["snapshot", "--app", app.name()]).stdout.contains("hush"));
    }

    fn lists_tables_tabs_and_trees_are_selected_from(desktop: &Desktop) {
        let app = desktop.qt6("lists");
        let cli = desktop.cli();
        on(&cli, &app, "tab", "Second", &["click"]);
        on(&cli, &app, "tablist", "Second", &["select", "Third"]);
        on(&cli, &app, "list", "Cities", &["select", "Rome"]);
        on(&cli, &app, "option", "Oslo", &["click"]);
        on(&cli, &app, "outline", "Food", &["select", "Vegetables"]);
        on(&cli, &app, "cell", "Place 0", &["click"]);
        on(&cli, &app, "table", "Grid", &["select", "Item 1"]);
        let wanted =
            ["tab Second", "tab Third", "list Rome", "list Oslo", "tree selected Vegetables", "table cell 0,2", "table cell 1,0"];
        wait_until("the selections", SOON, || app.effects() == wanted);
    }

    fn a_tree_opens_only_with_the_pointer(desktop: &Desktop) {
        let app = desktop.qt6("lists");
        let cli = desktop.cli();
        assert_needs_headed(&refused(&cli, &app, "treeitem", "Fruits", &["expand"]));
        assert_verified(&on(&cli, &app, "treeitem", "Fruits", &["expand", "--headed"]));
        app.wait_log("tree expanded Fruits");
        cli.ok(&["wait", "--app", app.name(), "--text", "Apple", "--timeout", "2000"]);
        assert_verified(&on(&cli, &app, "treeitem", "Fruits", &["collapse", "--headed"]));
        app.wait_log("tree collapsed Fruits");
    }

    fn a_modal_dialog_covers_what_is_behind(desktop: &Desktop) {
        let app = desktop.qt6("dialogs");
        let cli = desktop.cli();
        let behind = cli.find(app.name(), "button", "Behind");
        on(&cli, &app, "button", "Ask", &["click"]);
        app.wait_log("dialog opened Question");
        desktop.wait_window("Question");
        let error = cli.fails(&["click", &behind, "--timeout-ms", "300"]);
        assert!(error["message"].as_str().unwrap().contains("dialog \"Question\""), "{error:#}");
        on(&cli, &app, "textfield", "Answer", &["type", "yes"]);
        on(&cli, &app, "button", "OK", &["click"]);
        app.wait_log("dialog closed OK");
        cli.ok(&["click", &behind]);
        app.wait_log("clicked Behind");
        assert_eq!(app.effects().iter().filter(|line| *line == "clicked Behind").count(), 1);
    }

    fn what_is_scrolled_out_of_view_is_brought_there(desktop: &Desktop) {
        let app = desktop.qt6("scroll");
        let cli = desktop.cli();
        let find = |name: &str| {
            let data = cli.ok(&["find", "--app", app.name(), "--all", "--role", "button", "--name", name, "--exact"]);
            data["matches"][0]["ref_id"].as_str().unwrap_or_else(|| panic!("{data:#}")).to_owned()
        };
        let data = cli.ok(&["scroll-to", &find("Row 40")]);
        assert_verified(&data);
        assert!(app.effects().iter().any(|line| line.starts_with("scrolled ")), "{:?}", app.effects());
        cli.ok(&["click", &find("Row 150"), "--headed"]);
        app.wait_log("clicked Row 150");
        let data = cli.ok(&["find", "--app", app.name(), "--role", "scrollbar", "--first"]);
        let area = data["match"]["ref_id"].as_str().unwrap_or_else(|| panic!("{data:#}"));
        cli.ok(&["scroll", area, "--direction", "up", "--amount", "3"]);
        let scrolled = app.effects().len();
        cli.ok(&["scroll", area, "--direction", "up", "--amount", "3", "--headed"]);
        wait_until("the wheel to scroll", SOON, || app.effects().len() > scrolled);
    }
}
