//! The fixtures themselves: they start, they tell what happened, they obey. Operated here by the window system's own
//! tools and looked at by libatspi, so that a failure of these tests is not the product's.

use std::time::Duration;

use agent_desktop_testkit::{Desktop, Setup, desktop_test, look, wait_until};

/// Clicks the middle of an object of Qt or GTK 3, whose screen positions are true.
fn click(desktop: &Desktop, app: &str, role: &str, name: &str) {
    let [x, y, width, height] = look::one(app, role, name).screen.expect("a position");
    let (x, y) = ((x + width / 2).to_string(), (y + height / 2).to_string());
    desktop.tool("xdotool", &["mousemove", &x, &y, "click", "1"]);
}

desktop_test! {
    fn gtk3_tells_what_happened(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        click(desktop, app.name(), "43", "Save");
        app.wait_log("clicked Save");
        click(desktop, app.name(), "43", "Tiny");
        app.wait_log("clicked Tiny");
        app.command("rename Save Store");
        click(desktop, app.name(), "43", "Store");
        app.wait_log("clicked Store");
        app.command("title Another title");
        app.wait_title(desktop, "Another title");
        assert_eq!(app.effects(), ["clicked Save", "clicked Tiny", "clicked Store"]);
    }

    fn qt6_tells_what_happened(desktop: &Desktop) {
        let app = desktop.qt6("controls");
        click(desktop, app.name(), "43", "Save");
        app.wait_log("clicked Save");
        click(desktop, app.name(), "43", "Tiny");
        app.wait_log("clicked Tiny");
        app.command("disable Save");
        assert!(!look::one(app.name(), "43", "Save").is("enabled"));
        app.command("remove Save");
        wait_until("the button to go", Duration::from_secs(5), || look::find(app.name(), Some("43"), Some("Save")).is_empty());
    }

    fn gtk4_tells_what_happened(desktop: &Desktop) {
        let app = desktop.gtk4("controls");
        let window = app.window(desktop);
        desktop.move_window(window.id, 300, 200);
        // GTK 4 says positions within the window: the window's own place is added.
        let [x, y, ..] = look::one(app.name(), "43", "Tiny").screen.expect("a position");
        let area = desktop.area(window.id);
        let (x, y) = ((i64::from(area.x) + x + 5).to_string(), (i64::from(area.y) + y + 5).to_string());
        desktop.tool("xdotool", &["mousemove", &x, &y, "click", "1"]);
        app.wait_log("clicked Tiny");
        app.command("ask");
        app.wait_log("dialog opened Question");
        desktop.wait_window("Question");
    }

    fn keys_and_texts_are_logged(desktop: &Desktop) {
        for app in [desktop.gtk3("texts"), desktop.gtk4("texts"), desktop.qt6("texts")] {
            app.wait_log("focus Full name");
            let window = app.window(desktop);
            desktop.activate(window.id);
            desktop.tool("xdotool", &["type", "a"]);
            app.wait_log("entry Full name text=\"a\"");
            app.wait_log("key a");
        }
    }

    fn every_page_of_every_fixture_opens(desktop: &Desktop) {
        for page in ["controls", "texts", "lists", "dialogs", "scroll"] {
            for app in [desktop.gtk3(page), desktop.gtk4(page), desktop.qt6(page)] {
                assert!(look::dump(app.name()).lines().count() > 8, "{} {page}", app.name());
                assert!(app.effects().is_empty(), "{:?}", app.effects());
            }
        }
    }

    fn an_application_hangs_crashes_and_is_stopped(desktop: &Desktop) {
        let mut app = desktop.gtk3("controls");
        app.stop();
        app.send("title Late");
        std::thread::sleep(Duration::from_millis(200));
        assert!(!app.logged("done title Late"));
        app.cont();
        app.wait_log("done title Late");
        app.command("hang 0.2");
        app.command("storm 0.2");
        app.send("crash");
        assert_eq!(app.wait_exit(Duration::from_secs(5)), 128 + 6);
        let mut other = desktop.qt6("controls");
        other.kill();
        assert!(!other.is_running());
    }

    on Setup::wm("metacity").within(60) =>
    fn another_window_manager_lists_the_window(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        assert_eq!(app.title(desktop), "Fixture GTK 3");
    }
}
