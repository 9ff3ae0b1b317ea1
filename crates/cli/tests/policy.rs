//! The policy file and the audit log on a real desktop. The judge is the application's own log, the files that are there
//! or not, and that the same call works as soon as the rule is gone.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use agent_desktop_testkit::{App, Cli, Desktop, desktop_test, wait_until};
use serde_json::{Value, json};

const MASK: &str = "(denied by policy)";
const SECRET: &str = "hunter2 und Grüße";
const SOON: std::time::Duration = std::time::Duration::from_secs(5);

/// The program where these rules apply, and where none do; both with the same snapshots.
fn ruled(desktop: &Desktop, rules: &str) -> (Cli, Cli) {
    let path = desktop.file("policy.toml", rules);
    (desktop.cli().env("AGENT_DESKTOP_POLICY", path), desktop.cli())
}

/// Is refused by this rule, and nothing has happened in the application.
#[track_caller]
fn refused(cli: &Cli, app: &App, args: &[&str], rule: &str) {
    let before = app.effects();
    let error = cli.fails(args);
    assert_eq!(
        (&error["code"], &error["details"]["kind"], &error["details"]["rule"]),
        (&json!("POLICY_DENIED"), &json!("policy_file"), &json!(rule)),
        "{args:?}: {error:#}"
    );
    assert_eq!(error["disposition"]["delivery"], "not_delivered", "{error:#}");
    assert_eq!(app.effects(), before, "{args:?} did something");
}

fn audit_path(cli: &Cli) -> PathBuf {
    cli.home().join("audit.jsonl")
}

fn audit(cli: &Cli) -> Vec<Value> {
    let text = std::fs::read_to_string(audit_path(cli)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Titles as `list-windows` shows them.
fn titles(cli: &Cli) -> Vec<String> {
    let windows = cli.ok(&["list-windows"]);
    let title = |window: &Value| window["title"].as_str().expect("a title").to_owned();
    windows.as_array().expect("a list").iter().map(title).collect()
}

desktop_test! {
    fn read_only_lets_everything_be_read_and_nothing_be_done(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let (cli, free) = ruled(desktop, "read_only = true");
        cli.ok(&["snapshot", "--app", app.name()]);
        let save = cli.find(app.name(), "button", "Save");
        assert_eq!(cli.ok(&["get", &save, "--property", "text"])["value"], "Save");
        let picture = desktop.path("picture.png");
        cli.ok(&["screenshot", "--app", app.name(), picture.to_str().expect("a plain path")]);
        assert!(picture.exists());
        for args in [
            &["click", &save][..],
            &["press", "a", "--app", app.name(), "--headed"],
            &["mouse-click", "--xy", "10,10", "--headed"],
            &["minimize", "--app", app.name()],
            &["close-app", app.name()],
            &["launch", "fixture"],
            &["clipboard-set", "text"],
        ] {
            refused(&cli, &app, args, "read_only");
        }
        free.ok(&["click", &save]);
        app.wait_log("clicked Save");
    }

    fn a_denied_window_is_masked_and_neither_read_nor_pictured_nor_operated(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let other = desktop.gtk4_with(&["--page", "texts", "--title", "Notes"]);
        let rule = "windows.deny \"*bank*\"";
        let (cli, free) = ruled(desktop, "[windows]\ndeny = [\"*bank*\"]");
        let save = cli.find(app.name(), "button", "Save");
        // From here on the window is another one, though the ref is good.
        app.command("title My Bank");
        app.wait_title(desktop, "My Bank");
        let mut shown = titles(&cli);
        shown.sort();
        assert_eq!(shown, [MASK, "Notes"]);
        let picture = desktop.path("picture.png");
        let path = picture.to_str().expect("a plain path");
        for args in [
            &["snapshot", "--app", app.name()][..],
            &["find", "--app", app.name(), "--name", "Save"],
            &["get", &save, "--property", "text"],
            &["screenshot", "--app", app.name(), path],
            &["screenshot", path],
            &["click", &save],
            &["click", &save, "--headed"],
            &["maximize", "--app", app.name()],
        ] {
            refused(&cli, &app, args, rule);
        }
        assert!(!picture.exists());
        cli.ok(&["snapshot", "--app", other.name()]);
        cli.ok(&["screenshot", "--app", other.name(), path]);
        assert!(picture.exists());
        assert!(titles(&free).contains(&"My Bank".to_owned()));
        free.ok(&["click", &save]);
        app.wait_log("clicked Save");
    }

    fn neither_keys_nor_the_pointer_get_into_a_denied_window(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let (cli, free) = ruled(desktop, "[apps]\ndeny = [\"fixture-*\"]");
        let rule = "apps.deny \"fixture-*\"";
        let window = app.window(desktop).id;
        free.ok(&["focus-window", "--app", app.name()]);
        assert_eq!(desktop.active_window(), Some(window));
        let save = free.find(app.name(), "button", "Save");
        let bounds = free.ok(&["get", &save, "--property", "bounds"])["value"].clone();
        let middle = |start: &str, length: &str| {
            bounds[start].as_f64().expect("a number") + bounds[length].as_f64().expect("a number") / 2.0
        };
        let at = format!("{},{}", middle("x", "width"), middle("y", "height"));
        let click = ["mouse-click", "--xy", &at, "--headed"];
        refused(&cli, &app, &click, rule);
        refused(&cli, &app, &["press", "b", "--headed"], rule);
        refused(&cli, &app, &["drag", "--from-xy", "1200,780", "--to-xy", &at, "--headed"], rule);
        // Beside it the pointer may go, also with the rule; and without the rule there.
        cli.ok(&["mouse-click", "--xy", "1200,780", "--headed"]);
        assert_eq!(desktop.pointer(), (1200, 780));
        free.ok(&click);
        app.wait_log("clicked Save");
        free.ok(&["press", "b", "--app", app.name(), "--headed"]);
        app.wait_log("key b");
    }

    fn a_denied_dialog_of_an_allowed_application_stays_closed_to_us(desktop: &Desktop) {
        let app = desktop.gtk3("dialogs");
        let (cli, free) = ruled(desktop, "[windows]\ndeny = [\"Question\"]");
        let rule = "windows.deny \"Question\"";
        // What an action opened is told, and not by its title.
        let ask = cli.find(app.name(), "button", "Ask");
        let behind = cli.find(app.name(), "button", "Behind");
        let replied = cli.run(&["click", &ask]).stdout;
        app.wait_log("dialog opened Question");
        desktop.wait_window("Question");
        let refusal = cli.run(&["click", &behind, "--timeout-ms", "300"]).stdout;
        let listed = cli.run(&["list-surfaces", "--app", app.name()]).stdout;
        for said in [replied, refusal, listed] {
            assert!(!said.contains("Question") && !said.contains("Really"), "{said}");
        }
        let answer = free.find(app.name(), "textfield", "Answer");
        for args in [
            &["snapshot", "--app", app.name()][..],
            &["snapshot", "--app", app.name(), "--surface", "sheet"],
            &["get", &answer, "--property", "value"],
            &["type", &answer, "x"],
            &["set-value", &answer, "x"],
            &["press", "x", "--headed"],
        ] {
            refused(&cli, &app, args, rule);
        }
        free.ok(&["set-value", &answer, "x"]);
        app.wait_log("entry Answer text=\"x\"");
    }

    fn what_is_done_stands_in_the_audit_log_and_its_text_does_not(desktop: &Desktop) {
        let app = desktop.gtk3("texts");
        let (cli, _) = ruled(desktop, "audit = true\n[commands]\ndeny = [\"clear\"]");
        let name = cli.find(app.name(), "textfield", "Full name");
        assert!(!audit_path(&cli).exists(), "looking leaves no line");
        cli.ok(&["type", &name, SECRET]);
        app.wait_log(&format!("entry Full name text={SECRET:?}"));
        refused(&cli, &app, &["clear", &name], "commands.deny \"clear\"");
        let lines = audit(&cli);
        let told: Vec<_> = lines.iter().map(|line| (line["event"].clone(), line["command"].clone())).collect();
        assert_eq!(told, [(json!("start"), json!("type")), (json!("end"), json!("type")), (json!("end"), json!("clear"))]);
        let target = json!({
            "app": app.name(), "pid": app.pid(), "window_id": format!("w-{:x}", app.window(desktop).id), "ref": name
        });
        assert_eq!(lines[0]["targets"][0], target);
        assert_eq!((&lines[1]["ok"], &lines[1]["delivery"]), (&json!(true), &json!("delivered_verified")));
        assert_eq!((&lines[2]["ok"], &lines[2]["rule"]), (&json!(false), &json!("commands.deny \"clear\"")));
        let text = std::fs::read_to_string(audit_path(&cli)).expect("it is there");
        for word in ["hunter2", "Full name", "Fixture"] {
            assert!(!text.contains(word), "{text}");
        }
        assert_eq!(std::fs::metadata(audit_path(&cli)).expect("it is there").permissions().mode() & 0o777, 0o600);

        // What cannot be written down is not done.
        std::fs::remove_file(audit_path(&cli)).expect("it is there");
        std::fs::create_dir(audit_path(&cli)).expect("nothing is there");
        let before = app.effects();
        let error = cli.fails(&["type", &name, "more"]);
        assert_eq!(
            (&error["details"]["kind"], &error["disposition"]["delivery"]),
            (&json!("audit_unwritable"), &json!("not_delivered")),
            "{error:#}"
        );
        assert_eq!(app.effects(), before);
        cli.ok(&["snapshot", "--app", app.name()]);
    }

    fn each_entry_of_a_batch_is_checked(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let (cli, _) = ruled(desktop, "[commands]\nallow = [\"click\", \"find\"]");
        let save = cli.find(app.name(), "button", "Save");
        let list = json!([
            {"command": "toggle", "args": {"ref_id": cli.find(app.name(), "togglebutton", "Bold")}},
            {"command": "click", "args": {"ref_id": save}},
        ]);
        let results = cli.ok(&["batch", &list.to_string()])["results"].clone();
        assert_eq!(results[0]["error"]["details"]["rule"], "commands.allow", "{results:#}");
        assert_eq!(results[1]["ok"], true, "{results:#}");
        app.wait_log("clicked Save");
        assert_eq!(app.effects(), ["clicked Save"]);
    }

    fn force_is_no_way_around_where_it_is_not_allowed(desktop: &Desktop) {
        let mut app = desktop.gtk3("controls");
        let rules = "[input]\nblocked = [\"Control+W\"]\n[processes]\nprotected = [\"fixture-*\"]";
        let name = app.name().to_owned();
        let (cli, _) = ruled(desktop, &format!("allow_force = false\n{rules}"));
        let press = ["press", "ctrl+w", "--app", &name, "--headed"];
        let forced = [&press[..], &["--force"]].concat();
        refused(&cli, &app, &press, "input.blocked \"Control+W\"");
        refused(&cli, &app, &forced, "allow_force");
        let close = ["close-app", name.as_str()];
        refused(&cli, &app, &close, "processes.protected \"fixture-*\"");
        refused(&cli, &app, &[&close[..], &["--force"]].concat(), "allow_force");
        assert!(app.is_running());
        // Where it is allowed it is the way around.
        let (cli, _) = ruled(desktop, rules);
        refused(&cli, &app, &press, "input.blocked \"Control+W\"");
        cli.ok(&forced);
        app.wait_log("key ctrl+w");
        cli.ok(&["close-app", &name, "--force"]);
        wait_until("its end", SOON, || !app.is_running());
    }

    fn the_users_file_applies_beside_the_other_and_a_broken_one_stops_everything(desktop: &Desktop) {
        let app = desktop.gtk3("controls");
        let save = desktop.cli().find(app.name(), "button", "Save");
        let (cli, _) = ruled(desktop, "[commands]\nallow = [\"*\"]");
        let folder = desktop.path("settings");
        let of_user = folder.join("agent-desktop/policy.toml");
        std::fs::create_dir_all(of_user.parent().expect("a folder")).expect("it can be made");
        let cli = cli.env("XDG_CONFIG_HOME", &folder);
        let files = || cli.ok(&["status"])["policy"]["files"].as_array().expect("a list").len();
        let alone = files();
        std::fs::write(&of_user, "[commands]\ndeny = [\"click\"]").expect("it can be written");
        assert_eq!(files(), alone + 1);
        refused(&cli, &app, &["click", &save], "commands.deny \"click\"");

        std::fs::write(&of_user, "[commands]\nforbid = [\"click\"]").expect("it can be written");
        let missing = desktop.cli().env("AGENT_DESKTOP_POLICY", "/nonexistent/policy.toml");
        for (cli, file) in [(&cli, of_user.to_str().expect("a plain path")), (&missing, "/nonexistent/policy.toml")] {
            for args in [&["click", &save][..], &["snapshot", "--app", app.name()], &["status"]] {
                let error = cli.fails(args);
                assert_eq!(
                    (&error["code"], &error["details"]["kind"], &error["details"]["file"]),
                    (&json!("POLICY_DENIED"), &json!("policy_invalid"), &json!(file)),
                    "{error:#}"
                );
            }
            cli.ok(&["version"]);
        }
        assert!(app.effects().is_empty(), "{:?}", app.effects());

        std::fs::remove_file(&of_user).expect("it is there");
        cli.ok(&["click", &save]);
        app.wait_log("clicked Save");
    }
}
