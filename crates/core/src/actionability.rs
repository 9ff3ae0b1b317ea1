//! Actionability: whether an element can be acted on now, and if not, why.
//!
//! Pure checks over what was read of the live element; the table of what each action needs stands in
//! [`crate::action`]. Decided here: the order of the checks, what blocks for the moment and what for good, by which way
//! an action is delivered, where a pointer aims, and when a moving element counts as still. Not decided here: how often
//! to look, and what is done in the end.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::action::{Action, Capabilities, Capability};
use crate::error::{Error, ErrorCode, Fact, facts};
use crate::geometry::{Point, Rect};
use crate::outline;
use crate::platform::Hit;
use crate::role::Role;
use crate::state::State;
use crate::tree::Node;

// ---------------------------------------------------------------------------------------------------------------------
// Delivery

/// By which way an action reaches the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Through the application's accessibility interface: harmless to the person at the desk.
    Semantic,
    /// With the mouse pointer.
    Pointer,
    /// With synthetic keys.
    Keyboard,
}

impl Route {
    /// Whether it needs the person's mouse or keyboard.
    pub const fn is_physical(self) -> bool {
        matches!(self, Route::Pointer | Route::Keyboard)
    }
}

/// Whether the element itself offers a way to do it.
pub fn has_semantic_route(action: Action, role: Role, capabilities: Capabilities) -> bool {
    match action {
        _ if action.is_physical_only() => false,
        // A click on a check box toggles it; a click on anything else does something else.
        Action::Toggle | Action::Check | Action::Uncheck => {
            capabilities.has(Capability::Toggle)
                || (capabilities.has(Capability::Click) && role.is_toggleable())
        }
        Action::Scroll
        | Action::ScrollTo
        | Action::PressKey
        | Action::KeyDown
        | Action::KeyUp
        | Action::SelectText
        | Action::SetCaret => true,
        _ => action.requirements().any_of.iter().any(|&capability| capabilities.has(capability)),
    }
}

/// The way an action takes on such an element; `None`: there is none under this policy.
///
/// Headed, the pointer comes first for everything a pointer can do, and keys replace a missing text interface.
/// Headless, only the semantic way is open.
pub fn route(action: Action, headed: bool, node: &Node) -> Option<Route> {
    let semantic = has_semantic_route(action, node.role, node.capabilities).then_some(Route::Semantic);
    if !headed {
        return semantic;
    }
    match action {
        _ if action.can_use_pointer() => Some(Route::Pointer),
        Action::TypeText => Some(Route::Keyboard),
        // Focus, select all, type or delete. Browsers take text through their interface and ignore it.
        // A number that Firefox sets through its interface is there, and the page is not told.
        Action::Clear | Action::SetValue | Action::ReplaceText
            if is_keyed(node) || (node.is_web && node.role == Role::Incrementor) =>
        {
            if node.is_web {
                Some(Route::Keyboard)
            } else {
                semantic.or(Some(Route::Keyboard))
            }
        }
        // Controls without an action of their own, such as the check boxes of GTK 4.8.
        Action::Toggle | Action::Check | Action::Uncheck if node.role.is_toggleable() => {
            semantic.or(Some(Route::Pointer))
        }
        Action::Expand | Action::Collapse if node.role.is_expandable() => semantic.or(Some(Route::Pointer)),
        // The list of a combo box is chosen from as a person does: opened, and its item clicked.
        Action::Select if node.role == Role::ComboBox => Some(Route::Pointer),
        Action::Select if matches!(node.role, Role::MenuButton) => semantic.or(Some(Route::Pointer)),
        _ => semantic,
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Stability

/// How far apart samples of bounds are taken.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(17);
/// Equal samples in a row that make an element stable.
pub const SAMPLES_NEEDED: u32 = 3;
/// Time that they span at least.
pub const SPAN_NEEDED: Duration = Duration::from_millis(34);
/// Pixels by which equal samples may differ.
pub const TOLERANCE: f64 = 0.5;

/// Watches the bounds of an element until they stand still.
#[derive(Clone, Debug, Default)]
pub struct Stability {
    /// The sample that began the run, and its time.
    first: Option<(Instant, Option<Rect>)>,
    last: Option<(Instant, Option<Rect>)>,
    in_a_row: u32,
    moved: bool,
}

impl Stability {
    /// Takes in where the element is now; `None`: that cannot be read.
    pub fn sample(&mut self, now: Instant, bounds: Option<Rect>) {
        // Compared with the first of the run, so that slow drift does not count as standing still.
        let continues = matches!((self.first, bounds), (Some((_, Some(first))), Some(bounds)) if first.is_near(&bounds, TOLERANCE));
        if continues {
            self.in_a_row += 1;
        } else {
            // What could not be read has not moved for all we know.
            self.moved = bounds.is_some() && matches!(self.first, Some((_, Some(_))));
            self.first = Some((now, bounds));
            self.in_a_row = 1;
        }
        self.last = Some((now, bounds));
    }

    /// Whether it has stood still for long enough.
    pub fn is_stable(&self) -> bool {
        self.in_a_row >= SAMPLES_NEEDED
            && self.span() >= SPAN_NEEDED
            && self.last.is_some_and(|(_, bounds)| bounds.is_some())
    }

    /// Equal samples in a row.
    pub fn samples(&self) -> u32 {
        self.in_a_row
    }

    /// Time between the first and the last of them.
    pub fn span(&self) -> Duration {
        match (self.first, self.last) {
            (Some((first, _)), Some((last, _))) => last.saturating_duration_since(first),
            _ => Duration::ZERO,
        }
    }

    fn check(&self) -> Check {
        let (status, reason) = if self.is_stable() {
            (Status::Pass, None)
        } else if self.moved && self.in_a_row < SAMPLES_NEEDED {
            (Status::Fail, Some(Cow::Borrowed("it moves")))
        } else {
            (Status::Unknown, Some(Cow::Borrowed("it was not watched long enough to tell whether it moves")))
        };
        let hint =
            (status != Status::Pass).then_some("wait until it stands still; a longer --timeout-ms does that");
        Check {
            status,
            reason,
            stability: Some((self.in_a_row, self.span())),
            hint,
            ..Check::new(CheckName::Stable)
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Checks

/// One of the seven checks, in the order in which they are made and reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckName {
    /// It can be seen.
    Visible,
    /// It does not move.
    Stable,
    /// It is not disabled.
    Enabled,
    /// Text can be entered.
    Editable,
    /// It offers what the action needs.
    SupportedAction,
    /// The caller allows what the action needs.
    Policy,
    /// A pointer would reach it.
    ReceivesEvents,
}

impl CheckName {
    /// The word used in `checks[].check`.
    pub const fn as_str(self) -> &'static str {
        match self {
            CheckName::Visible => "visible",
            CheckName::Stable => "stable",
            CheckName::Enabled => "enabled",
            CheckName::Editable => "editable",
            CheckName::SupportedAction => "supported_action",
            CheckName::Policy => "policy",
            CheckName::ReceivesEvents => "receives_events",
        }
    }

    /// Whether waiting cannot help.
    pub const fn is_terminal(self) -> bool {
        matches!(self, CheckName::Editable | CheckName::SupportedAction | CheckName::Policy)
    }
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Good.
    Pass,
    /// Not good.
    Fail,
    /// What would tell could not be read.
    Unknown,
}

impl Status {
    /// The word used in `checks[].status`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Unknown => "unknown",
        }
    }
}

/// What is in the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Occluder {
    /// Its role.
    pub role: Role,
    /// Its name.
    pub name: Option<String>,
    /// Where it is.
    pub bounds: Option<Rect>,
}

/// How the probes of a hit test ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitTest {
    /// Points that were probed.
    pub attempted: u32,
    /// Points of which nobody could say.
    pub unknown: u32,
    /// Points that something else would receive.
    pub occluded: u32,
}

/// One check and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Which one.
    pub name: CheckName,
    /// How it ended.
    pub status: Status,
    /// Why it did not pass, as the end of a sentence about the element: `it is disabled`.
    pub reason: Option<Cow<'static, str>>,
    /// What is in the way.
    pub occluder: Option<Occluder>,
    /// The probes.
    pub hit_test: Option<HitTest>,
    /// Equal samples in a row and the time they span.
    pub stability: Option<(u32, Duration)>,
    /// The code of the error when it blocks.
    code: ErrorCode,
    hint: Option<&'static str>,
}

impl Check {
    fn new(name: CheckName) -> Check {
        Check {
            name,
            status: Status::Pass,
            reason: None,
            occluder: None,
            hit_test: None,
            stability: None,
            code: if name.is_terminal() { ErrorCode::ActionNotSupported } else { ErrorCode::ActionFailed },
            hint: None,
        }
    }

    fn fails(name: CheckName, reason: impl Into<Cow<'static, str>>, hint: &'static str) -> Check {
        Check { status: Status::Fail, reason: Some(reason.into()), hint: Some(hint), ..Check::new(name) }
    }

    fn is_unknown(name: CheckName, reason: &'static str) -> Check {
        Check {
            status: Status::Unknown,
            reason: Some(Cow::Borrowed(reason)),
            hint: Some("retry; the application may be busy"),
            ..Check::new(name)
        }
    }

    fn denied(mut self) -> Check {
        self.code = ErrorCode::PolicyDenied;
        self
    }

    /// Whether it stands in the way of acting.
    ///
    /// What could not be found out blocks, with one exception: a hit test that saw nothing in the way.
    pub fn blocks(&self) -> bool {
        match self.status {
            Status::Pass => false,
            Status::Fail => true,
            Status::Unknown => {
                self.name != CheckName::ReceivesEvents || self.hit_test.is_none_or(|hits| hits.occluded > 0)
            }
        }
    }

    /// As it stands in `checks[]`.
    pub fn facts(&self) -> Fact {
        let mut entries = vec![
            ("check".to_owned(), Fact::from(self.name.as_str())),
            ("status".to_owned(), Fact::from(self.status.as_str())),
        ];
        let mut add = |name: &str, fact: Fact| entries.push((name.to_owned(), fact));
        if let Some(reason) = &self.reason {
            let reason = match reason {
                Cow::Borrowed(reason) => Fact::from(*reason),
                Cow::Owned(reason) => Fact::from(reason.clone()),
            };
            add("reason", reason);
        }
        if let Some(occluder) = &self.occluder {
            let mut parts = vec![("role".to_owned(), Fact::from(occluder.role.as_str()))];
            if let Some(name) = &occluder.name {
                parts.push(("name".to_owned(), outline::cut(name, outline::MESSAGE_TEXT).into()));
            }
            if let Some(bounds) = &occluder.bounds {
                parts.push(("bounds".to_owned(), rect_facts(bounds)));
            }
            add("occluder", Fact::Map(parts));
        }
        if let Some(hits) = &self.hit_test {
            add(
                "hit_test",
                facts([
                    ("attempted", hits.attempted.into()),
                    ("unknown", hits.unknown.into()),
                    ("occluded", hits.occluded.into()),
                ]),
            );
        }
        if let Some((samples, span)) = self.stability {
            let span_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            add("stability", facts([("samples", samples.into()), ("span_ms", span_ms.into())]));
        }
        Fact::Map(entries)
    }
}

fn rect_facts(rect: &Rect) -> Fact {
    facts([
        ("x", rect.x.into()),
        ("y", rect.y.into()),
        ("width", rect.width.into()),
        ("height", rect.height.into()),
    ])
}

/// What the checks look at.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// What is to be done.
    pub action: Action,
    /// Whether the caller allows physical input and focus changes.
    pub headed: bool,
    /// The element as it was just read; `None`: it could not be read at all.
    pub node: Option<&'a Node>,
    /// Bounds of its window.
    pub window: Option<Rect>,
    /// Where it was over the last moments; needed for the pointer only.
    pub stability: &'a Stability,
}

/// How the checks ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The action they were made for.
    pub action: Action,
    /// The way the action would take.
    pub route: Option<Route>,
    /// The checks, in order. The hit test is there only once [`Report::add_hit_test`] was called.
    pub checks: Vec<Check>,
    /// A point that was seen to reach the element.
    pub verified_point: Option<Point>,
    /// Where to aim when no point was verified: the middle of what of it lies on a display.
    pub aim: Option<Point>,
    /// [`Rect::stable_hash`] of where the element was.
    pub observed_bounds_hash: Option<u64>,
    needs_hit_test: bool,
    has_semantic_route: bool,
    was_read: bool,
}

/// Makes every check that the action needs, the hit test aside.
///
/// Nothing is compared with the bounds of the snapshot: an element that has moved since and stands still now can be
/// acted on.
pub fn check(situation: &Situation) -> Report {
    let Situation { action, headed, node, window, stability } = *situation;
    let Some(node) = node else {
        let nothing = Check::fails(
            CheckName::SupportedAction,
            "nothing could be read of it",
            "take a new snapshot, and see whether the element is still offered",
        );
        return Report {
            action,
            route: None,
            checks: vec![nothing],
            verified_point: None,
            aim: None,
            observed_bounds_hash: None,
            needs_hit_test: false,
            has_semantic_route: false,
            was_read: false,
        };
    };
    let needs = action.requirements();
    let route = route(action, headed, node);
    let by_pointer = route == Some(Route::Pointer);
    let mut checks = Vec::with_capacity(7);
    if needs.visible {
        checks.push(check_visible(node, window));
    }
    // Only a pointer has to aim; the other ways reach an element wherever it is.
    if needs.stable && by_pointer {
        checks.push(stability.check());
    }
    if needs.enabled {
        checks.push(check_enabled(node));
    }
    if needs.editable {
        checks.push(check_editable(action, node));
    }
    checks.push(check_supported(action, headed, node));
    checks.push(check_policy(action, headed));
    Report {
        action,
        route,
        // A wheel turns whatever scrolls there; everything else that is pointed at must be hit.
        needs_hit_test: by_pointer && action != Action::Scroll,
        has_semantic_route: has_semantic_route(action, node.role, node.capabilities),
        checks,
        verified_point: None,
        aim: None,
        observed_bounds_hash: node.bounds.map(|bounds| bounds.stable_hash()),
        was_read: true,
    }
}

fn check_visible(node: &Node, window: Option<Rect>) -> Check {
    const NAME: CheckName = CheckName::Visible;
    const SCROLL: &str = "bring it into view with scroll-to, or open what contains it, then retry";
    if node.states.has(State::Hidden) {
        return Check::fails(
            NAME,
            "it is hidden",
            "open what contains it (a menu, a tab, a section), then retry",
        );
    }
    if node.states.has(State::Offscreen) {
        return Check::fails(NAME, "it is outside of what its window shows", SCROLL);
    }
    if node.gaps.basics {
        return Check::is_unknown(NAME, "its states could not be read");
    }
    match node.bounds {
        None if node.gaps.bounds => Check::is_unknown(NAME, "its bounds could not be read"),
        None => Check::fails(NAME, "it has no place on the screen", SCROLL),
        Some(bounds) if bounds.is_empty() => Check::fails(NAME, "it has no size", SCROLL),
        Some(bounds)
            if window.is_some_and(|window| !window.is_empty() && window.intersection(&bounds).is_none()) =>
        {
            Check::fails(NAME, "it is outside of its window", SCROLL)
        }
        Some(_) => Check::new(NAME),
    }
}

fn check_enabled(node: &Node) -> Check {
    if node.states.has(State::Disabled) {
        Check::fails(
            CheckName::Enabled,
            "it is disabled",
            "do first what enables it; wait --element REF --predicate enabled waits for it",
        )
    } else if node.gaps.basics {
        Check::is_unknown(CheckName::Enabled, "its states could not be read")
    } else {
        Check::new(CheckName::Enabled)
    }
}

fn is_editable(action: Action, node: &Node) -> bool {
    !node.states.has(State::ReadOnly)
        && (node.role.is_editable()
            || node.capabilities.has(Capability::SetValue)
            || (matches!(action, Action::TypeText | Action::ReplaceText)
                && node.capabilities.has(Capability::TypeText)))
}

/// Whether its value is entered with keys, rather than dragged or chosen.
fn is_keyed(node: &Node) -> bool {
    !node.states.has(State::ReadOnly)
        && (node.role == Role::TextField || node.capabilities.has(Capability::TypeText))
}

fn check_editable(action: Action, node: &Node) -> Check {
    if is_editable(action, node) {
        return Check::new(CheckName::Editable);
    }
    let reason =
        if node.states.has(State::ReadOnly) { "it is read-only" } else { "its value cannot be edited" };
    Check::fails(CheckName::Editable, reason, "choose an element that offers SetValue or TypeText")
}

fn check_supported(action: Action, headed: bool, node: &Node) -> Check {
    const NAME: CheckName = CheckName::SupportedAction;
    if headed && route(action, headed, node).is_some()
        || has_semantic_route(action, node.role, node.capabilities)
        || matches!(action, Action::Hover | Action::Drag)
    {
        return Check::new(NAME);
    }
    if node.gaps.basics || node.gaps.actions {
        return Check::is_unknown(NAME, "what it offers could not be read");
    }
    // Qt takes the actions away from what is disabled: that it has none now says nothing about later.
    let offers_nothing = node.capabilities.iter().all(|capability| {
        matches!(capability, Capability::SetFocus | Capability::RightClick | Capability::ScrollTo)
    });
    if node.states.has(State::Disabled) && offers_nothing {
        return Check::is_unknown(NAME, "it is disabled and does not say what it offers");
    }
    let headed_would_help = route(action, true, node).is_some()
        && matches!(
            action,
            Action::Click
                | Action::RightClick
                | Action::DoubleClick
                | Action::TripleClick
                | Action::TypeText
                | Action::ReplaceText
                | Action::SetValue
                | Action::Clear
                | Action::Toggle
                | Action::Check
                | Action::Uncheck
                | Action::Expand
                | Action::Collapse
                | Action::Select
        );
    if headed_would_help {
        let way = match route(action, true, node) {
            Some(Route::Keyboard) => "synthetic keys",
            _ => "the mouse pointer",
        };
        return Check::fails(
            NAME,
            format!("{} is possible only with {way}", action.as_str()),
            "add --headed if the mouse and the keyboard of this desktop may be used",
        )
        .denied();
    }
    let offers: Vec<&str> = node.capabilities.iter().map(Capability::as_str).collect();
    let offers = if offers.is_empty() { "nothing".to_owned() } else { offers.join(", ") };
    Check::fails(
        NAME,
        format!("it cannot {} (it offers {offers})", action.as_str()),
        "choose an element that offers it, or another action",
    )
}

fn check_policy(action: Action, headed: bool) -> Check {
    if action.is_physical_only() && !headed {
        return Check::fails(
            CheckName::Policy,
            format!("{} moves the mouse pointer, which was not allowed", action.as_str()),
            "add --headed if the mouse and the keyboard of this desktop may be used",
        )
        .denied();
    }
    Check::new(CheckName::Policy)
}

// ---------------------------------------------------------------------------------------------------------------------
// Hit test

/// Where to aim: the centre, then the four points at a quarter and three quarters of width and height.
///
/// Of an element that is partly outside its window, only the part inside is aimed at.
pub fn hit_points(bounds: Rect, window: Option<Rect>) -> [Point; 5] {
    let part = window.and_then(|window| window.intersection(&bounds)).unwrap_or(bounds);
    [part.center(), part.at(0.25, 0.25), part.at(0.75, 0.25), part.at(0.25, 0.75), part.at(0.75, 0.75)]
}

fn check_hits(hits: &[(Point, Hit)]) -> (Check, Option<Point>) {
    const NAME: CheckName = CheckName::ReceivesEvents;
    let count = |is_meant: fn(&Hit) -> bool| hits.iter().filter(|(_, hit)| is_meant(hit)).count() as u32;
    let test = HitTest {
        attempted: hits.len() as u32,
        unknown: count(|hit| *hit == Hit::Unknown),
        occluded: count(|hit| matches!(hit, Hit::Other { .. })),
    };
    let reached = hits.iter().find(|(_, hit)| *hit == Hit::Target).map(|(point, _)| *point);
    let occluder = hits.iter().find_map(|(_, hit)| match hit {
        Hit::Other { role, name, bounds } => {
            Some(Occluder { role: *role, name: name.clone(), bounds: *bounds })
        }
        _ => None,
    });
    let check = match (&reached, &occluder) {
        (Some(_), _) => Check::new(NAME),
        (None, Some(occluder)) => {
            let who = outline::describe(occluder.role, occluder.name.as_deref());
            let hint =
                if matches!(occluder.role, Role::Dialog | Role::AlertDialog | Role::Alert | Role::Sheet) {
                    "answer or close it first, then retry"
                } else {
                    "close or move what covers it, then retry"
                };
            let check = Check::fails(NAME, format!("it is covered by {who}"), hint);
            // Nobody can say of some points, so that it may be only partly covered.
            let status = if test.unknown > 0 { Status::Unknown } else { Status::Fail };
            Check { status, ..check }
        }
        (None, None) => Check::is_unknown(NAME, "nobody could say what is in front"),
    };
    (Check { occluder: occluder.filter(|_| reached.is_none()), hit_test: Some(test), ..check }, reached)
}

// ---------------------------------------------------------------------------------------------------------------------
// Report

impl Report {
    /// Whether the action may be carried out now.
    pub fn is_actionable(&self) -> bool {
        !self.wants_hit_test() && !self.checks.iter().any(Check::blocks)
    }

    /// What a pointer needs besides: part of the element has to lie on a display. Returns that part.
    ///
    /// `window`: as in [`Situation::window`]. Without displays nobody knows, and nothing changes.
    pub fn add_displays(&mut self, bounds: Rect, window: Option<Rect>, displays: &[Rect]) -> Option<Rect> {
        let part = window.and_then(|window| window.intersection(&bounds)).unwrap_or(bounds);
        let area = |rect: &Rect| rect.width * rect.height;
        let shown = displays
            .iter()
            .filter_map(|display| display.intersection(&part))
            .max_by(|one, other| area(one).total_cmp(&area(other)));
        self.aim = shown.map(|shown| shown.center());
        if shown.is_none() && !displays.is_empty() && !bounds.is_empty() {
            let hint = "move its window onto a display, with move-window, then retry";
            let fails = Check::fails(CheckName::Visible, "it lies beside every display", hint);
            match self.checks.iter_mut().find(|check| check.name == CheckName::Visible) {
                Some(check) if check.blocks() => {}
                Some(check) => *check = fails,
                None => self.checks.insert(0, fails),
            }
        }
        shown
    }

    /// Whether everything passed so far and only the hit test is missing: probe [`hit_points`] and call
    /// [`Report::add_hit_test`].
    pub fn wants_hit_test(&self) -> bool {
        self.needs_hit_test
            && !self.checks.iter().any(|check| check.name == CheckName::ReceivesEvents || check.blocks())
    }

    /// Adds what the probes said. One that reaches the target ends the probing.
    pub fn add_hit_test(&mut self, hits: &[(Point, Hit)]) {
        let (check, reached) = check_hits(hits);
        // Where nobody can say what a pointer would hit, the element's own interface is surer, if it has one.
        if reached.is_none() && check.occluder.is_none() && self.has_semantic_route {
            self.route = Some(Route::Semantic);
        }
        self.checks.push(check);
        self.verified_point = reached;
    }

    /// The check that the error is about: one that no waiting helps if there is any, else the first that failed, else the
    /// first of which nobody could say.
    pub fn blocking(&self) -> Option<&Check> {
        let mut blocking = self.checks.iter().filter(|check| check.blocks());
        let mut failed = blocking.clone().filter(|check| check.status == Status::Fail);
        let first = failed.next().or_else(|| blocking.clone().next());
        blocking.find(|check| self.ends_wait(check)).or(first)
    }

    fn ends_wait(&self, check: &Check) -> bool {
        check.name.is_terminal() && (check.status == Status::Fail || !self.was_read)
    }

    /// Whether waiting cannot help.
    pub fn is_terminal(&self) -> bool {
        self.blocking().is_some_and(|check| self.ends_wait(check))
    }

    /// Whether it only has to be watched a little longer.
    pub fn only_stability_blocks(&self) -> bool {
        let mut blocking = self.checks.iter().filter(|check| check.blocks()).peekable();
        blocking.peek().is_some() && blocking.all(|check| check.name == CheckName::Stable)
    }

    /// Whether scrolling the element into view may help.
    pub fn scrolling_may_help(&self) -> bool {
        self.action.requirements().scrolls_into_view
            && self.checks.iter().any(|check| check.name == CheckName::Visible && check.blocks())
    }

    /// The error for an action that is blocked; `None` if it is not.
    ///
    /// `subject` names the element, as [`crate::refs::subject`] does.
    pub fn error(&self, subject: &str) -> Option<Error> {
        let check = self.blocking()?;
        let reason = check.reason.as_deref().unwrap_or("it cannot be acted on");
        let message = match reason.strip_prefix("it ") {
            Some(rest) => format!("{subject} {rest}"),
            None => format!("{subject}: {reason}"),
        };
        let code = if check.status == Status::Unknown { ErrorCode::ActionFailed } else { check.code };
        let error = Error::new(code, message)
            .delivery(crate::Delivery::NotDelivered)
            .detail("check", check.name.as_str())
            .detail("report", self.facts());
        Some(match check.hint {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }

    /// As it stands in replies and details.
    pub fn facts(&self) -> Fact {
        let mut entries = vec![
            ("actionable".to_owned(), Fact::from(self.is_actionable())),
            ("checks".to_owned(), Fact::List(self.checks.iter().map(Check::facts).collect())),
        ];
        if let Some(point) = self.verified_point {
            entries
                .push(("verified_point".to_owned(), facts([("x", point.x.into()), ("y", point.y.into())])));
        }
        if let Some(hash) = self.observed_bounds_hash {
            // A number of 64 bits does not survive JSON readers that know only doubles.
            entries.push(("observed_bounds_hash".to_owned(), Fact::Text(format!("{hash:016x}"))));
        }
        Fact::Map(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::named;
    use crate::state::States;
    use proptest::prelude::*;

    fn rect(x: i32) -> Rect {
        Rect::from_pixels(x, 10, 80, 20)
    }

    fn button() -> Node {
        Node {
            bounds: Some(rect(10)),
            capabilities: Capabilities::NONE.with(Capability::Click),
            ..named(Role::Button, "Save")
        }
    }

    fn still() -> Stability {
        let mut stability = Stability::default();
        let start = Instant::now();
        for step in 0..3 {
            stability.sample(start + SAMPLE_INTERVAL * step, Some(rect(10)));
        }
        stability
    }

    fn report(action: Action, headed: bool, node: &Node) -> Report {
        let window = Some(Rect::from_pixels(0, 0, 400, 300));
        check(&Situation { action, headed, node: Some(node), window, stability: &still() })
    }

    #[track_caller]
    fn blocked(report: &Report, name: CheckName, code: ErrorCode, message: &str) {
        let error = report.error("e12 (button \"Save\")").expect("it is blocked");
        assert_eq!(report.blocking().map(|check| check.name), Some(name));
        assert_eq!((error.code(), error.message()), (code, message));
        assert_eq!(error.get_delivery().retry(), "safe");
        assert!(error.get_hint().is_some());
        assert_eq!(report.is_terminal(), name.is_terminal());
    }

    #[test]
    fn a_headless_click_needs_neither_stillness_nor_a_hit_test() {
        let report = report(Action::Click, false, &button());
        assert!(report.is_actionable() && !report.wants_hit_test());
        assert_eq!(report.route, Some(Route::Semantic));
        let checks: Vec<&str> = report.checks.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(checks, ["visible", "enabled", "supported_action", "policy"]);
    }

    #[test]
    fn what_blocks_for_the_moment_names_the_cause() {
        let with = |change: fn(&mut Node)| {
            let mut node = button();
            change(&mut node);
            report(Action::Click, false, &node)
        };
        let message = |rest: &str| format!("e12 (button \"Save\") {rest}");
        for (report, name, rest) in [
            (with(|node| node.states.insert(State::Disabled)), CheckName::Enabled, "is disabled"),
            (with(|node| node.states.insert(State::Hidden)), CheckName::Visible, "is hidden"),
            (
                with(|node| node.states.insert(State::Offscreen)),
                CheckName::Visible,
                "is outside of what its window shows",
            ),
            (with(|node| node.bounds = None), CheckName::Visible, "has no place on the screen"),
            (with(|node| node.bounds = Some(Rect::default())), CheckName::Visible, "has no size"),
            (with(|node| node.bounds = Some(rect(400))), CheckName::Visible, "is outside of its window"),
        ] {
            blocked(&report, name, ErrorCode::ActionFailed, &message(rest));
            assert_eq!(report.scrolling_may_help(), name == CheckName::Visible);
        }
        let unread = with(|node| {
            node.bounds = None;
            node.gaps.bounds = true;
        });
        assert_eq!(unread.checks[0].status, Status::Unknown);
        assert!(!unread.is_actionable() && !unread.is_terminal());
        assert!(!with(|node| node.gaps.basics = true).is_actionable());
        let unread = with(|node| {
            node.capabilities = Capabilities::NONE;
            node.gaps.actions = true;
        });
        let check = unread.checks.iter().find(|check| check.name == CheckName::SupportedAction);
        assert_eq!(check.map(|check| check.status), Some(Status::Unknown));
        assert!(!unread.is_actionable() && !unread.is_terminal());
    }

    #[test]
    fn what_waiting_cannot_help_ends_the_wait_first() {
        let mut node = button();
        node.states.insert(State::Disabled);
        let report = report(Action::Expand, false, &node);
        blocked(
            &report,
            CheckName::SupportedAction,
            ErrorCode::ActionNotSupported,
            "e12 (button \"Save\") cannot expand (it offers Click)",
        );
    }

    #[test]
    fn what_is_disabled_and_offers_nothing_may_offer_it_later() {
        let mut node = button();
        node.states.insert(State::Disabled);
        node.capabilities = Capabilities::NONE;
        let report = report(Action::Click, false, &node);
        assert!(!report.is_terminal());
        blocked(&report, CheckName::Enabled, ErrorCode::ActionFailed, "e12 (button \"Save\") is disabled");
    }

    #[test]
    fn policy_is_named_only_where_headed_opens_a_way() {
        let mut node = button();
        for action in [Action::DoubleClick, Action::Hover] {
            let report = report(action, false, &node);
            assert_eq!(report.error("e12").unwrap().code(), ErrorCode::PolicyDenied);
            assert!(super::tests::report(action, true, &node).wants_hit_test());
        }
        node.capabilities = Capabilities::NONE;
        blocked(
            &report(Action::Click, false, &node),
            CheckName::SupportedAction,
            ErrorCode::PolicyDenied,
            "e12 (button \"Save\"): click is possible only with the mouse pointer",
        );
        assert_eq!(
            report(Action::SetFocus, false, &node).error("e12").unwrap().code(),
            ErrorCode::ActionNotSupported
        );
    }

    #[test]
    fn text_goes_where_text_can_go() {
        let mut field = Node { bounds: Some(rect(10)), ..named(Role::TextField, "User") };
        assert_eq!(
            report(Action::TypeText, false, &field).error("e1").unwrap().code(),
            ErrorCode::PolicyDenied
        );
        assert_eq!(report(Action::TypeText, true, &field).route, Some(Route::Keyboard));
        field.capabilities = [Capability::TypeText, Capability::SetValue].into_iter().collect();
        for action in [Action::TypeText, Action::SetValue, Action::Clear] {
            assert!(report(action, false, &field).is_actionable());
        }
        field.states.insert(State::ReadOnly);
        blocked(
            &report(Action::SetValue, false, &field),
            CheckName::Editable,
            ErrorCode::ActionNotSupported,
            "e12 (button \"Save\") is read-only",
        );
        assert!(report(Action::SetValue, false, &button()).is_terminal());
    }

    #[test]
    fn a_click_toggles_only_what_is_a_toggle() {
        let mut check = button();
        assert!(!has_semantic_route(Action::Check, check.role, check.capabilities));
        check.role = Role::CheckBox;
        assert!(has_semantic_route(Action::Check, check.role, check.capabilities));
        assert!(has_semantic_route(
            Action::Toggle,
            Role::Button,
            Capabilities::NONE.with(Capability::Toggle)
        ));
    }

    #[test]
    fn no_evidence_at_all_is_not_supported() {
        let nothing = check(&Situation {
            action: Action::Click,
            headed: true,
            node: None,
            window: None,
            stability: &Stability::default(),
        });
        assert_eq!(nothing.error("e1").unwrap().code(), ErrorCode::ActionNotSupported);
        assert!(nothing.is_terminal() && !nothing.wants_hit_test());
    }

    #[test]
    fn three_equal_samples_over_34_ms_are_stable() {
        let start = Instant::now();
        let mut stability = Stability::default();
        let mut sample = |ms: u64, x: f64| {
            stability.sample(start + Duration::from_millis(ms), Some(rect(10).offset(x, 0.0)));
            stability.is_stable()
        };
        assert!(!sample(0, 0.0));
        assert!(!sample(10, 0.2));
        assert!(!sample(20, 0.4)); // three, but too soon
        assert!(sample(34, 0.5));
        assert!(!sample(51, 0.9)); // drifted away from the first
        assert!(!sample(68, 0.9));
        assert!(sample(85, 0.9));
        stability.sample(start + Duration::from_millis(100), None);
        assert!(!stability.is_stable());
    }

    #[test]
    fn only_stability_blocks_while_it_moves() {
        let node = button();
        let mut moving = Stability::default();
        let start = Instant::now();
        moving.sample(start, Some(rect(10)));
        let at = |stability: &Stability| {
            check(&Situation {
                action: Action::Click,
                headed: true,
                node: Some(&node),
                window: None,
                stability,
            })
        };
        let first = at(&moving);
        assert!(first.only_stability_blocks() && !first.wants_hit_test());
        assert_eq!(first.checks[1].status, Status::Unknown);
        moving.sample(start + SAMPLE_INTERVAL, Some(rect(20)));
        let second = at(&moving);
        blocked(&second, CheckName::Stable, ErrorCode::ActionFailed, "e12 (button \"Save\") moves");
        assert!(second.only_stability_blocks());
    }

    fn covered() -> Hit {
        Hit::Other { role: Role::Dialog, name: Some("Unsaved changes".to_owned()), bounds: None }
    }

    fn hit(hits: &[Hit]) -> Report {
        let mut report = report(Action::Click, true, &button());
        assert!(report.wants_hit_test() && !report.is_actionable());
        let points = hit_points(rect(10), None);
        let probes: Vec<(Point, Hit)> = points.into_iter().zip(hits.iter().cloned()).collect();
        report.add_hit_test(&probes);
        report
    }

    #[test]
    fn the_first_point_that_reaches_is_used() {
        let report = hit(&[covered(), Hit::Unknown, Hit::Target]);
        assert!(report.is_actionable());
        assert_eq!(report.verified_point, Some(rect(10).at(0.75, 0.25)));
    }

    #[test]
    fn a_covered_element_says_by_what() {
        blocked(
            &hit(&[covered(), covered()]),
            CheckName::ReceivesEvents,
            ErrorCode::ActionFailed,
            "e12 (button \"Save\") is covered by dialog \"Unsaved changes\"",
        );
        let mixed = hit(&[covered(), Hit::Unknown]);
        assert_eq!(mixed.checks.last().map(|check| check.status), Some(Status::Unknown));
        assert!(!mixed.is_actionable());
    }

    #[test]
    fn nobody_knowing_is_no_obstacle() {
        let report = hit(&[const { Hit::Unknown }; 5]);
        assert!(report.is_actionable());
        assert_eq!(report.verified_point, None);
    }

    #[test]
    fn a_pointer_needs_some_of_it_on_a_display() {
        let displays = [Rect::from_pixels(0, 0, 15, 300), Rect::from_pixels(-500, 0, 500, 300)];
        let with = |bounds: Rect, displays: &[Rect]| {
            let node = Node { bounds: Some(bounds), ..button() };
            let mut report = report(Action::Click, true, &node);
            let shown = report.add_displays(bounds, None, displays);
            (
                shown,
                report.aim,
                report.checks.iter().any(|check| check.blocks() && check.name == CheckName::Visible),
            )
        };
        let (shown, aim, is_blocked) = with(rect(10), &displays);
        assert_eq!((shown.map(|shown| shown.width), is_blocked), (Some(5.0), false));
        assert!(aim.is_some_and(|aim| displays[0].contains(aim)));
        assert_eq!(with(rect(20), &displays), (None, None, true));
        assert_eq!(with(rect(20), &[]), (None, None, false));
    }

    #[test]
    fn only_the_part_inside_the_window_is_aimed_at() {
        let window = Rect::from_pixels(0, 0, 50, 300);
        assert!(hit_points(rect(10), Some(window)).iter().all(|point| window.contains(*point)));
    }

    fn nodes() -> impl Strategy<Value = Node> {
        let roles = prop::sample::select(Role::ALL);
        (roles, any::<u32>(), any::<u32>(), any::<[bool; 3]>()).prop_map(
            |(role, states, offers, [has_bounds, basics, bounds])| {
                let mut node = Node { role, bounds: has_bounds.then(|| rect(10)), ..named(role, "x") };
                node.states = State::ALL
                    .iter()
                    .enumerate()
                    .filter(|(bit, _)| states >> bit & 1 == 1)
                    .map(|(_, state)| *state)
                    .collect::<States>();
                node.capabilities = Capability::ALL
                    .iter()
                    .enumerate()
                    .filter(|(bit, _)| offers >> bit & 1 == 1)
                    .map(|(_, offer)| *offer)
                    .collect();
                node.gaps.basics = basics;
                node.gaps.bounds = bounds;
                node
            },
        )
    }

    proptest! {
        #[test]
        fn a_report_is_actionable_or_has_an_error(node in nodes(), action in prop::sample::select(Action::ALL), headed: bool) {
            let mut report = report(action, headed, &node);
            prop_assert!(report.checks.is_sorted_by_key(|check| check.name));
            if report.wants_hit_test() {
                prop_assert!(report.error("e1").is_none());
                report.add_hit_test(&[(Point { x: 0.0, y: 0.0 }, Hit::Target)]);
            }
            prop_assert_eq!(report.is_actionable(), report.error("e1").is_none());
            if report.is_actionable() {
                prop_assert!(report.route.is_some(), "{:?} has no way", action);
            }
            // Headless never leaves the semantic way.
            prop_assert!(headed || report.route.is_none_or(|route| !route.is_physical()));
        }
    }
}
