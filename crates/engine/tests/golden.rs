//! Whole replies on a scripted desktop, compared with files: what a program really reads.
//!
//! `BLESS=1 cargo test -p agent-desktop-engine --test golden` rewrites the files; the difference is then read against
//! `docs/contract.md`.

use std::path::PathBuf;
use std::time::Duration;

use agent_desktop_core::role::Role;
use agent_desktop_engine::{Command, Options, execute};
use agent_desktop_testkit::fake::{Effect, Fake, FakePlatform, button, checkbox, group, text, textfield};
use agent_desktop_testkit::golden;
use serde_json::{Value, json};

/// A desktop with a store of its own, removed at the end.
struct Scene {
    fake: FakePlatform,
    options: Options,
    folder: PathBuf,
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Scene {
    /// Mail with one window.
    fn new(name: &str) -> Scene {
        use std::os::unix::fs::DirBuilderExt;
        let folder =
            std::env::temp_dir().join(format!("agent-desktop-replies-{}-{name}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&folder).expect("the folder can be made");
        let mut options =
            Options { state_root: Some(folder.join("state").into_os_string()), ..Options::default() };
        options.lease.runtime_dir = Some(folder.clone());
        let fake = Fake::app("Mail")
            .window(
                "Inbox",
                [
                    group("").children([button("New"), button("Send").effect(Effect::Nothing)]),
                    textfield("Search").value("invoice"),
                    checkbox("Unread only"),
                    text("3 messages"),
                ],
            )
            .build();
        Scene { fake, options, folder }
    }

    fn run(&self, command: &str, arguments: Value) -> Value {
        let command = Command::decode(command, arguments).expect("the arguments fit");
        let text = execute(&command, &self.fake, &self.options).text;
        serde_json::from_str(&text).expect("a reply is JSON")
    }

    /// Runs a command and compares all of its reply with a file.
    #[track_caller]
    fn reply(&self, file: &str, command: &str, arguments: Value) {
        let mut reply = self.run(command, arguments);
        name_snapshots(&mut reply, &mut Vec::new());
        let text = serde_json::to_string_pretty(&reply).expect("JSON can be written") + "\n";
        let path = agent_desktop_testkit::root().join("crates/engine/tests/golden").join(file);
        golden::file(&path, &text);
    }

    fn reference(&self, name: &str) -> String {
        let found = self.run("find", json!({"app": "Mail", "name": name, "exact": true, "first": true}));
        found["data"]["match"]["ref_id"].as_str().expect("it has a ref").to_owned()
    }
}

/// Replaces ids of snapshots, which are made from the time, by `SNAPSHOT`.
fn name_snapshots(value: &mut Value, ids: &mut Vec<String>) {
    fn collect(value: &Value, ids: &mut Vec<String>) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    if let (true, Some(id)) = (key == "snapshot_id", value.as_str()) {
                        ids.push(id.to_owned());
                    }
                    if let (true, Some(target)) = (key == "ref" || key == "ref_id", value.as_str()) {
                        ids.extend(
                            target
                                .strip_prefix('@')
                                .and_then(|target| Some(target.split_once(':')?.0.to_owned())),
                        );
                    }
                    collect(value, ids);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, ids)),
            _ => {}
        }
    }
    fn replace(value: &mut Value, ids: &[String]) {
        match value {
            Value::Object(entries) => entries.values_mut().for_each(|value| replace(value, ids)),
            Value::Array(values) => values.iter_mut().for_each(|value| replace(value, ids)),
            Value::String(text) => {
                for id in ids {
                    *text = text.replace(id.as_str(), "SNAPSHOT");
                }
            }
            _ => {}
        }
    }
    collect(value, ids);
    replace(value, ids);
}

#[test]
fn snapshot() {
    let scene = Scene::new("snapshot");
    scene.reply("snapshot.json", "snapshot", json!({"app": "Mail", "include_bounds": true}));
}

#[test]
fn find() {
    let scene = Scene::new("find");
    scene.reply("find.json", "find", json!({"app": "Mail", "role": "button"}));
    scene.reply("find-first.json", "find", json!({"app": "Mail", "role": "textbox", "first": true}));
    scene.reply("find-nothing.json", "find", json!({"app": "Mail", "role": "slider", "first": true}));
}

#[test]
fn actions_that_work() {
    let scene = Scene::new("actions");
    scene.reply("check.json", "check", json!({"ref_id": scene.reference("Unread only")}));
    scene.reply("check-again.json", "check", json!({"ref_id": scene.reference("Unread only")}));
    scene.reply("click-unverified.json", "click", json!({"ref_id": scene.reference("Send")}));
    scene.reply(
        "set-value.json",
        "set-value",
        json!({"ref_id": scene.reference("Search"), "value": "receipt"}),
    );
}

#[test]
fn click_that_opens_a_window() {
    let scene = Scene::new("click");
    let new = scene.reference("New");
    scene.fake.on_next(agent_desktop_testkit::fake::Call::Perform, |world| {
        world.later(Duration::from_millis(50), |world| {
            world.open_window("Mail", "New message", [textfield("To")]);
        });
    });
    scene.reply("click.json", "click", json!({"ref_id": new}));
}

#[test]
fn stale_refs() {
    let scene = Scene::new("stale");
    let new = scene.reference("New");
    scene.fake.world(|world| world.rename("New", "Compose"));
    scene.reply("click-renamed.json", "click", json!({"ref_id": new}));
    let send = scene.reference("Send");
    scene.fake.world(|world| world.remove("Send"));
    scene.reply("click-removed.json", "click", json!({"ref_id": send}));
    scene.fake.world(|world| world.restart("Mail"));
    scene.reply("click-restarted.json", "click", json!({"ref_id": send}));
    scene.reply("click-no-snapshot.json", "click", json!({"ref_id": "@s00000:e1"}));
}

#[test]
fn ambiguous_target() {
    let scene = Scene::new("ambiguous");
    let send = scene.reference("Send");
    // Made anew, elsewhere, and twice: nothing tells which of them it was.
    scene.fake.world(|world| {
        world.move_to("Send", 300.0, 300.0);
        world.renew("Send");
        world.insert("Inbox", button("Send"));
    });
    scene.reply("click-ambiguous.json", "click", json!({"ref_id": send, "timeout_ms": 0}));
    scene.reply("click-ambiguous-waited.json", "click", json!({"ref_id": send, "timeout_ms": 300}));
}

#[test]
fn not_actionable() {
    let scene = Scene::new("blocked");
    let new = scene.reference("New");
    scene.fake.world(|world| world.disable("New"));
    scene.reply("click-disabled.json", "click", json!({"ref_id": new, "timeout_ms": 300}));
    scene.reply("click-disabled-once.json", "click", json!({"ref_id": new, "timeout_ms": 0}));
}

#[test]
fn covered_by_another() {
    let mut scene = Scene::new("covered");
    scene.options.headed = true;
    let new = scene.reference("New");
    scene.fake.world(|world| world.cover("New", Role::Popover, "Tip of the day"));
    scene.reply("click-covered.json", "click", json!({"ref_id": new, "timeout_ms": 0}));
}

#[test]
fn policy() {
    let scene = Scene::new("policy");
    scene.reply("double-click-headless.json", "double-click", json!({"ref_id": scene.reference("New")}));
    scene.reply("press-headless.json", "press", json!({"combo": "ctrl+s"}));
}

#[test]
fn text_that_is_not_there_afterwards() {
    let scene = Scene::new("ignored");
    let search = scene.reference("Search");
    scene.fake.world(|world| world.set_effect("Search", Effect::Nothing));
    scene.reply("set-value-ignored.json", "set-value", json!({"ref_id": search, "value": "receipt"}));
    scene.fake.world(|world| world.set_effect("Search", Effect::ReplyLost));
    scene.reply(
        "set-value-reply-lost.json",
        "set-value",
        json!({"ref_id": search, "value": "x", "timeout_ms": 500}),
    );
}
