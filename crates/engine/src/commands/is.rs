//! `is`: whether something is true of an element now.

use agent_desktop_core::action::Capability;
use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::refs::RefTarget;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::Node;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::act::dispatch;
use crate::resolve;

/// Ask whether something is true of an element, now.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct Is {
    /// Ref from a snapshot, such as @sq4m2:e14.
    #[cfg_attr(feature = "clap", arg(value_name = "REF"))]
    pub ref_id: String,
    /// Snapshot of a ref that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    #[serde(default)]
    pub snapshot: Option<String>,
    /// visible, enabled, focused, checked, expanded or selected [default: visible].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PROPERTY"))]
    #[serde(default)]
    pub property: Option<String>,
    /// Give up after this many milliseconds; 0: one attempt [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// A question that can be asked of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Visible,
    Enabled,
    Focused,
    Checked,
    Expanded,
    Selected,
}

const QUESTIONS: [(&str, Question); 6] = [
    ("visible", Question::Visible),
    ("enabled", Question::Enabled),
    ("focused", Question::Focused),
    ("checked", Question::Checked),
    ("expanded", Question::Expanded),
    ("selected", Question::Selected),
];

/// The answer, and whether the question makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) result: bool,
    pub(crate) applicable: bool,
}

/// Whether it is so.
pub(crate) fn ask(node: &Node, question: Question) -> Truth {
    let has = |state: State| node.states.has(state);
    let offers = |capability: Capability| node.capabilities.has(capability);
    let stateful = |state: State, by_role: bool, offered: bool| Truth {
        result: has(state),
        applicable: by_role || has(state) || offered,
    };
    match question {
        Question::Visible => {
            let applicable = node.bounds.is_some() && !node.gaps.bounds && !node.gaps.basics;
            let is_seen = node.bounds.is_some_and(|bounds| !bounds.is_empty());
            Truth { result: applicable && is_seen && !has(State::Hidden) && !has(State::Offscreen), applicable }
        }
        Question::Enabled => Truth { result: !has(State::Disabled), applicable: true },
        Question::Focused => Truth { result: has(State::Focused), applicable: true },
        Question::Checked => stateful(
            State::Checked,
            node.role.is_toggleable(),
            offers(Capability::Toggle) || offers(Capability::Check) || offers(Capability::Uncheck),
        ),
        Question::Expanded => stateful(
            State::Expanded,
            node.role.is_expandable(),
            offers(Capability::Expand) || offers(Capability::Collapse),
        ),
        Question::Selected => stateful(State::Selected, false, offers(Capability::Select)),
    }
}

impl Is {
    fn question(&self) -> Result<(&'static str, Question)> {
        let word = self.property.as_deref().unwrap_or("visible");
        QUESTIONS.into_iter().find(|(name, _)| *name == word).ok_or_else(|| {
            let names: Vec<&str> = QUESTIONS.iter().map(|(name, _)| *name).collect();
            Error::invalid("there is no such property").hint(format!("properties: {}", names.join(", ")))
        })
    }
}

/// Whether it is so.
#[derive(Clone, Debug, Serialize)]
pub struct IsReply {
    property: &'static str,
    #[serde(rename = "ref")]
    reference: String,
    result: bool,
    applicable: bool,
}

impl Reply for IsReply {
    fn outline(&self) -> Option<String> {
        let note = if self.applicable { "" } else { " (does not apply)" };
        Some(format!("{}: {}{note}", self.property, self.result))
    }
}

impl Run for Is {
    type Reply = IsReply;

    fn check(&self, _: &Options) -> Result<()> {
        RefTarget::parse(&self.ref_id, self.snapshot.as_deref())?;
        self.question().map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<IsReply> {
        let (property, question) = self.question()?;
        let stored = resolve::load(context, &self.ref_id, self.snapshot.as_deref())?;
        let resolved = resolve::resolve(context, &stored)?;
        let Truth { mut result, applicable } = ask(&resolved.node, question);
        // Not every combo box says that it is expanded; its open list does.
        if question == Question::Expanded && !result && dispatch::may_open_list(&resolved.node) {
            result = dispatch::has_open_surface(context, &resolved.handle, &stored.app())?;
        }
        Ok(IsReply { property, reference: self.ref_id.clone(), result, applicable })
    }
}
