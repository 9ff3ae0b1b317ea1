//! The clipboard. The judge is `xclip`, another program that copies and pastes.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use agent_desktop_testkit::{Desktop, desktop_test, wait_until};

const SOON: Duration = Duration::from_secs(5);

fn paste(target: &str) -> Vec<u8> {
    let output = Command::new("xclip").args(["-selection", "clipboard", "-o", "-t", target]).output();
    output.expect("xclip is there").stdout
}

fn copy(target: &str, bytes: &[u8]) {
    let mut child = Command::new("xclip")
        .args(["-selection", "clipboard", "-i", "-t", target])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("xclip is there");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("it reads");
    assert!(child.wait().expect("it is ours").success());
}

/// Processes of ours that serve the clipboard.
fn servers() -> usize {
    let found = Command::new("pgrep")
        .args(["-fc", "serve-clipboard-of-this-desktop"])
        .output()
        .expect("pgrep is there");
    String::from_utf8_lossy(&found.stdout).trim().parse().unwrap_or(0)
}

/// A picture of the desktop, as a PNG file.
fn picture(desktop: &Desktop) -> (std::path::PathBuf, Vec<u8>) {
    let path = desktop.path("picture.png");
    desktop.cli().ok(&["screenshot", path.to_str().expect("a plain path")]);
    let bytes = std::fs::read(&path).expect("it was written");
    (path, bytes)
}

desktop_test! {
    fn what_is_copied_outlives_the_command_and_ends_with_the_next(desktop: &Desktop) {
        let cli = desktop.cli();
        for text in ["Hello, World! äöüß é П 你好 🙂", "", "two\nlines\n"] {
            assert_eq!(cli.ok(&["clipboard-set", text])["type"], "text");
            assert_eq!(String::from_utf8(paste("UTF8_STRING")).expect("text"), text);
            assert_eq!(cli.ok(&["clipboard-get"])["text"], text);
        }
        wait_until("one to be left that serves", SOON, || servers() == 1);
        copy("UTF8_STRING", "somebody else".as_bytes());
        wait_until("nobody to be left that serves", SOON, || servers() == 0);
        assert_eq!(cli.ok(&["clipboard-get", "--format", "auto"])["text"], "somebody else");
        assert_eq!(cli.ok(&["clipboard-clear"])["cleared"], true);
        assert!(paste("UTF8_STRING").is_empty());
        assert_eq!(cli.ok(&["clipboard-get"]), serde_json::json!({"type": "text", "found": false}));
    }

    fn what_serves_keeps_no_lock_and_no_pipe_of_the_caller(desktop: &Desktop) {
        let lock = desktop.path("lock");
        let script = "exec 9>\"$1\"; flock 9; \"$2\" clipboard-set kept";
        let mut shell = desktop.cli().command::<&str>(&[]);
        let program = shell.get_program().to_owned();
        let environment: Vec<_> = shell.get_envs().map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned))).collect();
        shell = Command::new("bash");
        shell.args(["-c", script, "bash"]).arg(&lock).arg(program);
        for (key, value) in environment {
            match value {
                Some(value) => shell.env(key, value),
                None => shell.env_remove(key),
            };
        }
        assert!(shell.output().expect("bash is there").status.success());
        assert_eq!(servers(), 1);
        let free = Command::new("flock").arg("--nonblock").arg(&lock).arg("true").status().expect("flock is there");
        assert!(free.success(), "whoever serves the clipboard holds the caller's lock");
        assert_eq!(paste("UTF8_STRING"), b"kept");
    }

    fn a_long_text_travels_in_pieces(desktop: &Desktop) {
        let cli = desktop.cli();
        let file = desktop.file("long.json", "");
        let text = "0123456789 äöü🙂\n".repeat(40_000);
        let list = serde_json::json!([{"command": "clipboard-set", "args": {"text": text}}]);
        std::fs::write(&file, list.to_string()).expect("a file");
        let done = cli.ok(&["batch", "--file", file.to_str().expect("a plain path")]);
        assert_eq!(done["failed_entries"], 0, "{done:#}");
        assert_eq!(String::from_utf8(paste("UTF8_STRING")).expect("text"), text);
        copy("UTF8_STRING", text.as_bytes());
        assert_eq!(cli.ok(&["clipboard-get"])["text"], text);
    }

    fn pictures_and_files_are_copied_and_pasted(desktop: &Desktop) {
        let cli = desktop.cli();
        let (path, bytes) = picture(desktop);
        cli.ok(&["clipboard-set", "--image", path.to_str().expect("a plain path")]);
        assert_eq!(paste("image/png"), bytes);
        let shown = cli.ok(&["clipboard-get", "--format", "image"]);
        assert_eq!((&shown["width"], &shown["height"]), (&1280.into(), &800.into()), "{shown:#}");
        let kept = std::path::PathBuf::from(shown["path"].as_str().expect("a path"));
        assert_eq!(std::fs::read(&kept).expect("it was written"), bytes);
        let mode = std::os::unix::fs::PermissionsExt::mode(&kept.metadata().expect("it is there").permissions());
        assert_eq!(mode & 0o777, 0o600);
        let out = desktop.path("out.png");
        cli.ok(&["clipboard-get", "--format", "auto", "--out", out.to_str().expect("a plain path")]);
        assert_eq!(std::fs::read(&out).expect("it was written"), bytes);

        let file = desktop.file("a b ä.txt", "x");
        let file = file.to_str().expect("a plain path");
        cli.ok(&["clipboard-set", "--file-url", file, "--file-url", path.to_str().expect("a plain path")]);
        let list = String::from_utf8(paste("text/uri-list")).expect("text");
        assert!(list.starts_with("file:///") && list.contains("a%20b%20%C3%A4.txt\r\n"), "{list}");
        assert_eq!(cli.ok(&["clipboard-get", "--format", "auto"])["file_urls"][0], file);
        let error = cli.fails(&["clipboard-set", "--file-url", file, "--file-url", "/nowhere"]);
        assert_eq!((&error["code"], &error["details"]["indexes"]), (&"INVALID_ARGS".into(), &serde_json::json!([1])));
    }

    fn a_secret_is_refused_and_a_silent_owner_named(desktop: &Desktop) {
        let cli = desktop.cli();
        let script = desktop.file("owner.py", OWNER);
        let mut owner = Command::new("/usr/bin/python3").arg(&script).stderr(Stdio::null()).spawn().expect("python3 is there");
        wait_until("the owner to have copied", SOON, || !paste("UTF8_STRING").is_empty());
        let error = cli.fails(&["clipboard-get"]);
        assert_eq!((&error["code"], &error["details"]["kind"]), (&"POLICY_DENIED".into(), &"clipboard_concealed".into()), "{error:#}");
        assert!(!error.to_string().contains("hunter2"), "{error:#}");
        assert_eq!(cli.ok(&["clipboard-get", "--allow-concealed"])["text"], "hunter2");
        let send = |signal: &str| {
            assert!(Command::new("kill").args([signal, &owner.id().to_string()]).status().expect("kill is there").success());
        };
        send("-STOP");
        let error = cli.fails(&["clipboard-get", "--timeout-ms", "800"]);
        assert_eq!(error["code"], "APP_UNRESPONSIVE", "{error:#}");
        send("-CONT");
        let _ = owner.kill();
        let _ = owner.wait();
    }
}

/// Copies a text and marks it as password managers do.
const OWNER: &str = r#"
import gi
gi.require_version("Gtk", "3.0")
gi.require_version("Gdk", "3.0")
from gi.repository import Gtk, Gdk
view = Gtk.Invisible()
TARGETS = [Gtk.TargetEntry.new("UTF8_STRING", 0, 0), Gtk.TargetEntry.new("x-kde-passwordManagerHint", 0, 1)]
for target in TARGETS:
    Gtk.selection_add_target(view, Gdk.Atom.intern("CLIPBOARD", False), Gdk.Atom.intern(target.target, False), target.info)
def give(widget, data, info, time):
    data.set(data.get_target(), 8, b"hunter2" if info == 0 else b"secret")
view.connect("selection-get", give)
Gtk.selection_owner_set(view, Gdk.Atom.intern("CLIPBOARD", False), Gdk.CURRENT_TIME)
Gtk.main()
"#;
