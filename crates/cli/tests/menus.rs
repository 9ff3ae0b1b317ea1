//! Menus by path in every toolkit. The judge is the application: its log, its windows, its end.

use std::time::Duration;

use agent_desktop_testkit::{App, Cli, desktop_test, wait_until};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(5);
const LATER: Duration = Duration::from_secs(20);

/// Two dialogs, neither of which waits for the other.
const TWO_DIALOGS: &str = r#"
import sys, gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
log = open(sys.argv[1], "a", buffering=1)
main = Gtk.Window(title="Main")
main.show_all()
for title in ("First", "Second"):
    dialog = Gtk.Dialog(title=title, transient_for=main)
    button = Gtk.Button(label="Go")
    button.connect("clicked", lambda _, title=title: print("go", title, file=log))
    dialog.get_content_area().add(button)
    dialog.show_all()
Gtk.main()
"#;

fn open<'a>(app: &'a App, path: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["menu", "open", path, "--app", app.name()];
    args.extend(more);
    args
}

#[track_caller]
fn chosen(cli: &Cli, app: &App, path: &str, more: &[&str]) -> Value {
    let done = cli.ok(&open(app, path, more));
    assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{done:#}");
    done
}

/// What was chosen. GTK 3 activates what only opens a menu as well.
fn choices(app: &App) -> Vec<String> {
    let opens = ["menu shown", "menu File", "menu Edit", "menu Export"];
    let lines = app.log_lines().into_iter();
    lines.filter(|line| line.starts_with("menu ") && !opens.contains(&line.as_str())).collect()
}

/// Chooses one after the other; the application must have seen exactly these.
fn each(cli: &Cli, app: &App, more: &[&str], paths: &[(&str, &str)]) {
    let before = choices(app).len();
    for (index, (path, _)) in paths.iter().enumerate() {
        chosen(cli, app, path, more);
        wait_until("the choice", SOON, || choices(app).len() > before + index);
    }
    let expected: Vec<String> = paths.iter().map(|(_, name)| format!("menu {name}")).collect();
    assert_eq!(choices(app)[before..], expected);
}

/// A path that leads nowhere: an error that names what there is, and nothing chosen.
#[track_caller]
fn leads_nowhere(cli: &Cli, app: &App, path: &str, more: &[&str], there_is: &str) -> Value {
    let error = cli.fails(&open(app, path, more));
    assert_eq!(error["code"], "ELEMENT_NOT_FOUND", "{error:#}");
    assert_eq!(error["details"]["kind"], "menu_item_not_found", "{error:#}");
    let items = error["details"]["items"].as_array().expect("items");
    assert!(items.iter().any(|item| item == there_is), "{error:#}");
    error
}

/// The same for an application that tells what was chosen: nothing.
#[track_caller]
fn chooses_nothing(cli: &Cli, app: &App, path: &str, more: &[&str], there_is: &str) -> Value {
    let before = choices(app);
    let error = leads_nowhere(cli, app, path, more, there_is);
    assert_eq!(choices(app), before);
    error
}

/// Every name in a listing, depth first.
fn names(items: &Value) -> Vec<&str> {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .flat_map(|item| {
            let mut all = vec![item["name"].as_str().expect("a name")];
            all.extend(names(&item["items"]));
            all
        })
        .collect()
}

desktop_test! {
    fn gtk3_menus_are_walked_without_pointer_and_a_wrong_path_opens_nothing(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        let pointer = desktop.pointer();
        let nowhere = [("File/Save", "New"), ("File/Export/GIF", "PDF"), ("Fil", "File"), ("More/Gamma", "Beta")];
        for (path, there_is) in nowhere {
            let error = chooses_nothing(&cli, &app, path, &[], there_is);
            assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
        }
        assert!(!app.logged("menu shown"), "{}", app.log());
        // A button that has no menu is none of the things that a path can name.
        chooses_nothing(&cli, &app, "Save", &[], "More");
        assert!(!app.logged("clicked Save"), "{}", app.log());

        let paths = [("File/Export/PNG", "PNG"), ("edit / copy", "Copy"), ("More/Beta", "Beta"), ("File/New", "New")];
        each(&cli, &app, &[], &paths);
        assert_eq!(desktop.pointer(), pointer);

        let listed = cli.ok(&["menu", "list", "--app", app.name()]);
        let expected =
            ["File", "New", "Open", "Export", "PDF", "PNG", "Edit", "Cut", "Copy", "More", "Alpha", "Beta"];
        assert_eq!(names(&listed["items"]), expected, "{listed:#}");
        let export = cli.ok(&["menu", "list", "File/Export", "--app", app.name()]);
        assert_eq!(names(&export["items"]), ["PDF", "PNG"]);
        assert_eq!(export["items"][1]["path"], "File/Export/PNG");
    }

    fn gtk3_menus_are_walked_with_the_pointer(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let cli = desktop.cli();
        each(&cli, &app, &["--headed"], &[("File/Export/PNG", "PNG"), ("More/Beta", "Beta"), ("Edit/Cut", "Cut")]);
    }

    fn gtk4_menus_are_walked_and_closed_again_when_the_path_ends(desktop: &Desktop) {
        let app = desktop.gtk4("controls");
        let cli = desktop.cli();
        each(&cli, &app, &[], &[("More/Beta", "Beta")]);
        let error = chooses_nothing(&cli, &app, "More/Gamma", &[], "Beta");
        assert_eq!(error["details"]["is_open"], false, "{error:#}");
        // A submenu of GTK 4 follows the pointer: a click on an item that it has opened would close it.
        let headed = ["--headed"];
        for _ in 0..3 {
            each(&cli, &app, &headed, &[("File/Export/PNG", "PNG"), ("Edit/Cut", "Cut"), ("File/Export/PDF", "PDF")]);
        }
        let error = chooses_nothing(&cli, &app, "File/Export/GIF", &headed, "PNG");
        assert_eq!(error["details"]["is_open"], false, "{error:#}");
        assert_eq!(error["details"]["opened"], serde_json::json!(["File", "Export"]), "{error:#}");
        // What was said to be closed does not take the next click.
        cli.ok(&["click", &cli.find(app.name(), "button", "Save"), "--headed"]);
        app.wait_log("clicked Save");
    }

    fn qt_menus_are_walked_in_the_bar_and_at_a_button(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        let cli = desktop.cli();
        chooses_nothing(&cli, &app, "File/Export/GIF", &[], "PNG");
        each(&cli, &app, &[], &[("File/Export/PNG", "PNG"), ("Edit/Copy", "Copy"), ("More/Beta", "Beta")]);
        each(&cli, &app, &["--headed"], &[("File/Export/PDF", "PDF"), ("More/Alpha", "Alpha")]);
    }

    fn of_two_dialogs_at_once_the_target_says_which(desktop: &Desktop) {
        let script = desktop.file("twodialogs.py", TWO_DIALOGS);
        let log = desktop.file("dialogs.log", "");
        let words = ["/usr/bin/python3", script.to_str().expect("a path"), log.to_str().expect("a path")];
        let app = desktop.start("twodialogs.py", &words);
        let cli = desktop.cli();
        let listed = cli.ok(&["list-surfaces", "--app", app.name()]);
        let surfaces = listed["surfaces"].as_array().expect("a list");
        assert_eq!(surfaces.len(), 2, "{listed:#}");
        let error = cli.fails(&["snapshot", "--app", app.name(), "--surface", "sheet"]);
        assert_eq!(error["code"], "AMBIGUOUS_TARGET", "{error:#}");
        for surface in surfaces {
            let (id, title) = (surface["id"].as_str().expect("an id"), surface["title"].as_str().expect("a title"));
            assert!(error["details"]["candidates"].to_string().contains(&format!("--surface-id {id}")), "{error:#}");
            let found = cli.ok(&["find", "--app", app.name(), "--surface-id", id, "--role", "button", "--name", "Go", "--first"]);
            cli.ok(&["click", found["match"]["ref_id"].as_str().expect("a ref")]);
            let last = || std::fs::read_to_string(&log).unwrap_or_default().lines().last().map(str::to_owned);
            wait_until("the click", SOON, || last() == Some(format!("go {title}")));
            let shown = cli.ok(&["snapshot", "--app", app.name(), "--surface", "sheet", "--surface-id", id]);
            assert_eq!(shown["tree"]["name"], title, "{shown:#}");
        }
        let error = cli.fails(&["snapshot", "--app", app.name(), "--surface-id", "s00000000"]);
        assert_eq!(error["code"], "ELEMENT_NOT_FOUND", "{error:#}");
    }

    fn firefox_survives_a_look_into_each_menu_and_opens_a_tab_by_its_hidden_bar(desktop: &Desktop) {
        let page = desktop.file("page.html", "<title>Start</title><h1>Start</h1>");
        let mut app = desktop.firefox(&page);
        let cli = desktop.cli();
        for menu in ["File", "Edit", "View", "History", "Bookmarks", "Tools", "Help"] {
            let opened = cli.ok(&open(&app, menu, &[]));
            assert!(opened["surfaces"].to_string().contains(menu), "{opened:#}");
            let listed = cli.ok(&["menu", "list", menu, "--app", app.name()]);
            assert!(names(&listed["items"]).len() > 3, "{listed:#}");
            // Only this one is open now.
            let surfaces = cli.ok(&["list-surfaces", "--app", app.name()]);
            assert_eq!(surfaces["surfaces"].as_array().map(Vec::len), Some(1), "{surfaces:#}");
        }
        assert!(app.is_running());
        leads_nowhere(&cli, &app, "File/Neu", &[], "New Tab");
        chosen(&cli, &app, "File/New Tab", &[]);
        wait_until("another tab", LATER, || !app.title(desktop).contains("Start"));
    }

    fn chromium_opens_a_window_by_its_menu_and_its_button_says_whether_that_is_open(desktop: &Desktop) {
        let page = desktop.file("page.html", "<title>Start</title><h1>Start</h1>");
        let app = desktop.chromium(&page);
        let cli = desktop.cli();
        let error = leads_nowhere(&cli, &app, "Chromium/Fenster", &[], "New window Ctrl+N");
        assert_eq!(error["details"]["is_open"], true, "{error:#}");
        let button = cli.ok(&["find", "--app", app.name(), "--role", "menubutton", "--name", "Chromium", "--exact"]);
        assert!(button["matches"][0]["states"].to_string().contains("expanded"), "{button:#}");
        // It is open still.
        let count = app.windows(desktop).len();
        chosen(&cli, &app, "Chromium/New window", &[]);
        wait_until("another window", LATER, || app.windows(desktop).len() > count);
    }

    fn writer_ends_by_its_own_menu(desktop: &Desktop) {
        let document = desktop.file("menu.txt", "some words\n");
        let mut app = desktop.writer(&document);
        let cli = desktop.cli();
        leads_nowhere(&cli, &app, "File/Export As/Telegram", &[], "Export as PDF...");
        let listed = cli.ok(&["menu", "list", "File/Export As", "--app", app.name()]);
        assert!(names(&listed["items"]).contains(&"Export Directly as PDF"), "{listed:#}");
        let main = app.window(desktop).id;
        chosen(&cli, &app, "File/Export As/Export as PDF...", &[]);
        desktop.wait_window("PDF Options");
        // The dialog is in front: neither its own menus are there nor those behind it open.
        let behind = ["menu", "open", "File/Exit LibreOffice", "--window-id", &format!("w-{main:x}")];
        let error = cli.fails(&[&behind[..], &["--timeout-ms", "1000"]].concat());
        assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
        assert!(app.is_running());
        cli.ok(&["click", &cli.find(app.name(), "button", "Cancel")]);
        wait_until("the dialog to close", SOON, || desktop.window("PDF Options").is_none());
        cli.ok(&open(&app, "File/Exit LibreOffice", &[]));
        assert_eq!(app.wait_exit(LATER), 0);
    }
}
