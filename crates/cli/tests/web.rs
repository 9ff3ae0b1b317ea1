//! The built binary against pages in Chromium and Firefox. The page's own script tells what reached it, in its title,
//! which the window system shows.

use std::time::{Duration, Instant};

use agent_desktop_testkit::app::Launch;
use agent_desktop_testkit::{App, Cli, Desktop, desktop_test, look};
use serde_json::Value;

const UNICODE: &str = "Hello, World! äöüß é П 你好 🙂";

#[track_caller]
fn on(cli: &Cli, app: &App, role: &str, name: &str, command: &[&str]) -> Value {
    let reference = cli.find(app.name(), role, name);
    let mut args = vec![command[0], &reference];
    args.extend(&command[1..]);
    cli.ok(&args)
}

#[track_caller]
fn refused(cli: &Cli, app: &App, role: &str, name: &str, command: &[&str]) -> Value {
    let reference = cli.find(app.name(), role, name);
    let mut args = vec![command[0], &reference];
    args.extend(&command[1..]);
    cli.fails(&args)
}

#[track_caller]
fn assert_verified(data: &Value) {
    assert_eq!(data["disposition"]["delivery"], "delivered_verified", "{data:#}");
}

#[track_caller]
fn assert_needs_headed(error: &Value) {
    assert_eq!(error["code"], "POLICY_DENIED", "{error:#}");
    assert_eq!(error["disposition"]["retry"], "safe", "{error:#}");
    assert!(error["suggestion"].as_str().is_some_and(|hint| hint.contains("--headed")), "{error:#}");
}

/// Everything that both browsers do alike: what needs no keys headless, the rest with keys.
fn fill_the_form(desktop: &Desktop, app: &App) {
    let cli = desktop.cli();
    let seen = |part: &str| app.wait_title(desktop, part);
    assert_verified(&on(&cli, app, "checkbox", "Accept terms", &["check"]));
    seen("change terms=true trusted=true");
    assert_verified(&on(&cli, app, "radiobutton", "Fast", &["click"]));
    seen("change fast=true trusted=true");
    assert_verified(&on(&cli, app, "slider", "Volume", &["set-value", "70"]));
    seen("change volume=70 trusted=true");
    on(&cli, app, "button", "Tiny", &["click"]);
    seen("click tiny trusted=true");
    let error = refused(&cli, app, "button", "Unavailable", &["click", "--timeout-ms", "200"]);
    assert!(error["message"].as_str().unwrap().contains("disabled"), "{error:#}");

    assert_verified(&on(&cli, app, "textfield", "Full name", &["type", UNICODE, "--headed"]));
    seen(&format!("input name={UNICODE} trusted=true"));
    assert_verified(&on(&cli, app, "textfield", "Full name", &["set-value", "Ada Lovelace", "--headed"]));
    seen("input name=Ada Lovelace trusted=true");
    assert_verified(&on(&cli, app, "textfield", "Email", &["type", "ada@example.org", "--headed"]));
    assert_verified(&on(&cli, app, "textfield", "Remarks", &["type", "gone", "--headed"]));
    assert_verified(&on(&cli, app, "textfield", "Remarks", &["clear", "--headed"]));
    seen("input remarks= trusted=true");
    assert_verified(&on(&cli, app, "textfield", "Remarks", &["type", "two\nlines", "--headed"]));
    assert_verified(&on(&cli, app, "incrementor", "Amount", &["set-value", "4", "--headed"]));
    seen("amount=4 trusted=true");
    // Again and again, with readers that come and go: this once ended Chromium.
    for secret in ["hush1", "hush2", "hush3"] {
        let data = on(&cli, app, "textfield", "Password", &["set-value", secret, "--headed"]);
        assert_verified(&data);
        assert!(!data.to_string().contains("hush"), "{data:#}");
    }
    seen("input password=hush3 trusted=true");
    assert!(on(&cli, app, "textfield", "Password", &["get", "--property", "value"])["value"].is_null());
    assert_verified(&on(&cli, app, "combobox", "Colour", &["select", "Blue", "--headed"]));
    let value = on(&cli, app, "combobox", "Colour", &["get", "--property", "value"]);
    assert_eq!(value["value"], "Blue", "{value:#}");
    on(&cli, app, "button", "Send order", &["click"]);
    let title = seen("submit ");
    for part in [
        r#""name":"Ada Lovelace""#,
        r#""email":"ada@example.org""#,
        r#""password":"hush3""#,
        r#""amount":"4""#,
        r#""volume":"70""#,
        r#""remarks":"two\nlines""#,
        r#""colour":"Blue""#,
        r#""terms":"on""#,
        r#""shipping":"fast""#,
        "trusted=true",
    ] {
        assert!(title.contains(part), "no {part} in {title}");
    }
}

/// Reads, searches and clicks in a page with far more than shows.
fn use_a_long_page(desktop: &Desktop, app: &App, nodes: u32) {
    let cli = desktop.cli();
    let last = format!("Button {}", (nodes - 6).div_ceil(25) - 1);
    let reply = cli.run(&["snapshot", "--app", app.name()]);
    assert_eq!(reply.ok()["complete"], true, "{reply}");
    assert!(reply.stdout.len() < 20_000, "{} bytes for what shows", reply.stdout.len());
    // A deadline gives what was read until then, and says so. The usual one is enough for all of it on a quiet machine.
    let everything = ["snapshot", "--app", app.name(), "--all", "--max-depth", "50", "--timeout-ms"];
    for limit in ["250", "3000"] {
        let data = cli.ok(&[&everything[..], &[limit]].concat());
        assert!(data["complete"] == true || data["stopped_by"] == "deadline", "{}", data["stopped_by"]);
    }
    let reply = cli.run(&[&everything[..], &["10000"]].concat());
    assert_eq!(reply.ok()["complete"], true, "{nodes} nodes took longer than {:?}", reply.elapsed);
    assert!(reply.stdout.contains(&last));
    // What does not show is not searched, but named.
    let data = cli.ok(&["find", "--app", app.name(), "--role", "button", "--name", &last, "--exact"]);
    assert!(data["suggestion"].as_str().is_some_and(|hint| hint.contains("--all")), "{data:#}");
    let data =
        cli.ok(&["find", "--app", app.name(), "--all", "--role", "button", "--name", &last, "--exact"]);
    let target = data["matches"][0]["ref_id"].as_str().unwrap_or_else(|| panic!("{data:#}"));
    let started = Instant::now();
    cli.ok(&["click", target]);
    let took = started.elapsed();
    app.wait_title(desktop, &format!("pressed {}", &last[7..]));
    assert!(took < Duration::from_secs(2), "a click took {took:?}");
    on(&cli, app, "button", &last, &["is", "--property", "visible"]);
    // With the pointer it has to be on the screen.
    let first =
        cli.ok(&["find", "--app", app.name(), "--all", "--role", "button", "--name", "First", "--exact"]);
    let first = first["matches"][0]["ref_id"].as_str().unwrap_or_else(|| panic!("{first:#}")).to_owned();
    cli.ok(&["click", &first, "--headed"]);
    app.wait_title(desktop, "pressed First");
}

const CHANGING: &str = r#"<!doctype html><html lang=en><meta charset=utf-8><title>Tasks</title><h1>Tasks</h1>
<div id=list></div>
<button onclick="draw(['one','two'])">Render</button> <button onclick="draw(['two','one'])">Swap</button>
<button onclick="draw(['two'])">Remove</button> <button onclick="later()">Start</button><p id=out>Ready</p>
<script>
function draw(ids) {
  document.getElementById('list').innerHTML =
    ids.map(id => `<p><button id=${id} onclick="document.title='saved ${id}'">Save</button></p>`).join('');
}
function later() { setTimeout(() => { document.getElementById('out').textContent = 'All done'; }, 400); }
draw(['one', 'two']);
</script></html>"#;

/// A page that makes its elements anew, moves and removes them.
fn follow_a_changing_page(desktop: &Desktop, app: &App) {
    let cli = desktop.cli();
    let data = cli.ok(&["find", "--app", app.name(), "--role", "button", "--name", "Save", "--exact"]);
    let refs: Vec<&str> =
        data["matches"].as_array().unwrap().iter().filter_map(|m| m["ref_id"].as_str()).collect();
    assert_eq!(refs.len(), 2, "{data:#}");
    let title = || app.title(desktop);
    cli.ok(&["click", refs[0]]);
    app.wait_title(desktop, "saved one");
    // The same element for the page's author, another object for everyone else.
    for (change, reference, wanted) in
        [("Render", refs[1], "two"), ("Swap", refs[0], "one"), ("Render", refs[1], "two")]
    {
        on(&cli, app, "button", change, &["click"]);
        let before = title();
        let reply = cli.run(&["click", reference]);
        if reply.envelope()["ok"] == true {
            app.wait_title(desktop, &format!("saved {wanted}"));
        } else {
            assert_eq!(reply.err_code(), "STALE_REF", "{reply}");
            assert_eq!(title(), before);
        }
    }
    on(&cli, app, "button", "Remove", &["click"]);
    let before = title();
    let error = cli.fails(&["click", refs[0], "--timeout-ms", "1000"]);
    assert_eq!(error["code"], "STALE_REF", "{error:#}");
    assert_eq!(error["disposition"]["retry"], "safe", "{error:#}");
    assert_eq!(title(), before);

    let start = cli.find(app.name(), "button", "Start");
    let data = cli.ok(&["click", &start, "--wait-for", ":All done", "--wait-timeout", "5000"]);
    assert!(data["elapsed_ms"].as_u64().is_some(), "{data:#}");
    cli.ok(&["wait", "--app", app.name(), "--text", "All done", "--timeout", "5000"]);
    let gone =
        cli.ok(&["snapshot", "--app", app.name(), "--wait-for-gone", ":Ready", "--wait-timeout", "5000"]);
    assert_eq!(gone["gone"], true, "{gone:#}");
    assert!(!look::find(app.name(), None, Some("All done")).is_empty() || app.name() == "Firefox");
}

desktop_test! {
    fn chromium_form_is_filled_and_sent(desktop: &Desktop) {
        let app = desktop.chromium(&desktop.form());
        let cli = desktop.cli();
        for command in [&["type", "x"][..], &["set-value", "x"], &["clear"]] {
            assert_needs_headed(&refused(&cli, &app, "textfield", "Full name", command));
        }
        assert_verified(&on(&cli, &app, "combobox", "Colour", &["select", "Green"]));
        app.wait_title(desktop, "change colour=Green trusted=true");
        assert_verified(&on(&cli, &app, "incrementor", "Amount", &["set-value", "5"]));
        app.wait_title(desktop, "change amount=5 trusted=true");
        assert_verified(&on(&cli, &app, "disclosure", "More", &["expand"]));
        app.wait_title(desktop, "toggle more=true");
        assert_verified(&on(&cli, &app, "disclosure", "More", &["collapse"]));
        app.wait_title(desktop, "toggle more=false");
        fill_the_form(desktop, &app);
    }

    fn firefox_form_is_filled_and_sent(desktop: &Desktop) {
        let app = desktop.firefox(&desktop.form());
        let cli = desktop.cli();
        // Its text interface answers true and does nothing.
        for command in [&["type", "x"][..], &["set-value", "x"]] {
            let error = refused(&cli, &app, "textfield", "Full name", command);
            assert_eq!(error["code"], "ACTION_FAILED", "{error:#}");
            assert!(error["suggestion"].as_str().unwrap().contains("--headed"), "{error:#}");
        }
        // Its list obeys without telling the page, or not at all: no success either way.
        let error = refused(&cli, &app, "combobox", "Colour", &["select", "Green"]);
        assert_eq!(error["details"]["kind"], "select_value_not_observed", "{error:#}");
        assert_verified(&on(&cli, &app, "button", "More", &["expand"]));
        app.wait_title(desktop, "toggle more=true");
        assert_verified(&on(&cli, &app, "button", "More", &["collapse"]));
        app.wait_title(desktop, "toggle more=false");
        fill_the_form(desktop, &app);
    }

    fn chromium_long_pages_are_read_searched_and_clicked(desktop: &Desktop) {
        for nodes in [1500, 10_000] {
            use_a_long_page(desktop, &desktop.chromium(&desktop.page(nodes)), nodes);
        }
    }

    fn firefox_long_pages_are_read_searched_and_clicked(desktop: &Desktop) {
        for nodes in [1500, 10_000] {
            use_a_long_page(desktop, &desktop.firefox(&desktop.page(nodes)), nodes);
        }
    }

    fn chromium_elements_are_followed_or_stale(desktop: &Desktop) {
        follow_a_changing_page(desktop, &desktop.chromium(&desktop.file("tasks.html", CHANGING)));
    }

    fn firefox_elements_are_followed_or_stale(desktop: &Desktop) {
        follow_a_changing_page(desktop, &desktop.firefox(&desktop.file("tasks.html", CHANGING)));
    }

    fn chromium_without_its_tree_says_how_to_start_it(desktop: &Desktop) {
        let profile = format!("--user-data-dir={}", desktop.path("plain").display());
        let url = format!("file://{}", desktop.form().display());
        let flags = ["chromium", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-sync", "--password-store=basic",
            "--proxy-server=127.0.0.1:9", &profile, &url];
        let app = Launch::new(desktop, "Chromium", flags).start();
        app.wait_title(desktop, "Form");
        let cli = desktop.cli();
        let data = cli.ok(&["snapshot", "--app", app.name()]);
        assert_eq!(data["renderer_accessibility_activation_required"], true, "{data:#}");
        assert!(data["suggestion"].as_str().unwrap().contains("--force-renderer-accessibility"), "{data:#}");
        let data = cli.ok(&["find", "--app", app.name(), "--role", "button", "--name", "Send order"]);
        assert!(data["suggestion"].as_str().unwrap().contains("--force-renderer-accessibility"), "{data:#}");
    }

    fn chromium_survives_readers_that_come_and_go(desktop: &Desktop) {
        let mut app = desktop.chromium(&desktop.form());
        let cli = desktop.cli();
        let password = cli.find(app.name(), "textfield", "Password");
        cli.ok(&["focus", &password]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..15 {
                    for command in [&["list-windows"][..], &["get", &password], &["snapshot", "--app", "Chromium", "--all"]] {
                        cli.run(command);
                    }
                }
            });
            for _ in 0..8 {
                let mut keys = vec!["key", "--delay", "1", "ctrl+a", "key", "--delay", "1", "BackSpace"];
                keys.extend(["type", "--delay", "1", "secret"]);
                desktop.tool("xdotool", &keys);
                std::thread::sleep(Duration::from_millis(250));
            }
        });
        cli.ok(&["get", &password, "--property", "states"]);
        assert!(app.is_running());
    }
}
