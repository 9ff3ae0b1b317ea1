//! The real applications start, are seen by libatspi, and end. These tests fail on a machine that lacks one.

use agent_desktop_testkit::{desktop_test, look};

desktop_test! {
    fn gnome_calculator_starts(desktop: &Desktop) {
        let app = desktop.calculator();
        assert!(!look::find(app.name(), Some("43"), Some("7 7")).is_empty(), "{}", look::dump(app.name()));
    }

    fn gedit_starts(desktop: &Desktop) {
        let app = desktop.gedit(&desktop.file("note.txt", "First line\n"));
        app.wait_title(desktop, "note.txt");
        let texts = look::find(app.name(), Some("61"), None);
        assert!(texts.iter().any(|t| t.text.as_deref() == Some("First line")), "{texts:#?}");
    }

    fn widget_factories_start(desktop: &Desktop) {
        for app in [desktop.gtk3_widget_factory(), desktop.gtk4_widget_factory()] {
            assert!(look::dump(app.name()).lines().count() > 200);
        }
    }

    fn kcalc_starts(desktop: &Desktop) {
        let app = desktop.kcalc();
        assert_eq!(look::find(app.name(), Some("43"), Some("7")).len(), 1);
    }

    fn chromium_starts(desktop: &Desktop) {
        let app = desktop.chromium(&desktop.form());
        assert!(look::one(app.name(), "43", "Send order").is("showing"));
    }

    fn firefox_starts(desktop: &Desktop) {
        let app = desktop.firefox(&desktop.form());
        assert!(look::one(app.name(), "43", "Send order").is("showing"));
    }

    fn writer_starts(desktop: &Desktop) {
        let document = desktop.text_document("short.fodt", 0);
        assert_eq!(desktop.saved_paragraphs(&document), ["Heading", "First paragraph.", "Second paragraph."]);
        let app = desktop.writer(&document);
        let seen = look::find(app.name(), Some("73"), None);
        assert!(seen.iter().any(|p| p.text.as_deref() == Some("First paragraph.")), "{seen:#?}");
    }

    fn calc_starts_far_down_in_a_sheet(desktop: &Desktop) {
        let sheet = desktop.sheet("far.fods", &["A1=near", "ZZ50000=far", "B2=7", "@ZZ50000"]);
        assert_eq!(desktop.saved_cell(&sheet, "ZZ50000"), "far");
        assert_eq!(desktop.saved_cell(&sheet, "B2"), "7");
        assert_eq!(desktop.saved_cell(&sheet, "C3"), "");
        let app = desktop.calc(&sheet);
        let boxes = look::find(app.name(), Some("61"), None);
        assert!(boxes.iter().any(|b| b.text.as_deref() == Some("ZZ50000")), "{boxes:#?}");
        assert!(app.memory() < 2 << 30);
    }
}
