//! `choose-file` in the file choosers of the toolkits. The judge is the application: what it says was chosen, and files.

use std::path::PathBuf;
use std::time::Duration;

use agent_desktop_testkit::app::Launch;
use agent_desktop_testkit::{App, Desktop, desktop_test, wait_until};

const SOON: Duration = Duration::from_secs(10);
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// Shows a chooser for the purpose that its second argument names, and writes down what was chosen.
const GTK3: &str = r#"
import sys, gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
purpose = {"open": Gtk.FileChooserAction.OPEN, "save": Gtk.FileChooserAction.SAVE,
           "folder": Gtk.FileChooserAction.SELECT_FOLDER}[sys.argv[2]]
chooser = Gtk.FileChooserDialog(title="Pick", action=purpose)
chooser.add_buttons("_Cancel", Gtk.ResponseType.CANCEL, "_Go", Gtk.ResponseType.ACCEPT)
answer = chooser.run()
open(sys.argv[1], "w").write(f"{answer == Gtk.ResponseType.ACCEPT} {chooser.get_filename()}")
"#;

const GTK4: &str = r#"
import sys, gi
gi.require_version("Gtk", "4.0")
from gi.repository import Gtk
purpose = {"open": Gtk.FileChooserAction.OPEN, "save": Gtk.FileChooserAction.SAVE,
           "folder": Gtk.FileChooserAction.SELECT_FOLDER}[sys.argv[2]]
def activate(app):
    main = Gtk.ApplicationWindow(application=app, title="Main")
    main.present()
    chooser = Gtk.FileChooserDialog(title="Pick", transient_for=main, action=purpose)
    chooser.add_button("_Cancel", Gtk.ResponseType.CANCEL)
    chooser.add_button("_Go", Gtk.ResponseType.ACCEPT)
    def answered(chooser, answer):
        file = chooser.get_file()
        open(sys.argv[1], "w").write(f"{answer == Gtk.ResponseType.ACCEPT} {file and file.get_path()}")
        app.quit()
    chooser.connect("response", answered)
    chooser.present()
app = Gtk.Application(application_id="org.example.Picker")
app.connect("activate", activate)
app.run([])
"#;

const QT: &str = r#"
import sys
from PySide6.QtWidgets import QApplication, QFileDialog
app = QApplication(["picker"])
chooser = QFileDialog()
chooser.setOption(QFileDialog.DontUseNativeDialog)
chooser.setWindowTitle("Pick")
if sys.argv[2] == "save":
    chooser.setAcceptMode(QFileDialog.AcceptSave)
if sys.argv[2] == "folder":
    chooser.setFileMode(QFileDialog.Directory)
accepted = bool(chooser.exec())
open(sys.argv[1], "w").write(f"{accepted} {chooser.selectedFiles()[0] if accepted else None}")
"#;

/// The Python that has Qt.
fn qt_python(desktop: &Desktop) -> String {
    let fixture = desktop.qt6("controls");
    let path = std::fs::read_link(format!("/proc/{}/exe", fixture.pid())).expect("it runs");
    drop(path);
    let words = std::fs::read(format!("/proc/{}/cmdline", fixture.pid())).expect("it runs");
    String::from_utf8_lossy(words.split(|byte| *byte == 0).next().expect("a program")).into_owned()
}

struct Picker {
    app: App,
    answer: PathBuf,
}

impl Picker {
    fn start(desktop: &Desktop, python: &str, source: &str, purpose: &str) -> Picker {
        let script = desktop.file("picker.py", source);
        let answer = desktop.file("answer", "");
        let words = [
            python.to_owned(),
            script.display().to_string(),
            answer.display().to_string(),
            purpose.to_owned(),
        ];
        let app = Launch::new(desktop, "picker", words).spawn();
        desktop.wait_window("Pick");
        Picker { app, answer }
    }

    fn answer(&self) -> String {
        std::fs::read_to_string(&self.answer).unwrap_or_default()
    }

    /// Chooses, and waits for what the application says.
    #[track_caller]
    fn choose(&mut self, desktop: &Desktop, path: &str, more: &[&str]) {
        let done = desktop.cli().ok(&[&["choose-file", path], more].concat());
        assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{done:#}");
        wait_until("the application to have its file", SOON, || !self.answer().is_empty());
        assert_eq!(self.answer(), format!("True {path}"), "{done:#}");
        self.app.wait_exit(SOON);
    }
}

/// A file to open, a name to save under, a folder: each by its whole path.
fn all_purposes(desktop: &Desktop, python: &str, source: &str, more: &[&str]) {
    for (purpose, name) in [("open", "there.txt"), ("save", "new ä.txt"), ("folder", "folder")] {
        let path = desktop.path(name);
        match purpose {
            "open" => std::fs::write(&path, "text").expect("the folder can be written"),
            "folder" => std::fs::create_dir_all(&path).expect("the folder can be written"),
            _ => {}
        }
        let mut picker = Picker::start(desktop, python, source, purpose);
        picker.choose(desktop, path.to_str().expect("a text"), more);
    }
}

desktop_test! {
    fn choosers_of_gtk3_are_filled_and_accepted_without_pointer_and_keys(desktop: &Desktop) {
        let pointer = desktop.pointer();
        all_purposes(desktop, SYSTEM_PYTHON, GTK3, &[]);
        assert_eq!(desktop.pointer(), pointer);
    }

    fn choosers_of_gtk4_are_filled_and_need_keys_where_they_show_no_field(desktop: &Desktop) {
        let mut picker = Picker::start(desktop, SYSTEM_PYTHON, GTK4, "save");
        picker.choose(desktop, desktop.path("saved").to_str().expect("a text"), &[]);
        let picker = Picker::start(desktop, SYSTEM_PYTHON, GTK4, "open");
        let error = desktop.cli().fails(&["choose-file", "/etc/hostname"]);
        assert_eq!(error["code"], "POLICY_DENIED", "{error:#}");
        assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
        drop(picker);
        all_purposes(desktop, SYSTEM_PYTHON, GTK4, &["--headed"]);
    }

    fn choosers_of_qt_are_filled_and_a_question_of_theirs_is_told(desktop: &Desktop) {
        let python = qt_python(desktop);
        all_purposes(desktop, &python, QT, &[]);
        // What is there already is asked about: that is not chosen yet, and the caller's to answer.
        let there = desktop.path("there.txt");
        let picker = Picker::start(desktop, &python, QT, "save");
        let error = desktop.cli().fails(&["choose-file", there.to_str().expect("a text")]);
        assert_eq!(error["details"]["kind"], "file_chooser_not_closed", "{error:#}");
        assert_eq!(error["disposition"]["delivery"], "delivered_unverified", "{error:#}");
        assert_eq!(error["details"]["surfaces"].as_array().map(Vec::len), Some(2), "{error:#}");
        assert!(picker.answer().is_empty());
    }

    fn gedit_opens_the_file_that_was_chosen(desktop: &Desktop) {
        let (first, second) = (desktop.file("first.txt", "one\n"), desktop.file("second.txt", "two\n"));
        let app = desktop.gedit(&first);
        let cli = desktop.cli();
        cli.ok(&["press", "ctrl+o", "--app", app.name(), "--headed"]);
        // Relative to the working directory, and as soon as the chooser is there.
        let done = cli.inside(second.parent().expect("a folder")).ok(&["choose-file", "second.txt", "--app", app.name()]);
        assert_eq!(done["path"], second.to_str().expect("a text"), "{done:#}");
        app.wait_title(desktop, "second.txt");
    }

    fn without_a_chooser_or_with_two_nothing_is_touched(desktop: &Desktop) {
        let app = desktop.gtk3("dialogs");
        let cli = desktop.cli();
        cli.ok(&["click", &cli.find(app.name(), "button", "Ask")]);
        app.wait_log("dialog opened Question");
        let before = app.effects();
        let error = cli.fails(&["choose-file", "/etc/hostname", "--timeout-ms", "1500"]);
        assert_eq!(error["details"]["kind"], "file_chooser_not_open", "{error:#}");
        assert_eq!(app.effects(), before);
        let one = Picker::start(desktop, SYSTEM_PYTHON, GTK3, "open");
        let two = Picker::start(desktop, SYSTEM_PYTHON, GTK3, "open");
        wait_until("both", SOON, || desktop.windows().iter().filter(|window| window.title == "Pick").count() == 2);
        wait_until("both to be known", SOON, || {
            cli.fails(&["choose-file", "/etc/hostname", "--timeout-ms", "3000"])["code"] == "AMBIGUOUS_TARGET"
        });
        assert!(one.answer().is_empty() && two.answer().is_empty());
        for path in ["", "a\nb"] {
            assert_eq!(cli.fails(&["choose-file", path])["code"], "INVALID_ARGS", "{path:?}");
        }
    }
}
