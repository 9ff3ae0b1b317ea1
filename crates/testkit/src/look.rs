//! The second opinion: what another accessibility reader (libatspi) sees of an application.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::fixture;

/// An object as the other reader saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Number and name of the role, as `43:push button`.
    pub role: String,
    /// Accessible name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Names of its states.
    pub states: Vec<String>,
    /// Text, when it has any.
    pub text: Option<String>,
    /// Value, when it has one.
    pub value: Option<f64>,
    /// Action names.
    pub actions: Vec<String>,
    /// x, y, width, height on the screen, as the toolkit says.
    pub screen: Option<[i64; 4]>,
}

impl Seen {
    /// Whether it has a state.
    pub fn is(&self, state: &str) -> bool {
        self.states.iter().any(|held| held == state)
    }

    fn from_json(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let list = |key: &str| -> Vec<String> {
            value[key]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect()
        };
        let screen: Vec<i64> =
            value["screen"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
        Self {
            role: text("role").unwrap_or_default(),
            name: text("name").unwrap_or_default(),
            description: text("description").unwrap_or_default(),
            states: list("states"),
            text: text("text"),
            value: value["value"].as_f64(),
            actions: list("actions"),
            screen: screen.try_into().ok(),
        }
    }
}

fn reader(args: &[&str]) -> Option<String> {
    let mut command = Command::new("/usr/bin/python3");
    command.arg(fixture("look.py")).args(args).stdin(Stdio::null()).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().expect("python3 is there");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The objects of an application with this role (name or number, as libatspi says) and exact name. Empty when the
/// application is not there.
pub fn find(app: &str, role: Option<&str>, name: Option<&str>) -> Vec<Seen> {
    let mut args = vec!["find", app];
    for (key, value) in [("--role", role), ("--name", name)] {
        if let Some(value) = value {
            args.extend([key, value]);
        }
    }
    let found = reader(&args).and_then(|out| serde_json::from_str::<Value>(&out).ok()).unwrap_or_default();
    found.as_array().into_iter().flatten().map(Seen::from_json).collect()
}

/// The only object that fits.
#[track_caller]
pub fn one(app: &str, role: &str, name: &str) -> Seen {
    let mut found = find(app, Some(role), Some(name));
    assert_eq!(found.len(), 1, "objects {role} {name:?} in {app}: {found:#?}");
    found.remove(0)
}

/// The text of the only object that fits.
#[track_caller]
pub fn text(app: &str, role: &str, name: &str) -> String {
    one(app, role, name).text.unwrap_or_else(|| panic!("{role} {name:?} in {app} has no text"))
}

/// The whole tree, one line an object, for messages.
pub fn dump(app: &str) -> String {
    reader(&["dump", app]).unwrap_or_default()
}

/// Names of the applications on the bus.
pub fn applications() -> Vec<String> {
    let list = reader(&["apps"]).and_then(|out| serde_json::from_str::<Value>(&out).ok()).unwrap_or_default();
    list.as_array().into_iter().flatten().filter_map(|app| app["name"].as_str().map(str::to_owned)).collect()
}

/// Waits until an application of this name with a window is on the bus, owned by a process of this group.
pub fn wait_app(name: &str, group: u32, limit: Duration) -> bool {
    let (group, limit) = (group.to_string(), format!("{}", limit.as_secs_f64()));
    reader(&["wait", name, "--group", &group, "--timeout", &limit]).is_some()
}
