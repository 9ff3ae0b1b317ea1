//! `wait`: until something is so.
//!
//! One mode a call: a time, an element, a window, a text, a menu, an event, a notification. Modes that ask what is so poll, how
//! often stands in the contract; events and notifications are listened to, so that what lives for a moment only is not missed.

use std::time::Duration;

use agent_desktop_core::action::Action;
use agent_desktop_core::actionability::{self, Situation, Stability};
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::platform::{DesktopWatch, Limits, NotificationEvent, Platform, SurfaceKind};
use agent_desktop_core::query::fold;
use agent_desktop_core::refs::{RefMap, RefTarget};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Node, NodeId, Tree};
use serde::{Deserialize, Serialize};

use super::is::{Question, ask};
use super::{Effects, Reply, Run};
use crate::act;
use crate::context::{Context, MAX_TIMEOUT_MS, OPERATION_MS, Options};
use crate::envelope::OneFact;
use crate::events::{EventData, Kind, Wanted};
use crate::notifications::{self, NotificationData};
use crate::observe::Target;
use crate::resolve::{self, Resolved};
use crate::targets;
use crate::wait_for::{Failures, MATCH_DEPTH, error_facts, is_passing};
use crate::wire::WindowData;

/// How long it is waited when nobody says, in milliseconds.
pub const WAIT_MS: u64 = 30_000;
/// Time between two looks, by mode.
pub(crate) const ELEMENT_POLL: Duration = Duration::from_millis(100);
pub(crate) const WINDOW_POLL: Duration = Duration::from_millis(100);
/// How long a window may be known to its application before the window system has it.
const COMING: Duration = Duration::from_secs(1);
pub(crate) const MENU_POLL: Duration = Duration::from_millis(50);
pub(crate) const TEXT_POLL: Duration = Duration::from_millis(200);
pub(crate) const MAX_TEXT_POLL: Duration = Duration::from_secs(1);
/// How long one attempt to find an element may take.
pub(crate) const RESOLVE: Duration = Duration::from_millis(750);

/// Wait for a time, an element, a window, a text, a menu, an event or a notification.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Wait {
    /// Just this many milliseconds.
    #[cfg_attr(feature = "clap", arg(value_name = "MS"))]
    pub ms: Option<u64>,
    /// Until something is so of the element of this ref.
    #[cfg_attr(feature = "clap", arg(long, value_name = "REF"))]
    pub element: Option<String>,
    /// Snapshot of an --element that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub snapshot: Option<String>,
    /// What must be so of it: exists, enabled, visible, actionable or value [default: exists].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PREDICATE"))]
    pub predicate: Option<String>,
    /// The value it must have, for --predicate value.
    #[cfg_attr(feature = "clap", arg(long, value_name = "VALUE", allow_hyphen_values = true))]
    pub value: Option<String>,
    /// What it must be ready for, for --predicate actionable: click, type, set-value or clear [default: click].
    #[cfg_attr(feature = "clap", arg(long, value_name = "ACTION"))]
    pub action: Option<String>,
    /// Until this happens: window-opened, window-closed, app-launched, app-terminated, focus-changed, surface-appeared or
    /// surface-dismissed.
    #[cfg_attr(feature = "clap", arg(long, value_name = "EVENT"))]
    pub event: Option<String>,
    /// With --event: only of the window with this id.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub window_id: Option<String>,
    /// Until a window with this text in its title is there; case does not matter. With --event: only of the window with
    /// exactly this title.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TITLE"))]
    pub window: Option<String>,
    /// Until this text is in the window; with --notification, in the notification.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub text: Option<String>,
    /// Exactly so many elements must have the text.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub count: Option<usize>,
    /// Until a menu is open.
    #[cfg_attr(feature = "clap", arg(long))]
    pub menu: bool,
    /// Until no menu is open.
    #[cfg_attr(feature = "clap", arg(long))]
    pub menu_closed: bool,
    /// Until a notification comes that was not there before.
    #[cfg_attr(feature = "clap", arg(long))]
    pub notification: bool,
    /// The application whose window, text, menu or event is meant; with --notification, a part of the sender's name.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// Give up after this many milliseconds; 0: one look [default: 30000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Predicate {
    Exists,
    Enabled,
    Visible,
    Actionable(Action),
    Value,
}

enum Mode<'a> {
    Sleep(u64),
    Element(&'a str, Predicate),
    Window(&'a str),
    Text(&'a str),
    Menu { open: bool },
    Event(Wanted<'a>),
    Notification,
}

/// What came true.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum WaitReply {
    /// The time is over.
    Slept {
        /// How long it was.
        waited_ms: u64,
    },
    /// It is so of the element.
    Element {
        /// Always true.
        found: bool,
        /// As given.
        #[serde(rename = "ref")]
        reference: String,
        /// As given.
        predicate: &'static str,
        /// What was seen.
        observed: Observation,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// The window is there.
    Window {
        /// Always true.
        found: bool,
        /// The window.
        window: Box<WindowData>,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// The text is there.
    Text {
        /// Always true.
        found: bool,
        /// As given.
        text: String,
        /// The first element that has it, if it can be operated.
        #[serde(rename = "ref")]
        reference: Option<String>,
        /// Its role.
        role: Option<&'static str>,
        /// The snapshot the ref belongs to.
        snapshot_id: String,
        /// With `--count`: how many have it.
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<usize>,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// The menu is open, or closed.
    Menu {
        /// Always true.
        found: bool,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// It happened.
    Event {
        /// Always true.
        found: bool,
        /// What happened.
        event: Box<EventReply>,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// A notification came.
    Notification {
        /// Always `notification`.
        condition: &'static str,
        /// Always true.
        matched: bool,
        /// What came.
        notification: NotificationData,
        /// How long it took.
        elapsed_ms: u64,
    },
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct EventReply(EventData);

/// What was seen of an element.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation(Fact);

impl Serialize for Observation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        OneFact(&self.0).serialize(serializer)
    }
}

impl Reply for WaitReply {
    fn outline(&self) -> Option<String> {
        Some(match self {
            WaitReply::Slept { waited_ms } => format!("waited {waited_ms} ms"),
            WaitReply::Window { window, elapsed_ms, .. } => format!("{} after {elapsed_ms} ms", window.outline()),
            WaitReply::Text { reference: Some(reference), elapsed_ms, .. } => {
                format!("found {reference} after {elapsed_ms} ms")
            }
            WaitReply::Notification { notification, elapsed_ms, .. } => {
                format!("{} after {elapsed_ms} ms", notification.outline())
            }
            WaitReply::Event { event, elapsed_ms, .. } => format!("{} after {elapsed_ms} ms", event.0.outline()),
            WaitReply::Element { elapsed_ms, .. }
            | WaitReply::Text { elapsed_ms, .. }
            | WaitReply::Menu { elapsed_ms, .. } => format!("found after {elapsed_ms} ms"),
        })
    }
}

impl Wait {
    fn mode(&self) -> Result<Mode<'_>> {
        let predicate = self.predicate()?;
        let mut modes = Vec::new();
        modes.extend(self.ms.map(Mode::Sleep));
        modes.extend(self.element.as_deref().map(|element| Mode::Element(element, predicate)));
        // Of an event it only says of which window.
        modes.extend(self.window.as_deref().filter(|_| self.event.is_none()).map(Mode::Window));
        modes.extend(self.wanted()?.map(Mode::Event));
        // Of a notification it only says which.
        modes.extend(self.text.as_deref().filter(|_| !self.notification).map(Mode::Text));
        modes.extend(self.menu.then_some(Mode::Menu { open: true }));
        modes.extend(self.menu_closed.then_some(Mode::Menu { open: false }));
        modes.extend(self.notification.then_some(Mode::Notification));
        match (modes.pop(), modes.is_empty()) {
            (Some(mode), true) => Ok(mode),
            _ => Err(Error::invalid(
                "wait needs exactly one of MS, --element, --window, --text, --menu, --menu-closed, --event and --notification",
            )),
        }
    }

    fn wanted(&self) -> Result<Option<Wanted<'_>>> {
        let Some(event) = &self.event else { return Ok(None) };
        Ok(Some(Wanted {
            kind: Kind::parse(event)?,
            app: self.app.as_deref(),
            window_id: self.window_id.as_deref(),
            title: self.window.as_deref(),
        }))
    }

    /// Begins to watch for what this will wait for, if that is an event. What cannot be watched now is told when it waits.
    pub(super) fn begin_watch(&self, context: &Context<'_>, platform: &dyn Platform) -> Option<Box<dyn DesktopWatch>> {
        let deadline = context.within(Duration::from_millis(OPERATION_MS)).deadline;
        self.wanted().ok()??.begin(context, platform, deadline).ok()
    }

    fn event(&self, context: &Context<'_>, wanted: &Wanted<'_>) -> Result<WaitReply> {
        let begun = context.watch.and_then(|watch| watch.borrow_mut().take());
        let mut watch = match begun {
            Some(watch) => watch,
            None => wanted.begin(
                context,
                context.platform,
                context.within(Duration::from_millis(OPERATION_MS)).deadline,
            )?,
        };
        let limit =
            if context.is_single_attempt { Duration::ZERO } else { context.deadline.remaining(context.now()) };
        if let Some(event) = wanted.wait(&mut *watch, context.deadline.within(context.now(), limit))? {
            let event = Box::new(EventReply(event));
            return Ok(WaitReply::Event { found: true, event, elapsed_ms: context.elapsed_ms() });
        }
        let counts = watch.counts();
        let counted = [
            ("windows", counts.windows.into()),
            ("apps", counts.apps.into()),
            ("surfaces", counts.surfaces.into()),
        ];
        let mut error = self
            .timeout_error(context, &format!("no {} was seen", wanted.kind.word()))
            .detail("predicate", "event")
            .detail("event", wanted.kind.word())
            .detail("baseline_counts", facts(counted))
            .hint("it counts what happens while it waits, in a batch also during the entry before it; look with list-windows what is there");
        if let Some(app) = &self.app {
            error = error.detail("app", app.clone());
        }
        Err(error)
    }

    fn predicate(&self) -> Result<Predicate> {
        let action = match self.action.as_deref() {
            None | Some("click") => Action::Click,
            Some("type") => Action::TypeText,
            Some("set-value") => Action::SetValue,
            Some("clear") => Action::Clear,
            Some(_) => return Err(Error::invalid("--action is click, type, set-value or clear")),
        };
        Ok(match self.predicate.as_deref() {
            None | Some("exists") => Predicate::Exists,
            Some("enabled") => Predicate::Enabled,
            Some("visible") => Predicate::Visible,
            Some("actionable") => Predicate::Actionable(action),
            Some("value") => Predicate::Value,
            Some(_) => {
                return Err(Error::invalid("--predicate is exists, enabled, visible, actionable or value"));
            }
        })
    }

    fn timeout_error(&self, context: &Context<'_>, what: &str) -> Error {
        let budget = if context.is_single_attempt { 0 } else { context.deadline.budget().as_millis() as u64 };
        Error::new(ErrorCode::Timeout, format!("{what} after {budget} ms"))
            .kind("wait_timeout")
            .detail("timeout_ms", budget)
            .delivery(Delivery::NotDelivered)
            .hint(if self.timeout.is_some() {
                "allow more time with --timeout, or look with snapshot"
            } else {
                "look with snapshot what is there instead"
            })
    }

    fn element(&self, context: &Context<'_>, reference: &str, predicate: Predicate) -> Result<WaitReply> {
        let stored = resolve::load(context, reference, self.snapshot.as_deref())?;
        let word = predicate.as_str();
        let mut stability = Stability::default();
        let mut last_error;
        let mut last_observed = None;
        loop {
            let attempt = context.deadline.within(context.now(), RESOLVE);
            match resolve::attempt(context, &stored, attempt) {
                Ok(resolved) => {
                    stored.tell(context, &Ok(()))?;
                    stability.sample(context.now(), resolved.node.bounds);
                    let (is_so, observed) = self.look(context, predicate, &resolved, &stability);
                    if is_so {
                        return Ok(WaitReply::Element {
                            found: true,
                            reference: reference.to_owned(),
                            predicate: word,
                            observed: Observation(observed),
                            elapsed_ms: context.elapsed_ms(),
                        });
                    }
                    last_observed = Some(observed);
                    last_error = None;
                }
                Err(error) if error.is_retryable() => last_error = Some(error),
                Err(error) => {
                    stored.tell::<()>(context, &Err(error.clone()))?;
                    return Err(error);
                }
            }
            if !context.poll(ELEMENT_POLL) {
                if let Some(error) = &last_error {
                    stored.tell::<()>(context, &Err(error.clone()))?;
                }
                let mut error = self
                    .timeout_error(context, &predicate.negation(&stored.subject()))
                    .detail("predicate", word)
                    .detail("ref", reference.to_owned());
                if let Some(observed) = last_observed {
                    error = error.detail("last_observed", observed);
                }
                return Err(with_last(error, last_error.as_ref()));
            }
        }
    }

    /// Whether it is so, and what was seen.
    fn look(
        &self,
        context: &Context<'_>,
        predicate: Predicate,
        resolved: &Resolved,
        stability: &Stability,
    ) -> (bool, Fact) {
        let node = &resolved.node;
        let truth = |question: Question, word: &'static str| {
            let truth = ask(node, question);
            let observed = facts([(word, truth.result.into()), ("applicable", truth.applicable.into())]);
            (truth.result && truth.applicable, observed)
        };
        match predicate {
            Predicate::Exists => (true, facts([("exists", true.into())])),
            Predicate::Enabled => truth(Question::Enabled, "enabled"),
            Predicate::Visible => truth(Question::Visible, "visible"),
            Predicate::Actionable(action) => {
                let situation = Situation {
                    action,
                    headed: false,
                    node: Some(node),
                    window: resolved.window.bounds,
                    stability,
                };
                let mut report = actionability::check(&situation);
                // A dialog that has to be answered first covers it for every action.
                if let Ok(Some(cover)) = act::modal_cover(context, resolved, action) {
                    report.add_hit_test(&[(node.bounds.unwrap_or_default().center(), cover)]);
                }
                (report.is_actionable(), report.facts())
            }
            Predicate::Value => {
                let expected = self.value.as_deref().unwrap_or_default();
                // A text without characters has no value, and is equal to none.
                let empty = (node.text_length == Some(0)).then_some("");
                let live = node.value.as_deref().or(empty).filter(|_| !node.states.has(State::Secure));
                let matched = live == Some(expected);
                let observed = facts([
                    ("matched", matched.into()),
                    ("value_present", live.is_some().into()),
                    ("value_chars", live.map_or(0, |text| text.chars().count()).into()),
                    ("expected_chars", expected.chars().count().into()),
                ]);
                (matched, observed)
            }
        }
    }

    fn window(&self, context: &Context<'_>, title: &str) -> Result<WaitReply> {
        let folded = fold(title);
        let mut last_error;
        let mut came = None;
        loop {
            match self.windows(&attempt(context)) {
                Ok(windows) => {
                    let found = windows.into_iter().find(|window| fold(&window.title).contains(&folded));
                    // Until the window system has it, a window goes by an id that it will not keep.
                    let is_coming = found.as_ref().is_some_and(|window| window.visible.is_none());
                    let since = *came.get_or_insert_with(|| context.now());
                    if is_coming
                        && context.now().saturating_duration_since(since) < COMING
                        && context.poll(WINDOW_POLL)
                    {
                        continue;
                    }
                    if let Some(window) = found {
                        return Ok(WaitReply::Window { found: true, window: Box::new(window), elapsed_ms: context.elapsed_ms() });
                    }
                    last_error = None;
                }
                Err(error) if is_passing(&error) => last_error = Some(error),
                Err(error) => return Err(error),
            }
            if !context.poll(WINDOW_POLL) {
                let error = self
                    .timeout_error(context, "no window has this title")
                    .detail("predicate", "window")
                    .detail("title", title.to_owned());
                return Err(with_last(error, last_error.as_ref()));
            }
        }
    }

    fn windows(&self, context: &Context<'_>) -> Result<Vec<WindowData>> {
        let windows = match &self.app {
            None => context.platform.windows(None, context.deadline)?,
            Some(name) => {
                let mut windows = Vec::new();
                for app in targets::apps_named(context, name)? {
                    windows.extend(context.platform.windows(Some(&app), context.deadline)?);
                }
                windows
            }
        };
        Ok(windows.iter().map(WindowData::from).collect())
    }

    fn text(&self, context: &Context<'_>, text: &str) -> Result<WaitReply> {
        let folded = fold(text);
        let target = Target::new(self.app.as_deref(), None, None)?;
        let limits = Limits { max_depth: MATCH_DEPTH, ..Limits::default() };
        let mut last_error;
        let mut pause = TEXT_POLL;
        let mut counted = None;
        let mut failures = Failures::default();
        loop {
            match target.observe(&attempt(context), &limits) {
                Ok(observed) => {
                    let tree = &observed.observation.tree;
                    let found: Vec<NodeId> =
                        tree.iter().filter(|(id, node)| has_text(node, &folded) && !repeats(tree, *id)).map(|(id, _)| id).collect();
                    let is_so = match self.count {
                        // Fewer than there are must not pass for the number asked for.
                        Some(count) => found.len() == count && observed.observation.stopped.is_none(),
                        None => !found.is_empty(),
                    };
                    if is_so {
                        let (map, issued) = RefMap::allocate_for(tree, &found, &observed.allocation(true));
                        let snapshot_id = context.store.save(&map)?;
                        let first = meant(tree, &found);
                        let number = first.and_then(|id| issued.number(id));
                        return Ok(WaitReply::Text {
                            found: true,
                            text: text.to_owned(),
                            reference: number.map(|number| RefTarget::new(&*snapshot_id, number).to_string()),
                            role: first.map(|id| tree.node(id).role.as_str()),
                            snapshot_id,
                            count: self.count.map(|_| found.len()),
                            elapsed_ms: context.elapsed_ms(),
                        });
                    }
                    last_error = None;
                    counted = Some(found.len());
                    failures.end();
                }
                Err(error) if failures.may_pass(context.now(), &error) => last_error = Some(error),
                Err(error) => return Err(error),
            }
            if !context.poll(pause) {
                let what = match (&last_error, self.count, counted) {
                    (Some(_), ..) => "it could not be seen whether the text is there".to_owned(),
                    (None, Some(count), Some(found)) => format!("the text is there {found} times, not {count}"),
                    _ => "the text is not there".to_owned(),
                };
                let mut error = self
                    .timeout_error(context, &what)
                    .detail("predicate", "text")
                    .detail("text_chars", text.chars().count());
                if let Some(count) = self.count {
                    error = error.detail("expected_count", count);
                    if let Some(found) = counted {
                        error = error.detail("count", found);
                    }
                }
                return Err(with_last(error, last_error.as_ref()));
            }
            pause = (pause * 2).min(MAX_TEXT_POLL);
        }
    }

    fn menu(&self, context: &Context<'_>, open: bool) -> Result<WaitReply> {
        let mut last_error;
        let mut failures = Failures::default();
        loop {
            let attempt = attempt(context);
            let surfaces = targets::app_or_focused(&attempt, self.app.as_deref())
                .and_then(|app| attempt.platform.surfaces(&app, Some(SurfaceKind::Menu), attempt.deadline));
            match surfaces {
                Ok(surfaces) => {
                    let is_open = surfaces.iter().any(|surface| matches!(surface.kind, "menu" | "context_menu"));
                    if is_open == open {
                        return Ok(WaitReply::Menu { found: true, elapsed_ms: context.elapsed_ms() });
                    }
                    failures.end();
                    last_error = None;
                }
                // A menu of an application that is gone is closed.
                Err(error) if !open && error.code() == ErrorCode::AppNotFound => {
                    return Ok(WaitReply::Menu { found: true, elapsed_ms: context.elapsed_ms() });
                }
                Err(error) if failures.may_pass(context.now(), &error) => last_error = Some(error),
                Err(error) => return Err(error),
            }
            if !context.poll(MENU_POLL) {
                let what = match (&last_error, open) {
                    (Some(_), _) => "it could not be seen whether a menu is open",
                    (None, true) => "no menu is open",
                    (None, false) => "a menu is still open",
                };
                return Err(with_last(self.timeout_error(context, what).kind("deadline"), last_error.as_ref()));
            }
        }
    }

    fn notification(&self, context: &Context<'_>) -> Result<WaitReply> {
        let mut watch = context.platform.watch_notifications(context.within(Duration::from_millis(OPERATION_MS)).deadline)?;
        // After it: a service that starts between the two is heard of.
        notifications::need_service(context)?;
        let limit = if context.is_single_attempt { Duration::ZERO } else { context.deadline.remaining(context.now()) };
        let limit = context.deadline.within(context.now(), limit);
        loop {
            match watch.next(limit)? {
                Some(NotificationEvent::Shown(notification)) => {
                    let texts = [&*notification.title, &*notification.body, &*notification.app_name];
                    let is_meant = notifications::contains(self.app.as_deref(), &texts[2..])
                        && notifications::contains(self.text.as_deref(), &texts);
                    if is_meant {
                        return Ok(WaitReply::Notification {
                            condition: "notification",
                            matched: true,
                            notification: (&notification).into(),
                            elapsed_ms: context.elapsed_ms(),
                        });
                    }
                }
                Some(NotificationEvent::ServiceChanged(false)) => return Err(notifications::no_service()),
                Some(_) => {}
                None => {
                    let mut error = self
                        .timeout_error(context, "no such notification came")
                        .detail("predicate", "notification")
                        .hint("it counts what comes while it waits; list-notifications shows what came before, in a session");
                    if let Some(app) = &self.app {
                        error = error.detail("app", app.clone());
                    }
                    if let Some(text) = &self.text {
                        error = error.detail("text_chars", text.chars().count());
                    }
                    return Err(error);
                }
            }
        }
    }
}

impl Predicate {
    /// That it is not so.
    fn negation(self, subject: &str) -> String {
        match self {
            Predicate::Exists => format!("{subject} is not there"),
            Predicate::Value => format!("{subject} does not have this value"),
            Predicate::Actionable(action) => format!("{subject} is not ready to {}", action.as_str()),
            other => format!("{subject} is not {}", other.as_str()),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Predicate::Exists => "exists",
            Predicate::Enabled => "enabled",
            Predicate::Visible => "visible",
            Predicate::Actionable(_) => "actionable",
            Predicate::Value => "value",
        }
    }
}

/// One look must not eat the whole wait.
fn attempt<'a>(context: &Context<'a>) -> Context<'a> {
    context.within(Duration::from_millis(OPERATION_MS))
}

fn with_last(error: Error, last: Option<&Error>) -> Error {
    match last {
        Some(last) => error.detail("last_error", error_facts(last)),
        None => error,
    }
}

/// Whether a text only says again what the control around it is called: a button and the label in it are one thing.
fn repeats(tree: &Tree, id: NodeId) -> bool {
    let node = tree.node(id);
    node.role == Role::StaticText
        && tree.ancestors(id).take(3).any(|above| {
            let above = tree.node(above);
            above.role.is_interactive() && above.name == node.name
        })
}

fn has_text(node: &Node, folded: &str) -> bool {
    [&node.name, &node.value, &node.description].into_iter().flatten().any(|text| fold(text).contains(folded))
}

/// The element that is meant by the first place where the text is: of a window, a button in it and the text in that, all
/// of which have the text, the innermost that can be operated, else the innermost.
fn meant(tree: &Tree, found: &[NodeId]) -> Option<NodeId> {
    let mut chain = vec![*found.first()?];
    for &id in &found[1..] {
        match chain.last() {
            Some(&last) if tree.subtree(last).contains(&id) => chain.push(id),
            _ => break,
        }
    }
    chain.iter().rev().find(|&&id| tree.node(id).is_operable()).or(chain.last()).copied()
}

impl Run for Wait {
    type Reply = WaitReply;

    fn effects(&self, table: Effects) -> Effects {
        // Time passes everywhere.
        // Notifications are no part of an accessibility tree.
        // Windows come and go without an accessibility bus as well.
        let needs_none = match self.mode() {
            Ok(Mode::Sleep(_) | Mode::Notification) => true,
            Ok(Mode::Event(wanted)) => !wanted.kind.needs_app(),
            _ => false,
        };
        if needs_none { Effects::NONE } else { table }
    }

    fn check(&self, _: &Options) -> Result<()> {
        let mode = self.mode()?;
        if self.element.is_none() && (self.predicate.is_some() || self.value.is_some() || self.snapshot.is_some()) {
            return Err(Error::invalid("--predicate, --value and --snapshot need --element"));
        }
        let predicate = self.predicate()?;
        if self.action.is_some() && !matches!(predicate, Predicate::Actionable(_)) {
            return Err(Error::invalid("--action needs --predicate actionable"));
        }
        if self.value.is_some() != (predicate == Predicate::Value) {
            return Err(Error::invalid("--value and --predicate value need each other"));
        }
        if let Some(wanted) = self.wanted()? {
            if wanted.kind.needs_app() && self.app.is_none() {
                return Err(Error::invalid("surface-appeared and surface-dismissed need --app"));
            }
            if !wanted.kind.is_of_windows() && (self.window.is_some() || self.window_id.is_some()) {
                return Err(Error::invalid("--window and --window-id go with window-opened, window-closed and focus-changed"));
            }
        } else if self.window_id.is_some() {
            return Err(Error::invalid("--window-id needs --event"));
        }
        if self.count.is_some() && (self.text.is_none() || self.notification) {
            return Err(Error::invalid("--count needs --text, and not --notification"));
        }
        match mode {
            Mode::Sleep(ms) if ms > MAX_TIMEOUT_MS => {
                Err(Error::invalid(format!("the time is longer than {MAX_TIMEOUT_MS} ms")))
            }
            Mode::Window(text) | Mode::Text(text) if fold(text).is_empty() => Err(Error::invalid("the text is blank")),
            Mode::Element(reference, _) => RefTarget::parse(reference, self.snapshot.as_deref()).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<WaitReply> {
        match self.mode()? {
            Mode::Sleep(ms) => {
                let asked = Duration::from_millis(ms);
                let left = context.outer.map_or(asked, |outer| outer.remaining(context.now()));
                context.platform.sleep(asked.min(left));
                if left < asked {
                    return Err(Error::new(ErrorCode::Timeout, "the time of the batch ended this wait")
                        .kind("batch_deadline")
                        .hint("give the batch a longer --timeout-ms")
                        .delivery(Delivery::NotDelivered));
                }
                Ok(WaitReply::Slept { waited_ms: ms })
            }
            Mode::Element(reference, predicate) => self.element(context, reference, predicate),
            Mode::Window(title) => self.window(context, title),
            Mode::Text(text) => self.text(context, text),
            Mode::Menu { open } => self.menu(context, open),
            Mode::Event(wanted) => self.event(context, &wanted),
            Mode::Notification => self.notification(context),
        }
    }
}
