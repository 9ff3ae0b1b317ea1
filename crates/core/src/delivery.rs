//! Delivery: what reached the application.
//!
//! Every failure and every success says it, so that a caller knows whether a retry is safe.

/// How much of an action reached the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Nothing reached it.
    NotDelivered,
    /// It may have: the reply was lost, or the deadline fell into the call.
    Uncertain,
    /// It was sent, and nobody saw the effect.
    Unverified,
    /// It was sent, and the effect was observed.
    Verified,
    /// No statement is possible.
    Unknown,
}

impl Delivery {
    /// The word used in `disposition.delivery`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Delivery::NotDelivered => "not_delivered",
            Delivery::Uncertain => "delivery_uncertain",
            Delivery::Unverified => "delivered_unverified",
            Delivery::Verified => "delivered_verified",
            Delivery::Unknown => "unknown",
        }
    }

    /// Whether doing it again can do harm: a pure function of the delivery.
    pub const fn retry(self) -> &'static str {
        match self {
            Delivery::NotDelivered => "safe",
            Delivery::Uncertain | Delivery::Unverified | Delivery::Verified => "unsafe",
            Delivery::Unknown => "unknown",
        }
    }
}

/// How a step was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Through the application's accessibility interface.
    SemanticApi,
    /// By synthetic pointer or keyboard input.
    PhysicalSynthetic,
}

impl Mechanism {
    /// The word used in `steps[].mechanism`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mechanism::SemanticApi => "semantic_api",
            Mechanism::PhysicalSynthetic => "physical_synthetic",
        }
    }
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// It was tried and did not work, or the answer is missing.
    Attempted,
    /// It was not needed.
    Skipped,
    /// It was carried out.
    Succeeded,
}

impl StepOutcome {
    /// The word used in `steps[].outcome`.
    pub const fn as_str(self) -> &'static str {
        match self {
            StepOutcome::Attempted => "attempted",
            StepOutcome::Skipped => "skipped",
            StepOutcome::Succeeded => "succeeded",
        }
    }
}

/// One step of an action, in our words (`press`, `set_text`, `pointer_click`).
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What was done.
    pub label: &'static str,
    /// What became of it.
    pub outcome: StepOutcome,
    /// By which way.
    pub mechanism: Option<Mechanism>,
    /// Whether the effect was seen; `None` if nobody looked.
    pub verified: Option<bool>,
}

impl Step {
    /// A step carried out through the accessibility interface.
    pub fn semantic(label: &'static str, outcome: StepOutcome) -> Step {
        Step { label, outcome, mechanism: Some(Mechanism::SemanticApi), verified: None }
    }

    /// A step carried out by synthetic input.
    pub fn physical(label: &'static str, outcome: StepOutcome) -> Step {
        Step { label, outcome, mechanism: Some(Mechanism::PhysicalSynthetic), verified: None }
    }

    /// The same step with what was seen of its effect.
    #[must_use]
    pub fn verified(mut self, seen: bool) -> Step {
        self.verified = Some(seen);
        self
    }
}

/// The delivery that a list of steps amounts to.
///
/// No succeeded step: nothing was delivered (the element was already as asked). All succeeded steps seen: verified.
pub fn summarize(steps: &[Step]) -> Delivery {
    let mut succeeded = steps.iter().filter(|step| step.outcome == StepOutcome::Succeeded).peekable();
    if succeeded.peek().is_none() {
        return if steps.iter().any(|step| step.outcome == StepOutcome::Attempted) {
            Delivery::Uncertain
        } else {
            Delivery::NotDelivered
        };
    }
    if succeeded.all(|step| step.verified == Some(true)) { Delivery::Verified } else { Delivery::Unverified }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_follows_the_contract() {
        let done = Step::semantic("press", StepOutcome::Succeeded);
        let skipped = Step::semantic("press", StepOutcome::Skipped).verified(true);
        assert_eq!(summarize(&[]), Delivery::NotDelivered);
        assert_eq!(summarize(std::slice::from_ref(&skipped)), Delivery::NotDelivered);
        assert_eq!(summarize(std::slice::from_ref(&done)), Delivery::Unverified);
        assert_eq!(summarize(&[skipped, done.clone().verified(true)]), Delivery::Verified);
        assert_eq!(summarize(&[done.clone(), done.verified(true)]), Delivery::Unverified);
        assert_eq!(summarize(&[Step::semantic("press", StepOutcome::Attempted)]), Delivery::Uncertain);
    }
}
