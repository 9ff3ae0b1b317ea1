//! Notifications, with the services that show them in reality. The judge is the sender: a program of its own that writes down
//! what the service told it.

use std::process::{Command, Stdio};

use agent_desktop_testkit::{Cli, Desktop, desktop_test, wait_for, wait_until};
use serde_json::{Value, json};

#[path = "support/notifications.rs"]
mod support;

use support::{Process, SOON, Sent, has_service, send, service};

const XFCE: &str = "/usr/lib/x86_64-linux-gnu/xfce4/notifyd/xfce4-notifyd";

/// The program with a session selected that has just begun.
fn begin(cli: &Cli) -> Cli {
    let data = cli.ok(&["session", "start"]);
    assert_eq!(data["notifications"], "on", "{data:#}");
    cli.clone().env("AGENT_DESKTOP_SESSION", data["session_id"].as_str().expect("an id"))
}

/// Everything that is known, once so many are known.
#[track_caller]
fn all(cli: &Cli, count: usize) -> Vec<Value> {
    wait_for(&format!("{count} notifications to be known"), SOON, || {
        let data = cli.ok(&["list-notifications", "--all"]);
        assert_eq!(data["complete"], true, "{data:#}");
        data["notifications"].as_array().filter(|list| list.len() == count).cloned()
    })
}

#[track_caller]
fn wait_state(cli: &Cli, index: usize, state: &str) {
    wait_until(&format!("{index} to be {state}"), SOON, || {
        let data = cli.ok(&["list-notifications", "--all"]);
        data["notifications"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|one| one["index"] == index && one["state"] == state)
    });
}

fn kind(error: &Value) -> (&str, &str) {
    (error["code"].as_str().unwrap_or_default(), error["details"]["kind"].as_str().unwrap_or_default())
}

/// Processes of ours that listen.
fn listeners() -> usize {
    let found = Command::new("pgrep").args(["-fc", "listen-to-notifications-of-this-session"]).output();
    String::from_utf8_lossy(&found.expect("pgrep is there").stdout).trim().parse().unwrap_or(0)
}

fn listed_and_dismissed(desktop: &Desktop, program: &str) {
    let _service = service(desktop, program);
    let before = send(desktop, &["Early", "Before the session", "", "0"]);
    let cli = begin(&desktop.cli());
    let first = send(
        desktop,
        &["Mail", "Grüße 🙂", "Two\nlines, <b>bold</b>", "0", "default", "Open", "reply", "Reply"],
    );
    let second = send(desktop, &["Calendar", "Meeting", "", "0"]);
    let moment = send(desktop, &["Calendar", "Gone in a moment", "really", "100"]);
    moment.wait_heard("closed 1");
    wait_state(&cli, 3, "expired");

    let list = all(&cli, 3);
    let expected = json!({"index": 1, "app_name": "Mail", "title": "Grüße 🙂", "body": "Two\nlines, <b>bold</b>",
        "actions": ["Open", "Reply"], "state": "open", "shown_at": list[0]["shown_at"]});
    assert_eq!(list[0], expected);
    assert!(list[1].get("body").is_none() && list[1].get("actions").is_none(), "{:#}", list[1]);
    // An index counts all of them, whatever is shown.
    let shown = |flags: &[&str]| -> Vec<u64> {
        let data = cli.ok(&[&["list-notifications"], flags].concat());
        assert_eq!(data["count"], data["notifications"].as_array().expect("a list").len());
        data["notifications"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one["index"].as_u64())
            .collect()
    };
    assert_eq!(shown(&["--app", "CALEN"]), [2, 3]);
    assert_eq!(shown(&["--text", "REALLY"]), [3]);
    assert_eq!(shown(&["--text", "mail"]), [1]);
    assert_eq!(shown(&["--limit", "1"]), [3]);
    let status = cli.ok(&["status"]);
    let session = cli.home().join("sessions").join(status["session_id"].as_str().expect("an id"));
    let mode = session.join("notifications.json").metadata().expect("a journal").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);

    // What is another one, is not there or is over is left alone.
    for (words, expected) in [
        (&["2", "--expected-app", "calendar"][..], ("NOTIFICATION_NOT_FOUND", "notification_mismatch")),
        (
            &["2", "--expected-app", "Calendar", "--expected-title", "Meet"],
            ("NOTIFICATION_NOT_FOUND", "notification_mismatch"),
        ),
        (
            &["2", "--expected-app", "Calendar", "--app", "mail"],
            ("NOTIFICATION_NOT_FOUND", "notification_mismatch"),
        ),
        (&["4", "--expected-app", "Early"], ("NOTIFICATION_NOT_FOUND", "no_such_notification")),
        (&["3", "--expected-app", "Calendar"], ("NOTIFICATION_NOT_FOUND", "notification_closed")),
        (&["2"], ("INVALID_ARGS", "")),
        (&["2", "--expected-app", ""], ("INVALID_ARGS", "")),
    ] {
        let error = cli.fails(&[&["dismiss-notification"], words].concat());
        assert_eq!(kind(&error), expected, "{words:?} {error:#}");
        assert_eq!(error["disposition"]["delivery"], "not_delivered");
    }
    assert_eq!(cli.run(&["dismiss-notification", "0", "--expected-app", "Mail"]).code, Some(2));
    let zero = r#"[{"command":"dismiss-notification","args":{"index":0,"expected_app":"Mail"}}]"#;
    assert_eq!(cli.fails(&["batch", zero])["code"], "INVALID_ARGS");
    assert!(
        first.heard().is_empty() && second.heard().is_empty(),
        "{:?} {:?}",
        first.heard(),
        second.heard()
    );

    let data =
        cli.ok(&["dismiss-notification", "2", "--expected-app", "Calendar", "--expected-title", "Meeting"]);
    assert_eq!(data["dismissed"]["title"], "Meeting", "{data:#}");
    assert_eq!(data["disposition"]["delivery"], "delivered_verified");
    second.wait_heard("closed 3");
    assert!(first.heard().is_empty(), "{:?}", first.heard());
    assert_eq!(shown(&[]), [1, 3], "what was dismissed is not listed, and the others keep their numbers");
    assert_eq!(
        kind(&cli.fails(&["dismiss-notification", "2", "--expected-app", "Calendar"])).1,
        "notification_closed"
    );

    // All that is known; one by one, by app.
    let third = send(desktop, &["Calendar", "Once more", "", "0"]);
    all(&cli, 4);
    assert_eq!(cli.ok(&["dismiss-all-notifications", "--app", "calendar"]), json!({"dismissed_count": 1}));
    third.wait_heard("closed 3");
    assert!(first.heard().is_empty(), "{:?}", first.heard());
    assert_eq!(cli.ok(&["dismiss-all-notifications"]), json!({"dismissed_count": 1}));
    first.wait_heard("closed 3");
    assert_eq!(cli.ok(&["dismiss-all-notifications"]), json!({"dismissed_count": 0}));
    assert_eq!(shown(&[]), [3]);
    assert!(before.heard().is_empty(), "nothing is known of it");
}

fn waited_for(desktop: &Desktop, program: &str) {
    let running = service(desktop, program);
    let cli = desktop.cli();
    let _before = send(desktop, &["Mail", "Early", "", "0"]);
    let error = cli.fails(&["wait", "--notification", "--app", "mail", "--timeout", "300"]);
    assert_eq!(kind(&error), ("TIMEOUT", "wait_timeout"), "{error:#}");
    assert_eq!(error["details"]["predicate"], "notification");

    let mut waiting =
        cli.command(&["wait", "--notification", "--app", "mail", "--text", "LATE", "--timeout", "20000"]);
    let output = desktop.path("wait.json");
    waiting.stdout(std::fs::File::create(&output).expect("a file"));
    let mut waiting = Process::start(&mut waiting);
    wait_until("it to come through", SOON, || {
        // Not the one that is waited for, and one that lives a moment only.
        send(desktop, &["Other", "Late", "", "50"]);
        send(desktop, &["Mail", "Early", "", "50"]);
        send(desktop, &["E-Mail", "A late one", "text", "50", "reply", "Reply"]);
        waiting.0.try_wait().expect("it is ours").is_some()
    });
    let reply: Value = serde_json::from_slice(&std::fs::read(&output).expect("a file")).expect("JSON");
    assert_eq!(reply["data"]["matched"], true, "{reply:#}");
    let expected = json!({"app_name": "E-Mail", "title": "A late one", "body": "text", "actions": ["Reply"]});
    assert_eq!(
        (&reply["data"]["condition"], &reply["data"]["notification"]),
        (&"notification".into(), &expected),
        "{reply:#}"
    );

    // Its service ends while it waits.
    let mut waiting =
        cli.command(&["wait", "--notification", "--text", "nothing like it", "--timeout", "60000"]);
    waiting.stdout(std::fs::File::create(&output).expect("a file"));
    let mut waiting = Process::start(&mut waiting);
    let pid = waiting.0.id().to_string();
    wait_until("it to wait", SOON, || {
        desktop.try_tool("cat", &[&format!("/proc/{pid}/wchan")]).is_ok_and(|word| word.contains("poll"))
    });
    running.end();
    wait_until("it to give up", SOON, || waiting.0.try_wait().expect("it is ours").is_some());
    let reply: Value = serde_json::from_slice(&std::fs::read(&output).expect("a file")).expect("JSON");
    assert_eq!(kind(&reply["error"]), ("PLATFORM_NOT_SUPPORTED", "no_notification_service"), "{reply:#}");
}

desktop_test! {
    fn dunst_notifications_are_listed_and_dismissed_by_their_number(desktop: &Desktop) {
        listed_and_dismissed(desktop, "dunst");
    }

    fn xfce_notifications_are_listed_and_dismissed_by_their_number(desktop: &Desktop) {
        listed_and_dismissed(desktop, XFCE);
    }

    fn one_that_comes_later_is_waited_for_with_dunst(desktop: &Desktop) {
        waited_for(desktop, "dunst");
    }

    fn one_that_comes_later_is_waited_for_with_xfce(desktop: &Desktop) {
        waited_for(desktop, XFCE);
    }

    fn the_button_of_the_right_bubble_is_pressed_in_xfce(desktop: &Desktop) {
        let _service = service(desktop, XFCE);
        let cli = begin(&desktop.cli());
        let actions = ["default", "Open", "reply", "Reply", "twin", "Twin", "twin2", "Twin"];
        let one = send(desktop, &[&["Mail", "Hello", "from <i>one</i> &amp; only", "0"][..], &actions].concat());
        let other = send(desktop, &[&["Mail", "Hello", "from another", "0"][..], &actions].concat());
        all(&cli, 2);
        let error = cli.fails(&["notification-action", "1", "Forward", "--expected-app", "Mail"]);
        assert_eq!(kind(&error), ("ACTION_FAILED", "no_such_notification_action"), "{error:#}");
        assert_eq!((&error["details"]["actions"][1], &error["disposition"]["delivery"]), (&"Reply".into(), &"not_delivered".into()));
        let error = cli.fails(&["notification-action", "1", "Twin", "--expected-app", "Mail"]);
        assert_eq!(kind(&error), ("AMBIGUOUS_TARGET", "ambiguous_notification_action"), "{error:#}");
        let error = cli.fails(&["notification-action", "1", "Reply", "--expected-app", "Post"]);
        assert_eq!(kind(&error).1, "notification_mismatch", "{error:#}");
        assert!(one.heard().is_empty() && other.heard().is_empty());
        let data = cli.ok(&["notification-action", "1", "Reply", "--expected-app", "Mail"]);
        assert_eq!(data, json!({"action": "Reply", "disposition": {"delivery": "delivered_verified", "retry": "unsafe"}}));
        one.wait_heard("invoked reply");
        wait_state(&cli, 1, "dismissed");
        assert!(other.heard().is_empty(), "{:?}", other.heard());
        cli.ok(&["notification-action", "2", "default", "--expected-title", "Hello"]);
        other.wait_heard("invoked default");
        // Two that nobody could tell apart.
        let twins: Vec<Sent> = (0..2).map(|_| send(desktop, &["Mail", "Twins", "same", "0", "reply", "Reply"])).collect();
        all(&cli, 4);
        let error = cli.fails(&["notification-action", "3", "Reply", "--expected-title", "Twins"]);
        assert_eq!(kind(&error), ("AMBIGUOUS_TARGET", "ambiguous_notification"), "{error:#}");
        assert!(twins.iter().all(|twin| twin.heard().is_empty()));
    }

    fn dunst_does_what_is_certain_and_refuses_the_rest(desktop: &Desktop) {
        let _service = service(desktop, "dunst");
        let cli = begin(&desktop.cli());
        let one = send(desktop, &["Mail", "Hello", "", "0", "default", "Open", "reply", "Reply"]);
        all(&cli, 1);
        let error = cli.fails(&["notification-action", "1", "Reply", "--expected-app", "Mail"]);
        assert_eq!(kind(&error), ("ACTION_NOT_SUPPORTED", "action_not_offered"), "{error:#}");
        let other = send(desktop, &["Mail", "Another", "", "0", "only", "Only"]);
        all(&cli, 2);
        for action in ["Open", "default"] {
            let error = cli.fails(&["notification-action", "1", action, "--expected-app", "Mail"]);
            assert_eq!(kind(&error), ("ACTION_NOT_SUPPORTED", "action_not_offered"), "{error:#}");
            assert_eq!(error["disposition"]["delivery"], "not_delivered");
        }
        assert!(one.heard().is_empty() && other.heard().is_empty(), "{:?} {:?}", one.heard(), other.heard());
        cli.ok(&["dismiss-notification", "1", "--expected-title", "Hello"]);
        let data = cli.ok(&["notification-action", "2", "Only", "--expected-app", "Mail"]);
        assert_eq!(data["disposition"]["delivery"], "delivered_verified", "{data:#}");
        other.wait_heard("invoked only");
        assert_eq!(one.heard(), ["closed 3"]);
    }

    fn a_number_means_nothing_to_the_next_service(desktop: &Desktop) {
        let first = service(desktop, XFCE);
        let cli = begin(&desktop.cli());
        let words = ["Mail", "Same", "", "0", "default", "Open"];
        let old = send(desktop, &words);
        all(&cli, 1);
        first.end();
        wait_until("the name to be free", SOON, || !has_service(desktop));
        wait_state(&cli, 1, "closed");
        let error = cli.fails(&["dismiss-all-notifications"]);
        assert_eq!(kind(&error).1, "no_notification_service", "{error:#}");
        let _second = service(desktop, XFCE);
        let new = send(desktop, &words);
        assert_eq!(new.number(), old.number(), "the test needs a service that counts anew");
        all(&cli, 2);
        let error = cli.fails(&["dismiss-notification", "1", "--expected-title", "Same"]);
        assert_eq!(kind(&error), ("NOTIFICATION_NOT_FOUND", "notification_closed"), "{error:#}");
        // Also when the journal has missed that the service ended.
        let status = cli.ok(&["status"]);
        let journal = cli.home().join("sessions").join(status["session_id"].as_str().expect("an id")).join("notifications.json");
        let text = std::fs::read_to_string(&journal).expect("a journal");
        std::fs::write(&journal, text.replace("\"closed\"", "\"open\"")).expect("it is ours");
        for command in [&["dismiss-notification", "1"][..], &["notification-action", "1", "default"]] {
            let error = cli.fails(&[command, &["--expected-title", "Same"]].concat());
            assert_eq!(kind(&error), ("NOTIFICATION_NOT_FOUND", "notification_closed"), "{error:#}");
            assert!(error["platform_detail"].as_str().is_some_and(|text| text.contains("has ended")), "{error:#}");
        }
        assert!(new.heard().is_empty(), "{:?}", new.heard());
        cli.ok(&["dismiss-notification", "2", "--expected-title", "Same"]);
        new.wait_heard("closed 3");
    }

    fn a_service_that_hangs_is_named_before_the_deadline(desktop: &Desktop) {
        let service = service(desktop, "dunst");
        let cli = begin(&desktop.cli());
        let sent = send(desktop, &["Mail", "Hello", "", "0", "only", "Only"]);
        all(&cli, 1);
        service.signal("-STOP");
        for command in [&["dismiss-notification", "1"][..], &["notification-action", "1", "Only"]] {
            let error = cli.fails(&[command, &["--expected-app", "Mail", "--timeout-ms", "1000"]].concat());
            assert_eq!(error["code"], "APP_UNRESPONSIVE", "{error:#}");
        }
        // What the bus and the journal know needs no service that answers.
        assert_eq!(cli.ok(&["list-notifications"])["count"], 1);
        service.signal("-CONT");
        // The request was on its way, as the error said: uncertain.
        sent.wait_heard("closed 3");
    }

    fn without_a_service_or_a_session_that_is_said_at_once(desktop: &Desktop) {
        let cli = desktop.cli().within(SOON);
        let commands = [
            &["list-notifications", "--timeout-ms", "60000"][..],
            &["dismiss-notification", "1", "--expected-app", "x"],
            &["dismiss-all-notifications"],
            &["notification-action", "1", "x", "--expected-app", "x"],
            &["wait", "--notification", "--timeout", "60000"],
        ];
        for command in commands {
            let error = cli.fails(command);
            assert_eq!(kind(&error), ("PLATFORM_NOT_SUPPORTED", "no_notification_service"), "{command:?} {error:#}");
            let error = cli.clone().env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere").env("XDG_RUNTIME_DIR", "/nowhere").fails(command);
            assert_eq!(kind(&error), ("PLATFORM_NOT_SUPPORTED", "no_session_bus"), "{command:?} {error:#}");
        }
        assert!(!has_service(desktop), "asking starts nobody");
        let _service = service(desktop, "dunst");
        let _sent = send(desktop, &["Mail", "Hello", "", "0"]);
        let data = cli.ok(&["list-notifications"]);
        assert_eq!((&data["count"], &data["complete"]), (&0.into(), &false.into()), "{data:#}");
        assert!(data["hint"].as_str().is_some_and(|hint| hint.contains("session start")), "{data:#}");
        for command in &commands[1..4] {
            let error = cli.fails(command);
            assert_eq!(kind(&error), ("NOTIFICATION_NOT_FOUND", "no_notification_listener"), "{command:?} {error:#}");
        }
        let data = cli.ok(&["session", "start", "--no-notifications"]);
        assert_eq!((&data["notifications"], listeners()), (&"off".into(), 0));
    }

    fn a_listener_ends_with_its_session_or_its_bus_and_holds_nothing(desktop: &Desktop) {
        let cli = desktop.cli();
        let _service = service(desktop, "dunst");
        let session = begin(&cli);
        let _sent = send(desktop, &["Mail", "Hello", "", "0"]);
        all(&session, 1);
        assert_eq!(listeners(), 1);
        session.ok(&["session", "end"]);
        wait_until("the listener to end with its session", SOON, || listeners() == 0);
        let data = session.ok(&["list-notifications"]);
        assert_eq!((&data["complete"], &data["notifications"][0]["state"]), (&false.into(), &"unknown".into()), "{data:#}");
        let error = session.fails(&["dismiss-notification", "1", "--expected-app", "Mail"]);
        assert_eq!(kind(&error).1, "no_notification_listener", "{error:#}");

        // Whoever reads from a pipe that the command was given must not wait for the listener.
        let start = r#"exec 9>&1; "$0" session start >/dev/null"#;
        let mut shell = Command::new("bash");
        shell.args(["-c", start]).arg(cli.command::<&str>(&[]).get_program()).env("AGENT_DESKTOP_HOME", cli.home()).stdout(Stdio::piped());
        let mut shell = Process::start(&mut shell);
        let mut output = shell.0.stdout.take().expect("a pipe");
        let (sender, done) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(std::io::Read::read_to_end(&mut output, &mut Vec::new()).is_ok()));
        assert_eq!(done.recv_timeout(SOON), Ok(true), "the pipe to close");
        assert_eq!(listeners(), 1);

        // Another bus, that ends.
        let socket = desktop.path("bus");
        let address = format!("unix:path={}", socket.display());
        let bus = Process::start(Command::new("dbus-daemon").args(["--session", "--nofork", "--nopidfile", "--address", &address]));
        wait_until("the bus to be there", SOON, || socket.exists());
        let there = begin(&cli.clone().env("DBUS_SESSION_BUS_ADDRESS", address));
        assert_eq!(listeners(), 2);
        assert_eq!(kind(&there.fails(&["list-notifications"])).1, "no_notification_service");
        bus.end();
        wait_until("the listener to end with its bus", SOON, || listeners() == 1);
        let data = there.without("DBUS_SESSION_BUS_ADDRESS").env("DBUS_SESSION_BUS_ADDRESS", std::env::var("DBUS_SESSION_BUS_ADDRESS").expect("a bus")).ok(&["list-notifications"]);
        assert_eq!(data["complete"], false, "{data:#}");
    }
}
