//! What a trace means: its events gathered into commands.
//!
//! A command is what lies between its start and its end in one segment; commands of a batch lie inside the batch. A
//! command without an end was ended from outside, or is still running.

use serde::Serialize;
use serde_json::Value;

use super::read::{Event, Reading};

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Step {
    /// Its name; empty when its start is not among the events.
    pub(crate) command: String,
    /// The process that ran it.
    pub(crate) segment: String,
    /// How many commands it runs inside of.
    pub(crate) depth: usize,
    /// Unix milliseconds.
    pub(crate) started_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<u64>,
    /// Whether it succeeded; absent: it has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<String>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    /// What was sent, in our words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
    /// The snapshot that its ref is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot_id: Option<String>,
    /// The snapshot that it took last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) taken: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pre: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) post: Option<String>,
    /// Where the element is in the first picture: x, y, width and height as parts of its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<Value>,
    /// Why there is no picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<Value>,
    /// Its events, as places in the list of all.
    pub(crate) events: Vec<usize>,
}

/// Gathers the events of a trace.
pub(crate) fn steps(reading: &Reading) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // The commands that are open, by segment.
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); reading.segments.len()];
    for (index, event) in reading.events.iter().enumerate() {
        let stack = &mut open[event.segment];
        let is_start = event.name() == "command.start";
        if is_start || stack.is_empty() {
            stack.push(steps.len());
            steps.push(Step {
                command: event.text("command").filter(|_| is_start).unwrap_or_default().to_owned(),
                segment: reading.segments[event.segment].segment.clone(),
                depth: stack.len() - 1,
                started_ms: event.time_ms,
                ..Step::default()
            });
        }
        if event.name() == "command.end" {
            let command = event.text("command").unwrap_or_default();
            // Those inside of it that have no end stay without one.
            if let Some(at) = stack.iter().rposition(|&step| steps[step].command == command) {
                stack.truncate(at + 1);
            }
        }
        if let Some(&last) = stack.last() {
            steps[last].take(index, event);
        }
        if event.name() == "command.end" {
            stack.pop();
        }
    }
    steps
}

impl Step {
    fn take(&mut self, index: usize, event: &Event) {
        self.events.push(index);
        let text = |field: &str| event.text(field).map(str::to_owned);
        match event.name() {
            "command.end" => {
                self.duration_ms = event.fields.get("duration_ms").and_then(Value::as_u64);
                if self.command.is_empty() {
                    self.command = text("command").unwrap_or_default();
                    self.started_ms = event.time_ms.saturating_sub(self.duration_ms.unwrap_or(0));
                }
                self.ok = event.fields.get("ok").and_then(Value::as_bool);
                self.code = text("code");
                self.kind = text("kind");
                self.delivery = text("delivery").or(self.delivery.take());
            }
            "ref.resolve.start" => {
                self.reference = self.reference.take().or(text("ref"));
                self.snapshot_id = self.snapshot_id.take().or(text("snapshot_id"));
            }
            "ref.resolve.entry" => self.role = self.role.take().or(text("role")),
            "action.dispatch.ok" => {
                let result = event.fields.get("result").unwrap_or(&Value::Null);
                let word = |value: &Value| value.as_str().map(str::to_owned);
                let labels = result["steps"].as_array().into_iter().flatten();
                self.labels.extend(labels.filter_map(|step| word(&step["label"])));
                self.delivery = word(&result["delivery"]).or(self.delivery.take());
            }
            "snapshot.saved" | "snapshot.root.saved" | "locator.resolve" => {
                self.taken = text("snapshot_id").or(self.taken.take());
            }
            "action.artifacts" => {
                self.pre = text("screenshot_pre").or(self.pre.take());
                self.post = text("screenshot_post").or(self.post.take());
                self.target = event.fields.get("target").cloned().or(self.target.take());
                let skipped = ["skipped", "skipped_pre", "skipped_post"];
                self.skipped = skipped.iter().find_map(|field| event.fields.get(*field)).cloned();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::read::Segment;
    use serde_json::json;

    fn reading(segments: usize, lines: &[(usize, u64, Value)]) -> Reading {
        let segment = |number: usize| Segment {
            segment: format!("{number}-1"),
            pid: number as u32,
            schema: 1,
            event_count: 0,
            skipped_lines: None,
        };
        let event = |(segment, time_ms, fields): &(usize, u64, Value)| Event {
            fields: fields.as_object().unwrap().clone(),
            time_ms: *time_ms,
            segment: *segment,
        };
        Reading {
            segments: (0..segments).map(segment).collect(),
            events: lines.iter().map(event).collect(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_command_is_what_lies_between_its_start_and_its_end() {
        let steps = steps(&reading(
            2,
            &[
                (0, 10, json!({"event": "command.start", "command": "click"})),
                (1, 11, json!({"event": "command.start", "command": "snapshot"})),
                (0, 12, json!({"event": "ref.resolve.start", "ref": "@s1:e2", "snapshot_id": "s1"})),
                (0, 13, json!({"event": "ref.resolve.entry", "ref": "@s1:e2", "role": "button"})),
                (1, 14, json!({"event": "snapshot.saved", "snapshot_id": "s9"})),
                (
                    0,
                    15,
                    json!({"event": "action.dispatch.ok", "result": {"delivery": "delivered_verified",
                    "steps": [{"label": "press"}]}}),
                ),
                (1, 16, json!({"event": "command.end", "command": "snapshot", "ok": true, "duration_ms": 5})),
                (
                    0,
                    17,
                    json!({"event": "command.end", "command": "click", "ok": false, "duration_ms": 7,
                    "code": "TIMEOUT", "kind": "wait_timeout"}),
                ),
            ],
        ));
        assert_eq!(steps.len(), 2);
        let click = &steps[0];
        assert_eq!((click.command.as_str(), click.started_ms, click.duration_ms), ("click", 10, Some(7)));
        assert_eq!((click.reference.as_deref(), click.role.as_deref()), (Some("@s1:e2"), Some("button")));
        assert_eq!((click.ok, click.code.as_deref()), (Some(false), Some("TIMEOUT")));
        assert_eq!(
            (&click.labels[..], click.delivery.as_deref()),
            (&["press".to_owned()][..], Some("delivered_verified"))
        );
        assert_eq!(click.events, [0, 2, 3, 5, 7]);
        assert_eq!((steps[1].snapshot_id.as_deref(), steps[1].taken.as_deref()), (None, Some("s9")));
        assert_eq!(click.snapshot_id.as_deref(), Some("s1"));
    }

    #[test]
    fn a_batch_holds_its_commands_and_what_crashed_has_no_end() {
        let steps = steps(&reading(
            1,
            &[
                (0, 1, json!({"event": "command.end", "command": "early", "duration_ms": 1})),
                (0, 2, json!({"event": "command.start", "command": "batch"})),
                (0, 3, json!({"event": "command.start", "command": "click"})),
                (0, 4, json!({"event": "command.end", "command": "batch", "ok": true, "duration_ms": 2})),
                (0, 5, json!({"event": "snapshot.saved", "snapshot_id": "s"})),
                (0, 6, json!({"event": "command.start", "command": "type"})),
            ],
        ));
        let seen: Vec<_> = steps.iter().map(|step| (step.command.as_str(), step.depth, step.ok)).collect();
        assert_eq!(
            seen,
            [
                ("early", 0, None),
                ("batch", 0, Some(true)),
                ("click", 1, None),
                ("", 0, None),
                ("type", 1, None)
            ]
        );
        assert_eq!(steps[0].started_ms, 0);
    }
}
