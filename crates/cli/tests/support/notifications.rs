//! What the tests of notifications share: a service that shows them, and a sender that writes down what it is told.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agent_desktop_testkit::{Desktop, wait_until};

pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Sends one notification and writes down what becomes of it: `shown ID`, `invoked ID KEY`, `closed ID REASON`.
const SENDER: &str = r#"
import sys
from gi.repository import Gio, GLib
app, title, body, timeout = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
def heard(connection, sender, path, interface, signal, values):
    word = {"NotificationClosed": "closed", "ActionInvoked": "invoked"}[signal]
    print(word, *values.unpack(), flush=True)
for signal in ("NotificationClosed", "ActionInvoked"):
    bus.signal_subscribe("org.freedesktop.Notifications", "org.freedesktop.Notifications", signal,
                         "/org/freedesktop/Notifications", None, Gio.DBusSignalFlags.NONE, heard)
values = GLib.Variant("(susssasa{sv}i)", (app, 0, "", title, body, sys.argv[5:], {}, timeout))
answer = bus.call_sync("org.freedesktop.Notifications", "/org/freedesktop/Notifications", "org.freedesktop.Notifications",
                       "Notify", values, None, Gio.DBusCallFlags.NO_AUTO_START, -1, None)
print("shown", *answer.unpack(), flush=True)
GLib.MainLoop().run()
"#;

/// A process that ends with the test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Process {
        Process::start_with(command, Stdio::null())
    }

    pub(crate) fn start_with(command: &mut Command, input: Stdio) -> Process {
        let child = command.stdin(input).spawn();
        Process(
            child
                .unwrap_or_else(|error| panic!("{command:?}: {error} (scripts/install.sh test installs it)")),
        )
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status();
        assert!(status.expect("kill is there").success());
    }

    pub(crate) fn end(mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn has_service(desktop: &Desktop) -> bool {
    let arguments = "call --session -d org.freedesktop.DBus -o /org/freedesktop/DBus -m org.freedesktop.DBus.NameHasOwner org.freedesktop.Notifications";
    desktop.tool("gdbus", &arguments.split(' ').collect::<Vec<_>>()).contains("true")
}

pub(crate) fn service(desktop: &Desktop, program: &str) -> Process {
    let log = std::fs::File::create(desktop.path("service.log")).expect("a file");
    let process =
        Process::start(Command::new(program).stdout(log.try_clone().expect("a handle")).stderr(log));
    wait_until("the service to be there", SOON, || has_service(desktop));
    process
}

/// A notification that was sent, and what its sender has written down.
pub(crate) struct Sent {
    log: PathBuf,
    _sender: Process,
}

impl Sent {
    pub(crate) fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.log).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// What came after `shown` for this notification, without its number: xfce4-notifyd tells every sender of all.
    pub(crate) fn heard(&self) -> Vec<String> {
        let number = self.number();
        let words = |line: &String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let lines = self.lines();
        let own = lines.iter().skip(1).map(words).filter(|words| words.len() == 3 && words[1] == number);
        own.map(|words| format!("{} {}", words[0], words[2])).collect()
    }

    pub(crate) fn number(&self) -> String {
        self.lines()[0].trim_start_matches("shown ").to_owned()
    }

    #[track_caller]
    pub(crate) fn wait_heard(&self, line: &str) {
        wait_until(&format!("the sender to hear {line:?}"), SOON, || {
            self.heard().iter().any(|heard| heard == line)
        });
    }
}

/// Sends a notification and waits until it is shown; `words` are sender, title, body, milliseconds (0: for ever), and keys
/// and labels of actions.
pub(crate) fn send(desktop: &Desktop, words: &[&str]) -> Sent {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let script = desktop.file("sender.py", SENDER);
    let log = desktop.path(&format!("sender-{}.log", COUNT.fetch_add(1, Ordering::Relaxed)));
    let file = std::fs::File::create(&log).expect("a file");
    let sender = Process::start(Command::new("/usr/bin/python3").arg(script).args(words).stdout(file));
    let sent = Sent { log, _sender: sender };
    wait_until("it to be shown", SOON, || !sent.lines().is_empty());
    sent
}
