//! What every action answers: the steps that were taken and what became of them.

use agent_desktop_core::delivery::{self, Delivery, Step};
use agent_desktop_core::error::Fact;
use agent_desktop_core::outline::{LINE_TEXT, quote};
use serde::Serialize;

use crate::commands::Reply;
use crate::envelope::{Disposition, Facts};
use crate::wire::SurfaceData;

/// One step, as it stands in `steps`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepData {
    /// What was done, in our words.
    pub label: &'static str,
    /// `attempted`, `skipped` or `succeeded`.
    pub outcome: &'static str,
    /// `semantic_api` or `physical_synthetic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<&'static str>,
    /// Whether the effect was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}

impl From<&Step> for StepData {
    fn from(step: &Step) -> StepData {
        StepData {
            label: step.label,
            outcome: step.outcome.as_str(),
            mechanism: step.mechanism.map(delivery::Mechanism::as_str),
            verified: step.verified,
        }
    }
}

/// What an element looked like after an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PostState {
    /// Its role.
    pub role: &'static str,
    /// Its states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<&'static str>,
    /// The beginning of its value; never that of a secure field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Characters of the whole value, where it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_chars: Option<usize>,
    /// Whether it takes input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
    /// Whether it is outside of what its window shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offscreen: Option<bool>,
}

/// `details` of a success.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details(pub Vec<(String, Fact)>);

impl Details {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Details {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Facts(&self.0).serialize(serializer)
    }
}

/// What an action answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionReply {
    /// The action, named like its command.
    pub action: &'static str,
    /// What the element looked like afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_state: Option<PostState>,
    /// What was done, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepData>,
    /// Menus and dialogs that were open afterwards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub surfaces: Vec<SurfaceData>,
    /// How it went.
    #[serde(skip_serializing_if = "Details::is_empty")]
    pub details: Details,
    /// What reached the application.
    pub disposition: Disposition,
}

impl ActionReply {
    /// The reply for these steps.
    pub fn new(action: &'static str, steps: &[Step]) -> ActionReply {
        ActionReply {
            action,
            post_state: None,
            steps: steps.iter().map(StepData::from).collect(),
            surfaces: Vec::new(),
            details: Details::default(),
            disposition: delivery::summarize(steps).into(),
        }
    }

    /// The same with another statement on what was delivered.
    #[must_use]
    pub fn delivered(mut self, delivery: Delivery) -> ActionReply {
        self.disposition = delivery.into();
        self
    }
}

impl Reply for ActionReply {
    fn outline(&self) -> Option<String> {
        use std::fmt::Write;
        let mut text = format!("{} {}", self.action, self.disposition.delivery);
        for step in &self.steps {
            let _ = write!(text, "\n  {} {}", step.label, step.outcome);
            match step.verified {
                Some(true) => text.push_str(" [verified]"),
                Some(false) => text.push_str(" [unverified]"),
                None => {}
            }
        }
        if let Some(state) = &self.post_state {
            let _ = write!(text, "\n  now: {}", state.role);
            for word in &state.states {
                let _ = write!(text, " [{word}]");
            }
            if let Some(value) = &state.value {
                let _ = write!(text, " = {}", quote(value, LINE_TEXT));
            }
        }
        for surface in &self.surfaces {
            let title = quote(surface.title.as_deref().unwrap_or(""), LINE_TEXT);
            let _ = write!(text, "\n  open: {} {title}", surface.kind);
        }
        Some(text)
    }

    fn delivery(&self) -> Option<&'static str> {
        Some(self.disposition.delivery)
    }
}
