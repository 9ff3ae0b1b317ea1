//! Acting on an element: the one sequence that every ref action goes through.
//!
//! Resolve and check until it can be acted on, without disturbing anybody; take the lease; look again; act once; see
//! whether it happened. Decided here: the order, what is waited for, and what a failure says about delivery. What each
//! action does is in `dispatch.rs`; whether an element can be acted on is core's to judge.

pub(crate) mod dispatch;
pub(crate) mod evidence;
mod pointer;
mod select;
pub(crate) mod text;

use std::time::{Duration, Instant};

use agent_desktop_core::action::{Action, Direction};
use agent_desktop_core::actionability::{
    self, Report, Route, SAMPLE_INTERVAL, Situation, Stability, hit_points,
};
use agent_desktop_core::deadline::Deadline;
use agent_desktop_core::delivery::{self, Delivery, Step, StepOutcome};
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::geometry::Rect;
use agent_desktop_core::platform::{Hit, Operation, Reading, Surface, Window, WindowOperation};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::Node;

use crate::action_reply::{ActionReply, Details};
use crate::artifacts::Pictures;
use crate::context::Context;
use crate::lease::Lease;
use crate::resolve::{self, Loaded, Resolved};
use crate::trace::{self, Field};
use crate::wire::SurfaceData;

pub use pointer::{Aim, aim};

/// Pause between two looks at an element that cannot be acted on yet.
pub(crate) const POLL: Duration = Duration::from_millis(100);
/// The same when it only has to be watched a little longer.
pub(crate) const POLL_STABILITY: Duration = Duration::from_millis(16);
/// Time that an application must have had at least for its silence to count.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long the focus of a window may take to arrive, and how far apart its two confirmations are.
pub(crate) const FOCUS_LIMIT: Duration = Duration::from_millis(750);
pub(crate) const FOCUS_CONFIRM: Duration = Duration::from_millis(50);

/// What is asked of an element.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// An action without an argument.
    Plain(Action),
    /// Insert this text.
    Type(&'a str),
    /// Make this the value.
    SetValue(&'a str),
    /// Choose the item of this name.
    Select(&'a str),
    /// Move the view by so many lines.
    Scroll(Direction, u32),
    /// Do something with a part of its text.
    Text(text::TextRequest<'a>),
}

impl Request<'_> {
    /// The action it is.
    pub const fn action(&self) -> Action {
        match self {
            Request::Plain(action) => *action,
            Request::Type(_) => Action::TypeText,
            Request::SetValue(_) => Action::SetValue,
            Request::Select(_) => Action::Select,
            Request::Scroll(..) => Action::Scroll,
            Request::Text(text::TextRequest::Select(_)) => Action::SelectText,
            Request::Text(text::TextRequest::Replace(..)) => Action::ReplaceText,
            Request::Text(text::TextRequest::Caret(..)) => Action::SetCaret,
        }
    }
}

/// What was done, and the element before and after.
struct Done {
    steps: Vec<Step>,
    after: Option<Node>,
    surfaces: Vec<Surface>,
}

/// Counts of the waiting, for `details.auto_wait`.
#[derive(Clone, Copy, Debug, Default)]
struct Waited {
    resolve_attempts: u32,
    preflight_attempts: u32,
    was_ambiguous: bool,
}

/// Carries out a request on the element of a ref.
///
/// # Errors
/// Those of resolution; `TIMEOUT` of kind `actionability_timeout` with the last report when it could not be acted on in
/// time; `ACTION_NOT_SUPPORTED`, `POLICY_DENIED`; `ACTION_FAILED` when it was done and did not work.
pub fn run(
    context: &Context<'_>,
    reference: &str,
    snapshot: Option<&str>,
    request: Request<'_>,
) -> Result<ActionReply> {
    let action = request.action();
    let loaded = resolve::load(context, reference, snapshot)?;
    if action.is_physical_only() && !context.options.headed {
        return Err(crate::policy::needs_headed(action.as_str()));
    }
    let name = loaded.target.to_string();
    let labels = [("ref", Field::Text(&name)), ("action", Field::Text(action.as_str()))];
    if let Some(reply) = already_so(context, &loaded, action) {
        return Ok(reply);
    }
    let mut waited = Waited::default();
    let Ready { mut resolved, report, lease, leased_at, pictures } =
        make_ready(context, &loaded, action, context.options.headed, true, &mut waited)?;
    resolved.node = complete(context, resolved.node)?;
    context.trace("action.dispatch.start", &labels)?;
    let performer = dispatch::Performer { context, loaded: &loaded, resolved: &resolved, report: &report };
    let done = performer.perform(request);
    let told =
        trace_dispatched(context, Some(&name), action, &done.as_ref().map(|done| done.steps.as_slice()));
    let held_ms = context.now().saturating_duration_since(leased_at).as_millis() as u64;
    let contention = lease.as_ref().map_or(0, |lease| lease.contention_count);
    drop(lease);
    let told = told.and(pictures.map_or(Ok(()), |pictures| pictures.end(context, &loaded, Some(&resolved))));
    // What went wrong with the action goes before what went wrong with its trace.
    let done = done?;
    told?;
    let mut reply = ActionReply::new(action.as_str(), &done.steps);
    if has_post_state(action) {
        reply.post_state = done.after.as_ref().map(evidence::post_state);
    }
    reply.surfaces = done.surfaces.iter().map(SurfaceData::from).collect();
    reply.details = details(&waited, contention, held_ms);
    Ok(reply)
}

/// The reply for a check box that is as it is to be: nothing is needed of it, not even that it can be changed.
fn already_so(context: &Context<'_>, loaded: &Loaded, action: Action) -> Option<ActionReply> {
    let wanted = match action {
        Action::Check => true,
        Action::Uncheck => false,
        _ => return None,
    };
    let node = resolve::attempt(context, loaded, context.deadline).ok()?.node;
    let is_on = node.states.has(State::Checked) || node.states.has(State::Pressed);
    let is_told = node.role.is_toggleable() && !node.gaps.basics && !node.states.has(State::Indeterminate);
    if !is_told || is_on != wanted {
        return None;
    }
    let step = Step::semantic("toggle", StepOutcome::Skipped).verified(true);
    let mut reply = ActionReply::new(action.as_str(), &[step]);
    reply.post_state = Some(evidence::post_state(&node));
    let looked = Waited { resolve_attempts: 1, preflight_attempts: 1, was_ambiguous: false };
    reply.details = details(&looked, 0, 0);
    Some(reply)
}

/// An element that can be acted on, with the lease held.
struct Ready {
    resolved: Resolved,
    report: Report,
    lease: Option<Lease>,
    leased_at: Instant,
    /// With the lease: the picture before the action.
    pictures: Option<Pictures>,
}

/// Waits until the element can be acted on, takes the lease if asked for, and looks at it once more. All of it is in the
/// trace.
fn make_ready(
    context: &Context<'_>,
    loaded: &Loaded,
    action: Action,
    focus: bool,
    takes_lease: bool,
    waited: &mut Waited,
) -> Result<Ready> {
    let name = loaded.target.to_string();
    let reference = ("ref", Field::Text(&name));
    context.trace("actionability.check.start", &[reference, ("action", Field::Text(action.as_str()))])?;
    let mut pictures = None;
    let mut check = || {
        if !context.is_single_attempt {
            wait_until_actionable(context, loaded, action, waited)?;
        }
        pictures = takes_lease.then(|| Pictures::before(context, loaded));
        let lease = if takes_lease { Some(context.take_lease()?) } else { None };
        let leased_at = context.now();
        let (resolved, report) = final_check(context, loaded, action, focus)?;
        Ok(Ready { resolved, report, lease, leased_at, pictures: None })
    };
    match check() {
        Ok(mut ready) => {
            ready.pictures = pictures;
            let facts = ready.report.facts();
            let mut fields = vec![reference, ("action", Field::Text(action.as_str()))];
            if let Fact::Map(entries) = &facts {
                fields.extend(entries.iter().map(|(name, fact)| (name.as_str(), Field::Fact(fact))));
            }
            context.trace("actionability.check.ok", &fields)?;
            Ok(ready)
        }
        Err(error) => {
            let mut fields = vec![reference];
            fields.extend(trace::failure(&error));
            // What was found goes before what went wrong with the trace.
            let _ = context.trace("actionability.check.error", &fields);
            if takes_lease {
                let pictures = pictures.unwrap_or_else(|| Pictures::before(context, loaded));
                let _ = pictures.end(context, loaded, None);
            }
            Err(error)
        }
    }
}

/// Writes to the trace what became of something that was sent.
pub(crate) fn trace_dispatched(
    context: &Context<'_>,
    reference: Option<&str>,
    action: Action,
    outcome: &Result<&[Step], &Error>,
) -> Result<()> {
    let mut fields: Vec<(&str, Field<'_>)> = Vec::new();
    fields.extend(reference.map(|reference| ("ref", Field::Text(reference))));
    fields.push(("action", Field::Text(action.as_str())));
    match outcome {
        Ok(steps) => {
            let result = dispatch_result(steps);
            fields.push(("result", Field::Fact(&result)));
            context.trace("action.dispatch.ok", &fields)
        }
        Err(error) => {
            fields.extend(trace::failure(error));
            fields.push(("delivery", Field::Text(error.get_delivery().as_str())));
            context.trace("action.dispatch.error", &fields)
        }
    }
}

/// What was done and what came of it, in our words.
fn dispatch_result(steps: &[Step]) -> Fact {
    let step = |step: &Step| {
        let mut entries = vec![
            ("label".to_owned(), step.label.into()),
            ("outcome".to_owned(), step.outcome.as_str().into()),
        ];
        if let Some(mechanism) = step.mechanism {
            entries.push(("mechanism".to_owned(), mechanism.as_str().into()));
        }
        if let Some(verified) = step.verified {
            entries.push(("verified".to_owned(), verified.into()));
        }
        Fact::Map(entries)
    };
    facts([
        ("delivery", delivery::summarize(steps).as_str().into()),
        ("steps", Fact::List(steps.iter().map(step).collect())),
    ])
}

fn details(waited: &Waited, contention: u64, held_ms: u64) -> Details {
    let mut entries = vec![(
        "auto_wait".to_owned(),
        facts([
            ("read_only_resolve_attempts", waited.resolve_attempts.into()),
            ("read_only_preflight_attempts", waited.preflight_attempts.into()),
            ("lease_contention_count", contention.into()),
            ("lease_hold_ms", held_ms.into()),
        ]),
    )];
    if waited.was_ambiguous {
        entries.push(("transient_ambiguity".to_owned(), Fact::Bool(true)));
    }
    Details(entries)
}

const fn has_post_state(action: Action) -> bool {
    matches!(
        action,
        Action::TypeText
            | Action::SetValue
            | Action::Clear
            | Action::Toggle
            | Action::Check
            | Action::Uncheck
            | Action::Expand
            | Action::Collapse
            | Action::Select
            | Action::ReplaceText
    )
}

/// Looks at the element until it can be acted on. Touches nothing.
fn wait_until_actionable(
    context: &Context<'_>,
    loaded: &Loaded,
    action: Action,
    waited: &mut Waited,
) -> Result<()> {
    let mut stability = Stability::default();
    let mut seen: Option<Blocked> = None;
    loop {
        waited.resolve_attempts += 1;
        let mut phase = "resolve";
        let looked = resolve::attempt(context, loaded, context.deadline).and_then(|resolved| {
            phase = "preflight";
            loaded.tell(context, &Ok(()))?;
            waited.preflight_attempts += 1;
            let report = look(context, &resolved, action, &mut stability)?;
            Ok((resolved, report))
        });
        let (last, pause) = match looked {
            Ok((resolved, report)) => {
                if report.is_actionable() {
                    return Ok(());
                }
                // Scrolling is tried under the lease; everything else has to pass on its own.
                if report.scrolling_may_help() && only_visibility_blocks(&report) {
                    return Ok(());
                }
                // So is raising its window.
                if raising_may_help(context, &resolved, &report) {
                    return Ok(());
                }
                let error =
                    report.error(&loaded.subject()).unwrap_or_else(|| Error::internal("nothing blocks"));
                if report.is_terminal() {
                    return Err(error);
                }
                let pause = if report.only_stability_blocks() { POLL_STABILITY } else { POLL };
                (Blocked { phase, at: context.now(), error, report: Some(report) }, pause)
            }
            Err(error) if error.is_retryable() || error.code() == ErrorCode::Timeout => {
                waited.was_ambiguous |= error.code() == ErrorCode::AmbiguousTarget;
                (Blocked { phase, at: context.now(), error, report: None }, POLL)
            }
            Err(error) => {
                if phase == "resolve" {
                    loaded.tell::<()>(context, &Err(error.clone()))?;
                }
                return Err(error);
            }
        };
        if !context.pause(pause) {
            let told = seen.filter(|seen| outlives(context, seen.at, &last.error)).unwrap_or(last);
            if told.phase == "resolve" {
                loaded.tell::<()>(context, &Err(told.error.clone()))?;
            }
            return Err(told.timed_out(context));
        }
        if !is_cut_off(&last.error) {
            seen = Some(last);
        }
    }
}

/// Whether a look ended for want of time or of an answer, and so tells nothing about what is there.
fn is_cut_off(error: &Error) -> bool {
    matches!(error.code(), ErrorCode::Timeout | ErrorCode::AppUnresponsive)
}

/// Whether what was seen at `seen_at` tells more than `error`, the end of a later look: the deadline cut that one off. An
/// application that was silent for half of the time since, and for [`PATIENCE`], hangs.
pub(crate) fn outlives(context: &Context<'_>, seen_at: Instant, error: &Error) -> bool {
    let patience = PATIENCE.max(context.deadline.budget() / 2);
    is_cut_off(error) && context.now().saturating_duration_since(seen_at) < patience
}

/// Why an element could not be acted on when it was last looked at.
struct Blocked {
    phase: &'static str,
    at: Instant,
    error: Error,
    report: Option<Report>,
}

impl Blocked {
    fn timed_out(self, context: &Context<'_>) -> Error {
        let mut last = vec![("phase".to_owned(), Fact::from(self.phase))];
        if let Some(Fact::Map(entries)) = self.report.as_ref().map(Report::facts) {
            last.extend(entries);
        } else {
            last.push(("code".to_owned(), Fact::from(self.error.code().as_str())));
            last.push(("message".to_owned(), self.error.message_fact()));
        }
        match self.error.code() {
            // A silent application is no matter of patience: its own code says more.
            ErrorCode::AppUnresponsive => return self.error,
            // Nor is a silent bus or display server.
            ErrorCode::Timeout if !self.error.is_retryable() => return self.error,
            // Nor are several that fit: the caller has to choose from the candidates.
            ErrorCode::AmbiguousTarget => {
                return self
                    .error
                    .detail("timeout_ms", context.deadline.budget().as_millis() as u64)
                    .detail("elapsed_ms", context.elapsed_ms())
                    .delivery(Delivery::NotDelivered);
            }
            _ => {}
        }
        let mut timeout = Error::new(
            ErrorCode::Timeout,
            format!("{}, still after {} ms", self.error.message(), context.elapsed_ms()),
        )
        .kind("actionability_timeout")
        .detail("timeout_ms", context.deadline.budget().as_millis() as u64)
        .detail("elapsed_ms", context.elapsed_ms())
        .detail("last_code", self.error.code().as_str())
        .detail("last_report", Fact::Map(last))
        .delivery(Delivery::NotDelivered);
        if let Some(hint) = self.error.get_hint() {
            timeout = timeout.hint(hint);
        }
        timeout
    }
}

/// Whether nothing but another window is in the way of the pointer, and not one that has to be answered first.
fn raising_may_help(context: &Context<'_>, resolved: &Resolved, report: &Report) -> bool {
    context.options.headed
        && matches!(modal_cover(context, resolved, report.action), Ok(None))
        && report.checks.iter().filter(|check| check.blocks()).all(|check| {
            let cover = check.occluder.as_ref().map(|occluder| occluder.role);
            matches!(cover, Some(Role::Window | Role::Dialog))
        })
}

fn only_visibility_blocks(report: &Report) -> bool {
    report.checks.iter().filter(|check| check.blocks()).all(|check| {
        matches!(check.name, actionability::CheckName::Visible | actionability::CheckName::Stable)
    })
}

/// All checks on an element that was just resolved; with samples and probes if a pointer is to be used.
fn look(
    context: &Context<'_>,
    resolved: &Resolved,
    action: Action,
    stability: &mut Stability,
) -> Result<Report> {
    let headed = context.options.headed;
    stability.sample(context.now(), resolved.node.bounds);
    let window = limits_of(resolved);
    let judge = |stability: &Stability| {
        actionability::check(&Situation { action, headed, node: Some(&resolved.node), window, stability })
    };
    let mut report = judge(stability);
    if report.route == Some(Route::Pointer) && report.only_stability_blocks() {
        // Three samples usually settle it; no need to resolve anew for each.
        for _ in 0..3 {
            if !context.pause(SAMPLE_INTERVAL) {
                break;
            }
            let bounds = match read(context, resolved, context.deadline)? {
                Some(node) => node.bounds,
                None => break,
            };
            stability.sample(context.now(), bounds);
        }
        report = judge(stability);
    }
    let bounds = resolved.node.bounds.unwrap_or_default();
    let mut aimed_at = window;
    if report.route == Some(Route::Pointer) {
        let displays = context.platform.displays(context.deadline)?;
        let displays: Vec<Rect> = displays.into_iter().map(|display| display.bounds).collect();
        aimed_at = report.add_displays(bounds, window, &displays).or(window);
    }
    if let Some(cover) = modal_cover(context, resolved, action)? {
        report.add_hit_test(&[(resolved.node.bounds.unwrap_or_default().center(), cover)]);
        return Ok(report);
    }
    if report.wants_hit_test() {
        let mut hits = Vec::new();
        for point in hit_points(bounds, aimed_at) {
            let hit =
                context.platform.hit_test(&resolved.handle, &resolved.window, point, context.deadline)?;
            let is_reached = hit == Hit::Target;
            hits.push((point, hit));
            if is_reached {
                break;
            }
        }
        report.add_hit_test(&hits);
    }
    Ok(report)
}

/// Where the element may be: its window, unless it is in a menu that reaches over the edge of it. Whether what is outside
/// can be seen was decided when it was read.
fn limits_of(resolved: &Resolved) -> Option<Rect> {
    let is_visible_outside = !resolved.node.states.has(State::Offscreen)
        && matches!((resolved.node.bounds, resolved.window.bounds), (Some(bounds), Some(window))
            if !bounds.is_empty() && window.intersection(&bounds).is_none());
    resolved.window.bounds.filter(|_| !is_visible_outside)
}

/// The dialog that keeps people from using this element, if there is one.
///
/// Accessibility interfaces reach behind modal dialogs; people do not, and applications do not expect it.
pub(crate) fn modal_cover(context: &Context<'_>, resolved: &Resolved, action: Action) -> Result<Option<Hit>> {
    if !action.requirements().enabled {
        return Ok(None);
    }
    if let Some(cover) = context.platform.dialog_over(&resolved.handle, &resolved.window, context.deadline)? {
        return Ok(Some(cover));
    }
    let is_open = |window: &&Window| {
        window.is_modal && window.visible != Some(false) && window.id != resolved.window.id
    };
    if resolved.window.is_modal {
        return Ok(None);
    }
    let dialog = resolved.windows.iter().find(is_open);
    Ok(dialog.map(|dialog| Hit::Other {
        role: Role::Dialog,
        name: Some(dialog.title.clone()).filter(|title| !title.is_empty()),
        bounds: dialog.bounds,
    }))
}

/// The element as it is now; `None` when it is gone.
///
/// # Errors
/// `APP_UNRESPONSIVE` when the application does not answer.
pub(crate) fn read(context: &Context<'_>, resolved: &Resolved, deadline: Deadline) -> Result<Option<Node>> {
    let handle = std::slice::from_ref(&resolved.handle);
    match context.platform.read(handle, &resolved.window, deadline)?.into_iter().next() {
        Some(Reading::Live(node)) => complete(context, *node).map(Some),
        Some(Reading::Gone) | None => Ok(None),
        Some(Reading::Unanswered) => {
            Err(Error::new(ErrorCode::AppUnresponsive, "the application stopped answering")
                .kind("app_unresponsive")
                .retryable(true))
        }
    }
}

/// An element with all of its text: reading it shows the beginning of a long one, which says nothing about the rest.
///
/// # Errors
/// Those of reading the text.
pub(crate) fn complete(context: &Context<'_>, mut node: Node) -> Result<Node> {
    if node.is_value_cut()
        && !node.states.has(State::Secure)
        && let Some(whole) = context.platform.text(&node.handle, &text::WHOLE, context.deadline)?
    {
        node.value = Some(whole.text);
    }
    Ok(node)
}

/// Under the lease: focus if that is allowed and needed, resolve again, check everything, scroll if that helps.
fn final_check(
    context: &Context<'_>,
    loaded: &Loaded,
    action: Action,
    focus: bool,
) -> Result<(Resolved, Report)> {
    let mut resolved = resolve::resolve(context, loaded)?;
    if focus {
        focus_window(context, &resolved.window)?;
        resolved = resolve::resolve(context, loaded)?;
    }
    let mut stability = Stability::default();
    let mut has_scrolled = false;
    let mut has_raised = false;
    let mut seen: Option<Blocked> = None;
    let told = |error: Error, seen: Option<Blocked>| match seen {
        Some(seen) if !context.is_single_attempt && outlives(context, seen.at, &error) => {
            seen.timed_out(context)
        }
        _ => error,
    };
    loop {
        let report = match look(context, &resolved, action, &mut stability) {
            Ok(report) => report,
            Err(error) => return Err(told(error, seen)),
        };
        if report.is_actionable() {
            return Ok((resolved, report));
        }
        let error = report.error(&loaded.subject()).unwrap_or_else(|| Error::internal("nothing blocks"));
        if report.scrolling_may_help() && !has_scrolled {
            has_scrolled = true;
            // A failure to scroll leaves the element where it is; the checks say so.
            if let Err(error) =
                context.platform.perform(&resolved.handle, &Operation::ScrollIntoView, context.deadline)
            {
                context.trace(
                    "ref.scroll_into_view.error",
                    &[
                        ("ref", Field::Text(&loaded.target.to_string())),
                        ("code", Field::Text(error.code().as_str())),
                        ("message", Field::Message(&error)),
                    ],
                )?;
            }
            context.pause(POLL_STABILITY);
        } else if focus && !has_raised && raising_may_help(context, &resolved, &report) {
            // It may have the focus and lie below another window all the same.
            has_raised = true;
            context.platform.window_operation(&resolved.window, WindowOperation::Focus, context.deadline)?;
            context.pause(POLL);
        } else {
            if context.is_single_attempt || report.is_terminal() {
                return Err(error);
            }
            let pause = if report.only_stability_blocks() { POLL_STABILITY } else { POLL };
            if !context.pause(pause) {
                let phase = "preflight";
                return Err(
                    Blocked { phase, at: context.now(), error, report: Some(report) }.timed_out(context)
                );
            }
        }
        seen = Some(Blocked { phase: "preflight", at: context.now(), error, report: Some(report) });
        resolved = match resolve::resolve(context, loaded) {
            Ok(resolved) => resolved,
            Err(error) => return Err(told(error, seen)),
        };
    }
}

/// Brings a window to the front and waits until it has the focus.
///
/// # Errors
/// `ACTION_FAILED` when it does not get it.
pub(crate) fn focus_window(context: &Context<'_>, window: &Window) -> Result<()> {
    let outcome = bring_to_front(context, window);
    trace_focus(context, window, outcome.is_ok())?;
    outcome
}

/// Writes to the trace whether a window got the focus.
pub(crate) fn trace_focus(context: &Context<'_>, window: &Window, ok: bool) -> Result<()> {
    context.trace(
        "input.focus_window",
        &[
            ("pid", Field::Number(window.pid.into())),
            ("window_id", Field::Text(&window.id)),
            ("ok", Field::Bool(ok)),
        ],
    )
}

fn bring_to_front(context: &Context<'_>, window: &Window) -> Result<()> {
    let has_focus = || -> Result<bool> {
        let windows = context.platform.windows(None, context.deadline)?;
        Ok(windows.iter().any(|live| live.id == window.id && live.pid == window.pid && live.is_focused))
    };
    if has_focus()? {
        return Ok(());
    }
    context.platform.window_operation(window, WindowOperation::Focus, context.deadline)?;
    let limit = context.deadline.within(context.now(), FOCUS_LIMIT);
    let mut confirmations = 0;
    while confirmations < 2 {
        if has_focus()? {
            confirmations += 1;
        } else {
            confirmations = 0;
        }
        if confirmations < 2 && !context.pause_until(limit, FOCUS_CONFIRM) {
            return Err(Error::new(
                ErrorCode::ActionFailed,
                format!("the window {:?} did not get the focus", window.title),
            )
            .hint("another window may be holding it; close dialogs and menus, then retry")
            .delivery(Delivery::NotDelivered));
        }
    }
    Ok(())
}
