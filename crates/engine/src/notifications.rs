//! Notifications of a session: a process that listens while the session runs, and the journal that it keeps.
//!
//! Desktops tell who listens what comes, and nobody what came before. So a session has a listener from its start to its
//! end, and commands read its journal. Decided here: what the journal holds, how it is known that somebody still listens,
//! and which notification an index means. An index is the number of a notification within its session: it never means
//! another one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

use agent_desktop_core::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::outline::{LINE_TEXT, quote};
use agent_desktop_core::platform::{
    Notification, NotificationAction, NotificationEnd, NotificationEvent, Platform,
};
use agent_desktop_core::query::fold;
use agent_desktop_core::tree::Handle;
use serde::{Deserialize, Serialize};

use crate::audit;
use crate::context::{Context, Options};
use crate::guard::MASK;
use crate::log;
use crate::private_files::Directory;
use crate::session::{self, unix_ms};
use crate::store::Store;
use crate::trace::{self, Field};

/// Notifications that a journal keeps.
pub(crate) const KEPT: usize = 200;
/// Bytes that a journal may have.
pub(crate) const MAX_JOURNAL: usize = 4 * 1024 * 1024;
/// How often a listener looks whether its session has ended.
pub(crate) const SESSION_POLL: Duration = Duration::from_secs(1);
/// How long a session waits for its listener to begin.
pub(crate) const START: Duration = Duration::from_secs(3);
/// How long the journal may take to have what was just done, and how often it is looked at.
pub(crate) const CATCH_UP: Duration = Duration::from_millis(500);
pub(crate) const CATCH_UP_POLL: Duration = Duration::from_millis(25);
/// Events that are taken together before the journal is written.
const BATCH: usize = 100;
const JOURNAL: &str = "notifications.json";
/// Held by the listener as long as it listens.
const LISTENER: &str = "notifications.lock";

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationState {
    /// It is shown, or waits to be.
    Open,
    /// Its time was over.
    Expired,
    /// A person took it away.
    Dismissed,
    /// A program took it away, or its service ended.
    Closed,
    /// Nobody was told, or nobody listens any more.
    Unknown,
}

impl NotificationState {
    /// The word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            NotificationState::Open => "open",
            NotificationState::Expired => "expired",
            NotificationState::Dismissed => "dismissed",
            NotificationState::Closed => "closed",
            NotificationState::Unknown => "unknown",
        }
    }

    /// Whether somebody or something took it away on purpose.
    pub(crate) const fn was_taken_away(self) -> bool {
        matches!(self, NotificationState::Dismissed | NotificationState::Closed)
    }
}

/// A notification, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) index: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
    pub(crate) app_name: String,
    pub(crate) title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) body: String,
    /// Keys and labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    actions: Vec<(String, String)>,
    pub(crate) state: NotificationState,
    pub(crate) shown_at: u64,
}

impl Entry {
    pub(crate) fn notification(&self) -> Notification {
        let action =
            |(key, label): &(String, String)| NotificationAction { key: key.clone(), label: label.clone() };
        Notification {
            handle: self.handle.as_deref().map(Handle::new),
            app_name: self.app_name.clone(),
            title: self.title.clone(),
            body: self.body.clone(),
            actions: self.actions.iter().map(action).collect(),
        }
    }

    /// By what it is operated.
    ///
    /// # Errors
    /// `NOTIFICATION_NOT_FOUND` when it is not open.
    pub(crate) fn open_handle(&self) -> Result<Handle> {
        match (&self.handle, self.state) {
            (Some(handle), NotificationState::Open) => Ok(Handle::new(handle.as_str())),
            _ => Err(not_found("notification_closed", "the notification is no longer open")
                .detail("state", self.state.as_str())),
        }
    }
}

/// What a listener has heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// When it began to listen, Unix milliseconds.
    pub(crate) since: u64,
    /// The index of the next notification.
    next: u64,
    /// The oldest first.
    pub(crate) entries: Vec<Entry>,
}

impl Journal {
    fn new(since: u64) -> Journal {
        Journal { since, next: 1, entries: Vec::new() }
    }

    fn apply(&mut self, event: NotificationEvent, now: u64) {
        match event {
            NotificationEvent::Shown(notification) => self.show(notification, now),
            NotificationEvent::Ended(handle, end) => {
                let state = match end {
                    NotificationEnd::Expired => NotificationState::Expired,
                    NotificationEnd::Dismissed => NotificationState::Dismissed,
                    NotificationEnd::Closed => NotificationState::Closed,
                };
                if let Some(entry) = self.open(handle.as_str()) {
                    entry.state = state;
                }
            }
            NotificationEvent::ServiceChanged(_) => {
                for entry in self.entries.iter_mut().filter(|entry| entry.state == NotificationState::Open) {
                    entry.state = NotificationState::Closed;
                }
            }
        }
    }

    /// The open one with this handle. Services use numbers again.
    fn open(&mut self, handle: &str) -> Option<&mut Entry> {
        let is_it = |entry: &&mut Entry| {
            entry.state == NotificationState::Open && entry.handle.as_deref() == Some(handle)
        };
        self.entries.iter_mut().rev().find(is_it)
    }

    fn show(&mut self, notification: Notification, now: u64) {
        let handle = notification.handle.map(|handle| handle.as_str().to_owned());
        let replaced = handle.as_deref().and_then(|handle| self.open(handle)).map(|entry| entry.index);
        let index = replaced.unwrap_or(self.next);
        let state = if handle.is_some() { NotificationState::Open } else { NotificationState::Unknown };
        let entry = Entry {
            index,
            handle,
            app_name: notification.app_name,
            title: notification.title,
            body: notification.body,
            actions: notification.actions.into_iter().map(|action| (action.key, action.label)).collect(),
            state,
            shown_at: now,
        };
        if let Some(old) = self.entries.iter_mut().find(|old| Some(old.index) == replaced) {
            *old = entry;
            return;
        }
        self.next += 1;
        self.entries.push(entry);
        let surplus = self.entries.len().saturating_sub(KEPT);
        self.entries.drain(..surplus);
    }

    /// Replaces the file. What does not fit goes, the oldest first.
    fn write(&mut self, directory: &Directory) -> Result<()> {
        loop {
            let text = serde_json::to_vec(self).map_err(|error| {
                Error::internal("the journal cannot be written as JSON").platform_detail(error.to_string())
            })?;
            if text.len() <= MAX_JOURNAL || self.entries.is_empty() {
                return directory.write(JOURNAL, &text, directory, false);
            }
            self.entries.drain(..self.entries.len().div_ceil(4));
        }
    }
}

/// What is known of the notifications of a session.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) journal: Journal,
    /// Whether somebody still listens: then the journal has everything since it began.
    pub(crate) is_listening: bool,
}

impl Known {
    /// What the journal of a session says; `None`: nobody ever listened.
    fn read(directory: &Directory) -> Result<Option<Known>> {
        // In this order: who ends between the two looks has written before.
        let is_listening = directory.is_held(LISTENER);
        let Some(text) = directory.read(JOURNAL, MAX_JOURNAL)? else { return Ok(None) };
        let mut journal: Journal = serde_json::from_slice(&text).map_err(|error| {
            Error::internal("the journal of notifications cannot be read")
                .platform_detail(error.to_string())
                .hint("start another session")
                .delivery(Delivery::NotDelivered)
        })?;
        if !is_listening {
            for entry in journal.entries.iter_mut().filter(|entry| entry.state == NotificationState::Open) {
                entry.state = NotificationState::Unknown;
            }
        }
        Ok(Some(Known { journal, is_listening }))
    }

    /// What is known in the selected session; of what the policy file denies, without the words.
    ///
    /// # Errors
    /// `INTERNAL` when the journal cannot be read.
    pub(crate) fn of(context: &Context<'_>) -> Result<Option<Known>> {
        let Some(session) = context.session else { return Ok(None) };
        let mut known = Known::read(&session.directory)?;
        for entry in known.iter_mut().flat_map(|known| &mut known.journal.entries) {
            if context.rules.app(&[&entry.app_name], &[]).is_some() {
                MASK.clone_into(&mut entry.title);
                entry.body.clear();
                entry.actions.clear();
            }
        }
        Ok(known)
    }

    /// The same where something is to be done: somebody has to listen.
    ///
    /// # Errors
    /// `NOTIFICATION_NOT_FOUND` of kind `no_notification_listener`.
    pub(crate) fn needed(context: &Context<'_>) -> Result<Known> {
        Known::of(context)?.filter(|known| known.is_listening).ok_or_else(|| {
            not_found("no_notification_listener", "no notification is known: nobody listens in this session")
                .hint(START_A_SESSION)
        })
    }

    pub(crate) fn entry(&self, index: u64) -> Option<&Entry> {
        self.journal.entries.iter().find(|entry| entry.index == index)
    }
}

/// What to do where nobody listens.
pub(crate) const START_A_SESSION: &str = "what is shown is known only from the moment at which somebody listens: session start, then pass its id with --session; wait --notification needs no session";

fn not_found(kind: &'static str, message: &'static str) -> Error {
    Error::new(ErrorCode::NotificationNotFound, message).kind(kind).delivery(Delivery::NotDelivered)
}

/// Refuses where nobody shows notifications.
///
/// # Errors
/// `PLATFORM_NOT_SUPPORTED` of kind `no_notification_service`, and those of the platform.
pub(crate) fn need_service(context: &Context<'_>) -> Result<()> {
    if context.platform.has_notification_service(context.deadline)? { Ok(()) } else { Err(no_service()) }
}

pub(crate) fn no_service() -> Error {
    Error::new(ErrorCode::PlatformNotSupported, "nothing on this desktop shows notifications")
        .kind("no_notification_service")
        .hint("start a notification service, such as dunst; agent-desktop starts none")
        .delivery(Delivery::NotDelivered)
}

/// Which notification is meant, by its index and what it must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) index: u64,
    pub(crate) app: Option<&'a str>,
    pub(crate) expected_app: Option<&'a str>,
    pub(crate) expected_title: Option<&'a str>,
}

impl Target<'_> {
    /// # Errors
    /// `INVALID_ARGS`.
    pub(crate) fn check(&self) -> Result<()> {
        if self.index == 0 {
            return Err(Error::invalid("an index is 1 or more"));
        }
        let is_given = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
        if !is_given(self.expected_app) && !is_given(self.expected_title) {
            return Err(Error::invalid("--expected-app or --expected-title is needed").hint(
                "say what it is, as list-notifications shows it: an index alone may name another one by now",
            ));
        }
        Ok(())
    }

    /// The notification, if it is open and as expected.
    ///
    /// # Errors
    /// `NOTIFICATION_NOT_FOUND`.
    pub(crate) fn find<'k>(&self, known: &'k Known) -> Result<&'k Entry> {
        let entry = known.entry(self.index).ok_or_else(|| {
            not_found("no_such_notification", "there is no notification of this index")
                .detail("index", self.index)
                .hint("list-notifications shows the indexes")
        })?;
        let differs = |expected: Option<&str>, actual: &str| {
            expected.is_some_and(|expected| !expected.is_empty() && expected != actual)
        };
        let is_other = differs(self.expected_app, &entry.app_name)
            || differs(self.expected_title, &entry.title)
            || !contains(self.app, &[&entry.app_name]);
        if is_other {
            return Err(not_found("notification_mismatch", "the notification of this index is another one")
                .detail("index", self.index)
                .detail("app_name", entry.app_name.clone())
                .detail("title", entry.title.clone())
                .hint("list-notifications shows what is there now"));
        }
        entry.open_handle()?;
        Ok(entry)
    }
}

/// Whether one of the texts has this in it, whatever the case; nothing asked for is in every text.
pub(crate) fn contains(wanted: Option<&str>, texts: &[&str]) -> bool {
    wanted.is_none_or(|wanted| {
        let wanted = fold(wanted);
        texts.iter().any(|text| fold(text).contains(&wanted))
    })
}

/// The action that a word names: by what its button says, else by its key.
///
/// # Errors
/// `ACTION_FAILED` when there is none, `AMBIGUOUS_TARGET` when two buttons say the same.
pub(crate) fn action_named<'a>(
    actions: &'a [NotificationAction],
    word: &str,
) -> Result<&'a NotificationAction> {
    let labelled: Vec<&NotificationAction> = actions.iter().filter(|action| action.label == word).collect();
    let list = |values: Vec<String>| Fact::List(values.into_iter().map(Fact::Text).collect());
    match labelled.as_slice() {
        [only] => Ok(only),
        [] => actions.iter().find(|action| action.key == word).ok_or_else(|| {
            Error::new(ErrorCode::ActionFailed, "the notification does not offer this action")
                .kind("no_such_notification_action")
                .detail("actions", list(actions.iter().map(shown).collect()))
                .hint("details.actions lists what it offers")
                .delivery(Delivery::NotDelivered)
        }),
        several => {
            Err(Error::new(ErrorCode::AmbiguousTarget, "several buttons of the notification say this")
                .kind("ambiguous_notification_action")
                .detail("keys", list(several.iter().map(|action| action.key.clone()).collect()))
                .hint("name it by one of details.keys")
                .delivery(Delivery::NotDelivered))
        }
    }
}

/// What a caller names an action by.
fn shown(action: &NotificationAction) -> String {
    if action.label.is_empty() { action.key.clone() } else { action.label.clone() }
}

/// A notification, as it stands in replies.
#[derive(Clone, Debug, Serialize)]
pub struct NotificationData {
    /// Its number within the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Who sent it; may be empty.
    pub app_name: String,
    /// Its first line.
    pub title: String,
    /// The rest.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// What it offers: what the buttons say, or the key where a button says nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// What became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<NotificationState>,
    /// When its content was sent, Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_at: Option<u64>,
}

impl From<&Notification> for NotificationData {
    fn from(notification: &Notification) -> NotificationData {
        NotificationData {
            index: None,
            app_name: notification.app_name.clone(),
            title: notification.title.clone(),
            body: notification.body.clone(),
            actions: notification.actions.iter().map(shown).collect(),
            state: None,
            shown_at: None,
        }
    }
}

impl From<&Entry> for NotificationData {
    fn from(entry: &Entry) -> NotificationData {
        NotificationData {
            index: Some(entry.index),
            state: Some(entry.state),
            shown_at: Some(entry.shown_at),
            ..NotificationData::from(&entry.notification())
        }
    }
}

impl NotificationData {
    /// One line.
    pub(crate) fn outline(&self) -> String {
        let mut line = self.index.map(|index| format!("{index} ")).unwrap_or_default();
        line.push_str(&quote(&self.app_name, LINE_TEXT));
        for text in [&self.title, &self.body].into_iter().filter(|text| !text.is_empty()) {
            line = format!("{line} {}", quote(text, LINE_TEXT));
        }
        for action in &self.actions {
            line = format!("{line} [{action}]");
        }
        match self.state {
            Some(state) => format!("{line} {}", state.as_str()),
            None => line,
        }
    }
}

/// Refuses what an application sent that the policy file denies.
///
/// # Errors
/// `POLICY_DENIED` of kind `policy_file`.
pub(crate) fn check_allowed(context: &Context<'_>, entry: &Entry) -> Result<()> {
    context.audit.note(audit::Target::named(&entry.app_name));
    match context.rules.app(&[&entry.app_name], &[]) {
        // Without a word about delivery: others may have been taken away before.
        Some(denial) => Err(denial
            .error(format!("the policy file denies notifications of {:?}", entry.app_name))
            .detail("index", entry.index)),
        None => Ok(()),
    }
}

/// Takes a notification away, and writes that to the trace. Call with the lease held.
///
/// # Errors
/// Those of the platform, and `POLICY_DENIED`.
pub(crate) fn dismiss(context: &Context<'_>, entry: &Entry) -> Result<()> {
    check_allowed(context, entry)?;
    let handle = entry.open_handle()?;
    traced(context, "dismiss-notification", || {
        context.platform.dismiss_notification(&handle, context.deadline).map(|()| Delivery::Verified)
    })
    .map(|_| ())
}

/// Does what a notification offers, and writes that to the trace. Call with the lease held.
///
/// # Errors
/// Those of the platform.
pub(crate) fn invoke(
    context: &Context<'_>,
    notification: &Notification,
    action: &NotificationAction,
) -> Result<Delivery> {
    traced(context, "notification-action", || {
        context.platform.invoke_notification(notification, action, context.deadline)
    })
}

fn traced(
    context: &Context<'_>,
    action: &'static str,
    work: impl FnOnce() -> Result<Delivery>,
) -> Result<Delivery> {
    let mut fields = vec![("action", Field::Text(action))];
    context.trace("action.dispatch.start", &fields)?;
    context.begin_delivery();
    match work() {
        Ok(delivery) => {
            let result = facts([("delivery", delivery.as_str().into())]);
            fields.push(("result", Field::Fact(&result)));
            context.trace("action.dispatch.ok", &fields)?;
            Ok(delivery)
        }
        Err(error) => {
            fields.extend(trace::failure(&error));
            context.trace("action.dispatch.error", &fields)?;
            Err(error)
        }
    }
}

/// Waits until the journal has what was just seen. Best effort: the next command reads the same journal.
pub(crate) fn catch_up(context: &Context<'_>, index: u64) {
    let limit = context.deadline.within(context.now(), CATCH_UP);
    let is_open = || {
        let known = Known::of(context).ok().flatten();
        known.is_some_and(|known| {
            known.entry(index).is_some_and(|entry| entry.state == NotificationState::Open)
        })
    };
    while is_open() && context.pause_until(limit, CATCH_UP_POLL) {}
}

/// Starts a listener for a session, and waits until it listens. False: there is none, and why was logged.
pub(crate) fn start_listener(options: &Options, store: &Store, session: &str) -> bool {
    let (Some(start), Some(root)) = (options.listener, store.root()) else { return false };
    let mut child = match start(root, session) {
        Ok(child) => child,
        Err(error) => {
            log::warn(format_args!("nobody listens to notifications: {error}"));
            return false;
        }
    };
    let is_ready = child.stdout.take().is_some_and(|output| is_told(output, START));
    if !is_ready {
        log::warn(format_args!("nobody listens to notifications: is there a session bus?"));
        let _ = child.kill();
        let _ = child.wait();
    }
    is_ready
}

/// Whether something is written there before the limit.
fn is_told(mut output: ChildStdout, limit: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::Read;
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            // Nothing at the end of what it writes: it has ended.
            Ok(_) => return output.read(&mut [0; 1]).is_ok_and(|count| count > 0),
            Err(rustix::io::Errno::INTR) if !left.is_zero() => {}
            Err(_) => return false,
        }
    }
}

/// How a door starts a process that calls [`listen`] with this state root and this session, and hands its standard output.
pub type StartListener = fn(root: &Path, session: &str) -> std::io::Result<Child>;

/// Listens to notifications for a session, until that ends or is removed, or nothing can be heard any more. Writes a line
/// to `ready` once it listens.
///
/// # Errors
/// When there is no such session, somebody listens already, or nothing can be heard (any more).
pub fn listen(platform: &dyn Platform, root: PathBuf, session: &str, ready: &mut dyn Write) -> Result<()> {
    let options = Options {
        state_root: Some(root.into_os_string()),
        session: Some(session.to_owned()),
        ..Options::default()
    };
    let store = Store::new(&options)?;
    let directory = store.base(false)?.filter(|directory| session::is_on(directory, session));
    let directory = directory.ok_or_else(|| Error::invalid("there is no such session, or it has ended"))?;
    // Whoever looks whether somebody listens has the lock for a moment.
    let _listening = directory.lock(LISTENER, CATCH_UP)?;
    let deadline = |limit| Deadline::after(platform.now(), limit);
    let mut watch = platform.watch_notifications(deadline(START))?;
    let mut journal = Journal::new(unix_ms());
    journal.write(&directory)?;
    let told = ready.write_all(b"listening\n").and_then(|()| ready.flush());
    told.map_err(|error| Error::internal("nobody waits for us").platform_detail(error.to_string()))?;
    while session::is_on(&directory, session) {
        let Some(event) = watch.next(deadline(SESSION_POLL))? else { continue };
        journal.apply(event, unix_ms());
        let mut taken = 1;
        // What comes in a flood is written once. The error, if any, comes again after what was heard is written.
        while taken < BATCH
            && let Ok(Some(event)) = watch.next(deadline(Duration::ZERO))
        {
            journal.apply(event, unix_ms());
            taken += 1;
        }
        journal.write(&directory)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fake::Bench;
    use crate::private_files::FileLock;

    fn shown(id: u32, title: &str) -> NotificationEvent {
        NotificationEvent::Shown(Notification {
            handle: (id > 0).then(|| Handle::new(format!("h{id}"))),
            app_name: "Mail".to_owned(),
            title: title.to_owned(),
            body: "text".to_owned(),
            actions: vec![
                NotificationAction { key: "default".to_owned(), label: String::new() },
                NotificationAction { key: "r".to_owned(), label: "Reply".to_owned() },
            ],
        })
    }

    fn ended(id: u32, end: NotificationEnd) -> NotificationEvent {
        NotificationEvent::Ended(Handle::new(format!("h{id}")), end)
    }

    fn journal(events: impl IntoIterator<Item = NotificationEvent>) -> Journal {
        let mut journal = Journal::new(1);
        for event in events {
            journal.apply(event, 2);
        }
        journal
    }

    fn states(journal: &Journal) -> Vec<(u64, &str, NotificationState)> {
        journal.entries.iter().map(|entry| (entry.index, &*entry.title, entry.state)).collect()
    }

    #[test]
    fn a_journal_follows_what_is_heard() {
        use NotificationState::{Closed, Dismissed, Expired, Open, Unknown};
        let heard = journal([
            shown(1, "one"),
            shown(2, "two"),
            shown(3, "three"),
            shown(0, "no number"),
            // The same one with another text, then a new one of a number that is free again.
            shown(1, "changed"),
            ended(1, NotificationEnd::Expired),
            shown(1, "another"),
            ended(2, NotificationEnd::Dismissed),
            ended(3, NotificationEnd::Closed),
            ended(9, NotificationEnd::Closed),
        ]);
        assert_eq!(
            states(&heard),
            [
                (1, "changed", Expired),
                (2, "two", Dismissed),
                (3, "three", Closed),
                (4, "no number", Unknown),
                (5, "another", Open)
            ]
        );
        let mut after = heard;
        after.apply(NotificationEvent::ServiceChanged(true), 3);
        assert_eq!(states(&after)[4], (5, "another", Closed));
        assert_eq!(states(&after)[0], (1, "changed", Expired));
    }

    #[test]
    fn a_journal_keeps_the_newest_and_no_index_is_used_again() {
        let mut heard = journal((1..=KEPT as u32 + 5).map(|id| shown(id, "x")));
        assert_eq!((heard.entries.len(), heard.entries[0].index), (KEPT, 6));
        let bench = Bench::new("journal-large");
        let directory = Directory::open(bench.folder(), false).unwrap().unwrap();
        for entry in &mut heard.entries {
            entry.body = "x".repeat(MAX_JOURNAL / KEPT);
        }
        heard.write(&directory).unwrap();
        let text = directory.read(JOURNAL, MAX_JOURNAL).unwrap().unwrap();
        let read: Journal = serde_json::from_slice(&text).unwrap();
        assert_eq!(read, heard);
        assert_eq!(read.entries.last().unwrap().index, KEPT as u64 + 5);
        assert!(read.entries.len() > KEPT / 2);
    }

    /// A session in which somebody has heard this; who holds the lock still listens.
    fn heard(bench: &mut Bench, events: impl IntoIterator<Item = NotificationEvent>) -> FileLock {
        let path = bench.begin(json!({}));
        let directory = Directory::open(&path, false).unwrap().unwrap();
        let lock = directory.lock(LISTENER, CATCH_UP).unwrap();
        journal(events).write(&directory).unwrap();
        lock
    }

    fn indexes(data: &Value) -> Vec<u64> {
        data["notifications"].as_array().unwrap().iter().map(|one| one["index"].as_u64().unwrap()).collect()
    }

    #[test]
    fn what_is_operated_is_what_the_index_and_the_words_say() {
        let mut bench = Bench::new("notifications-operate");
        let _listening = heard(
            &mut bench,
            [shown(1, "one"), shown(2, "two"), shown(3, "three"), ended(2, NotificationEnd::Dismissed)],
        );
        assert_eq!(indexes(&bench.data("list-notifications", json!({}))), [1, 3]);
        assert_eq!(indexes(&bench.data("list-notifications", json!({"all": true, "limit": 2}))), [2, 3]);
        let refused = |arguments: Value, kind: &str| {
            bench.error(
                "dismiss-notification",
                arguments,
                "NOTIFICATION_NOT_FOUND",
                Some(kind),
                "not_delivered",
            );
        };
        refused(json!({"index": 1, "expected_title": "three"}), "notification_mismatch");
        refused(json!({"index": 2, "expected_title": "two"}), "notification_closed");
        refused(json!({"index": 4, "expected_title": "two"}), "no_such_notification");
        for arguments in [
            json!({"index": 0, "expected_app": "Mail"}),
            json!({"index": 1}),
            json!({"index": 1, "expected_app": ""}),
        ] {
            bench.error(
                "notification-action",
                {
                    let mut all = arguments.clone();
                    all["action"] = json!("Reply");
                    all
                },
                "INVALID_ARGS",
                None,
                "not_delivered",
            );
            bench.error("dismiss-notification", arguments, "INVALID_ARGS", None, "not_delivered");
        }
        assert!(bench.fake.dismissed.borrow().is_empty());

        bench.data("dismiss-notification", json!({"index": 3, "expected_app": "Mail", "expected_title": ""}));
        assert_eq!(*bench.fake.dismissed.borrow(), ["h3"]);
        assert_eq!(bench.data("dismiss-all-notifications", json!({"app": "post"}))["dismissed_count"], 0);
        // The fake's listener does not hear that the third is gone.
        assert_eq!(bench.data("dismiss-all-notifications", json!({"app": "MAIL"}))["dismissed_count"], 2);
        assert_eq!(*bench.fake.dismissed.borrow(), ["h3", "h1", "h3"]);

        let data =
            bench.data("notification-action", json!({"index": 1, "action": "Reply", "expected_app": "Mail"}));
        assert_eq!(data["disposition"]["delivery"], "delivered_verified");
        bench.data("notification-action", json!({"index": 1, "action": "default", "expected_app": "Mail"}));
        assert_eq!(*bench.fake.invoked.borrow(), ["h1 r", "h1 default"]);
        let arguments = json!({"index": 1, "action": "reply", "expected_app": "Mail"});
        let error = bench.error(
            "notification-action",
            arguments,
            "ACTION_FAILED",
            Some("no_such_notification_action"),
            "not_delivered",
        );
        assert_eq!(error["details"]["actions"], json!(["default", "Reply"]));
    }

    #[test]
    fn what_a_denied_application_sends_is_there_without_its_words_and_is_left_alone() {
        let mut bench = Bench::new("notifications-denied");
        let from = |name: &str, event: NotificationEvent| match event {
            NotificationEvent::Shown(shown) => {
                NotificationEvent::Shown(Notification { app_name: name.to_owned(), ..shown })
            }
            other => other,
        };
        let _listening = heard(&mut bench, [shown(1, "one"), from("Vault", shown(2, "hunter2"))]);
        let path = bench.folder().join("policy.toml");
        std::fs::write(&path, "[apps]\ndeny = [\"vault\"]").unwrap();
        bench.options.policy_files = vec![crate::PolicyFile { path, must_exist: true }];

        let data = bench.data("list-notifications", json!({}));
        let denied = &data["notifications"][1];
        assert_eq!((&denied["app_name"], &denied["title"]), (&json!("Vault"), &json!(MASK)));
        assert!(denied["body"].is_null() && denied["actions"].is_null(), "{denied}");
        assert_eq!(data["notifications"][0]["body"], "text");
        assert_eq!(bench.data("list-notifications", json!({"text": "hunter2"}))["count"], 0);

        let who = json!({"index": 2, "action": "Reply", "expected_app": "Vault"});
        bench.error("notification-action", who, "POLICY_DENIED", Some("policy_file"), "not_delivered");
        let who = json!({"index": 2, "expected_app": "Vault"});
        bench.error("dismiss-notification", who, "POLICY_DENIED", Some("policy_file"), "not_delivered");
        let data = bench.data("dismiss-all-notifications", json!({}));
        assert_eq!((&data["dismissed_count"], &data["failed_count"]), (&json!(1), &json!(1)), "{data}");
        assert_eq!(*bench.fake.dismissed.borrow(), ["h1"]);
        assert!(bench.fake.invoked.borrow().is_empty());

        for word in ["hunter2", "text"] {
            let heard = [Ok(from("Vault", shown(3, "hunter2"))), Ok(shown(4, "hunter2"))];
            bench.fake.now_be(|scene| scene.heard = heard.into());
            let data = bench.data("wait", json!({"notification": true, "text": word}));
            assert_eq!(data["notification"]["app_name"], "Mail", "{word} of the other one was looked at");
        }
        bench.fake.now_be(|scene| scene.heard = [Ok(from("Vault", shown(3, "hunter2")))].into());
        let data = bench.data("wait", json!({"notification": true}));
        assert_eq!(data["notification"], json!({"app_name": "Vault", "title": MASK}));
    }

    #[test]
    fn who_no_longer_listens_knows_nothing_of_what_is_open() {
        let mut bench = Bench::new("notifications-ended");
        let listening = heard(&mut bench, [shown(1, "one")]);
        assert_eq!(bench.data("list-notifications", json!({}))["complete"], true);
        drop(listening);
        let data = bench.data("list-notifications", json!({}));
        assert_eq!(
            (&data["complete"], &data["notifications"][0]["state"]),
            (&json!(false), &json!("unknown"))
        );
        let kind = Some("no_notification_listener");
        bench.error("dismiss-all-notifications", json!({}), "NOTIFICATION_NOT_FOUND", kind, "not_delivered");
        bench.fake.has_notification_service.set(false);
        assert_eq!(bench.data("list-notifications", json!({}))["count"], 1, "what came stays known");
        bench.options.session = None;
        let kind = Some("no_notification_service");
        bench.error("list-notifications", json!({}), "PLATFORM_NOT_SUPPORTED", kind, "not_delivered");
    }

    #[test]
    fn a_listener_writes_down_all_it_heard_before_it_fails_and_ends_with_its_session() {
        let mut bench = Bench::new("notifications-listen");
        let path = bench.begin(json!({}));
        let id = bench.options.session.clone().unwrap();
        let root = bench.folder().join("state");
        let lost = || Error::new(ErrorCode::PlatformNotSupported, "the bus ended");
        let mut heard: Vec<Result<NotificationEvent>> = (1..=250).map(|id| Ok(shown(id, "x"))).collect();
        heard.push(Err(lost()));
        // The first failure ends a round, the second the listener.
        heard.push(Err(lost()));
        bench.fake.now_be(|scene| scene.heard = heard.into());
        let mut ready = Vec::new();
        assert!(listen(&bench.fake, root.clone(), &id, &mut ready).is_err());
        assert_eq!(ready, b"listening\n");
        let directory = Directory::open(&path, false).unwrap().unwrap();
        let known = Known::read(&directory).unwrap().unwrap();
        assert_eq!((known.journal.entries.len(), known.journal.entries.last().unwrap().index), (KEPT, 250));
        assert!(!known.is_listening);

        let end = bench.options.clone();
        let ending = path.clone();
        bench.fake.at(bench.fake.elapsed_ms() + 1500, move |_| {
            session::end(&Store::new(&end).unwrap(), ending.file_name().unwrap().to_str().unwrap()).unwrap();
        });
        assert!(listen(&bench.fake, root.clone(), &id, &mut Vec::new()).is_ok(), "it ends by itself");
        assert!(listen(&bench.fake, root, &id, &mut Vec::new()).is_err(), "the session has ended");
    }

    #[test]
    fn a_wait_takes_what_comes_and_fits() {
        let mut bench = Bench::new("notifications-wait");
        bench.begin(json!({}));
        let heard = [shown(1, "one"), ended(1, NotificationEnd::Expired), shown(2, "Two"), shown(3, "two")];
        bench.fake.now_be(|scene| scene.heard = heard.map(Ok).into());
        let data = bench.data("wait", json!({"notification": true, "text": "TWO", "app": "mail"}));
        assert_eq!((&data["matched"], &data["notification"]["title"]), (&json!(true), &json!("Two")));
        let arguments = json!({"notification": true, "text": "nothing", "timeout": 500});
        bench.error("wait", arguments, "TIMEOUT", Some("wait_timeout"), "not_delivered");
        bench.fake.now_be(|scene| scene.heard = [Ok(NotificationEvent::ServiceChanged(false))].into());
        let kind = Some("no_notification_service");
        bench.error("wait", json!({"notification": true}), "PLATFORM_NOT_SUPPORTED", kind, "not_delivered");
        for arguments in [
            json!({"notification": true, "menu": true}),
            json!({"notification": true, "text": "a", "count": 1}),
        ] {
            bench.error("wait", arguments, "INVALID_ARGS", None, "not_delivered");
        }
    }
}
