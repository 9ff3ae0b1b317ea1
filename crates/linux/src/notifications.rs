//! Notifications, by the protocol that every notification service of a Linux desktop speaks.
//!
//! The protocol has no call that lists what is shown, so what is sent is listened to, as a monitor of the session bus. That
//! also hears what a service tells one client only: some address the signal that a notification is gone to its sender.
//! Nothing here starts a service: the bus is asked whether somebody has the name, and calls go to who has it.
//!
//! Protocol: <https://specifications.freedesktop.org/notification-spec/latest/protocol.html>; monitors:
//! <https://dbus.freedesktop.org/doc/dbus-specification.html#bus-messages-become-monitor>.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent_desktop_core::platform::{
    Limits, Notification, NotificationAction, NotificationEnd, NotificationEvent, NotificationWatch,
    Operation, Performed, Platform, Scope, Window,
};
use agent_desktop_core::role::Role;
use agent_desktop_core::tree::{Handle, Tree};
use agent_desktop_core::{Deadline, Delivery, Error, ErrorCode, Result};

use crate::bus::{Object, send_get, variant_number};
use crate::dbus::{Call, Connection, Failure, Kind, Malformed, Message, session_bus_addresses};
use crate::platform::Linux;

/// First argument of the program when it is to listen to notifications for a session. Not for callers.
pub const LISTEN: &str = "listen-to-notifications-of-this-session";

const SERVICE: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";
const DUNST: &str = "org.dunstproject.cmd0";

/// What a monitor is told. Answers are needed for the numbers that the service gives.
const RULES: &[&str] = &[
    "type='method_call',path='/org/freedesktop/Notifications',member='Notify'",
    "type='method_return',sender='org.freedesktop.Notifications'",
    "type='error',sender='org.freedesktop.Notifications'",
    "type='signal',path='/org/freedesktop/Notifications',interface='org.freedesktop.Notifications'",
    "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.Notifications'",
];

/// Calls whose answer is waited for; more than a service that lives leaves open.
const MOST_PENDING: usize = 256;
/// Bytes of a name or a title, and of a body, that are kept.
const MOST_LINE: usize = 1000;
const MOST_BODY: usize = 8000;
/// Actions of one notification that are kept, and bytes of the words of each.
const MOST_ACTIONS: usize = 32;
const MOST_LABEL: usize = 200;
/// How long a service may take to say that a notification is gone, or that its sender was told of an action.
const SEEN: Duration = Duration::from_secs(2);
/// Objects of a notification on the screen that are looked at.
const MOST_OBJECTS: u32 = 500;

fn no_bus(failure: &Failure) -> Error {
    let error = match failure {
        Failure::Timeout => Error::new(ErrorCode::Timeout, "the session bus did not answer in time")
            .kind("deadline")
            .hint("the session bus is there but silent; see whether it hangs"),
        _ => Error::new(ErrorCode::PlatformNotSupported, "the session bus cannot be reached")
            .kind("no_session_bus")
            .hint("run inside the desktop session, with DBUS_SESSION_BUS_ADDRESS set"),
    };
    error.platform_detail(failure.to_string()).delivery(Delivery::NotDelivered)
}

fn unanswered(failure: &Failure) -> Error {
    Error::new(ErrorCode::AppUnresponsive, "the notification service does not answer")
        .kind("app_unresponsive")
        .hint("see whether it hangs; start it again")
        .platform_detail(failure.to_string())
        .delivery(Delivery::Uncertain)
}

fn gone(cause: &'static str) -> Error {
    Error::new(ErrorCode::NotificationNotFound, "the notification is no longer shown")
        .kind("notification_closed")
        .platform_detail(cause)
        .hint("list-notifications shows what is still open")
        .delivery(Delivery::NotDelivered)
}

fn open_bus() -> Result<Connection> {
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut last = Failure::Disconnected("no session bus".into());
    for address in session_bus_addresses(&environment) {
        match Connection::open(&address, true) {
            Ok(connection) => return Ok(connection),
            Err(failure) => last = failure,
        }
    }
    Err(no_bus(&last))
}

fn ask_bus(member: &str) -> Call<'_> {
    Call { signature: "s", body: &|writer| writer.string(SERVICE), ..Call::new(BUS, BUS_PATH, BUS, member) }
}

/// Whether somebody has the name of the service. One round trip; starts nobody.
pub(crate) fn has_service(deadline: Deadline) -> Result<bool> {
    let answer = open_bus()?.call(&ask_bus("NameHasOwner"), deadline.at());
    answer.and_then(|message| Ok(message.body("b")?.bool()?)).map_err(|failure| no_bus(&failure))
}

/// A notification as its service knows it: which bus, who shows it, its number there. A number alone would name another
/// notification after the service was started anew, or on another desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    bus: String,
    owner: String,
    id: u32,
}

impl Place {
    fn handle(&self) -> Handle {
        Handle::new(format!("{}/{}/{}", self.bus, self.owner, self.id))
    }

    fn of(handle: &Handle) -> Result<Place> {
        let mut parts = handle.as_str().split('/');
        let place = match (parts.next(), parts.next(), parts.next().map(str::parse), parts.next()) {
            (Some(bus), Some(owner), Some(Ok(id)), None) => Some((bus, owner, id)),
            _ => None,
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":._-".contains(&byte);
        place
            .filter(|(bus, owner, _)| bus.len() + owner.len() <= 512 && owner.starts_with(':'))
            .filter(|(_, owner, _)| owner.bytes().all(is_plain))
            .map(|(bus, owner, id)| Place { bus: bus.to_owned(), owner: owner.to_owned(), id })
            .ok_or_else(|| Error::invalid("the stored handle is not one of ours"))
    }
}

/// What a monitor heard, with what only we need to know.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    Event(NotificationEvent),
    /// The sender of this notification was told that this action was chosen.
    Invoked(Handle, String),
}

/// A call that is not answered yet.
#[derive(Debug)]
struct Pending {
    caller: String,
    serial: u32,
    notification: Notification,
}

/// What the messages of a bus say about notifications; no socket, no clock.
#[derive(Debug)]
struct Ear {
    /// Which bus.
    bus: String,
    /// Who shows notifications.
    owner: Option<String>,
    pending: VecDeque<Pending>,
}

impl Ear {
    fn hear(&mut self, message: &Message) -> Option<Heard> {
        match message.kind {
            Kind::Call if message.member() == "Notify" && matches!(message.interface(), "" | SERVICE) => {
                let notification = sent(message).ok()?;
                if message.wants_no_reply() {
                    // Nobody will ever hear its number.
                    return self
                        .owner
                        .is_some()
                        .then_some(Heard::Event(NotificationEvent::Shown(notification)));
                }
                if self.pending.len() >= MOST_PENDING {
                    self.pending.pop_front();
                }
                self.pending.push_back(Pending {
                    caller: message.sender().to_owned(),
                    serial: message.serial,
                    notification,
                });
                None
            }
            Kind::Return | Kind::Error => {
                let at = self.pending.iter().position(|pending| {
                    pending.serial == message.reply_to && pending.caller == message.destination()
                })?;
                let mut notification = self.pending.remove(at)?.notification;
                if message.kind == Kind::Error {
                    return None;
                }
                let id = message.body("u").and_then(|mut body| body.u32()).ok()?;
                notification.handle = Some(self.place(message, id).handle());
                Some(Heard::Event(NotificationEvent::Shown(notification)))
            }
            Kind::Signal => self.hear_signal(message),
            Kind::Call => None,
        }
    }

    /// Who sends is told by the bus: what somebody else says about notifications is about none of ours.
    fn place(&self, message: &Message, id: u32) -> Place {
        Place { bus: self.bus.clone(), owner: message.sender().to_owned(), id }
    }

    fn hear_signal(&mut self, message: &Message) -> Option<Heard> {
        match (message.interface(), message.member()) {
            (SERVICE, "NotificationClosed") => {
                let mut body = message.body("uu").ok()?;
                let (id, reason) = (body.u32().ok()?, body.u32().ok()?);
                let end = match reason {
                    1 => NotificationEnd::Expired,
                    2 => NotificationEnd::Dismissed,
                    _ => NotificationEnd::Closed,
                };
                Some(Heard::Event(NotificationEvent::Ended(self.place(message, id).handle(), end)))
            }
            (SERVICE, "ActionInvoked") => {
                let mut body = message.body("us").ok()?;
                let (id, key) = (body.u32().ok()?, body.string().ok()?.into_owned());
                Some(Heard::Invoked(self.place(message, id).handle(), key))
            }
            (BUS, "NameOwnerChanged") if message.sender() == BUS => {
                let mut body = message.body("sss").ok()?;
                let (name, _, owner) = (body.string().ok()?, body.string().ok()?, body.string().ok()?);
                if name != SERVICE {
                    return None;
                }
                self.owner = Some(owner.into_owned()).filter(|owner| !owner.is_empty());
                self.pending.clear();
                Some(Heard::Event(NotificationEvent::ServiceChanged(self.owner.is_some())))
            }
            _ => None,
        }
    }
}

/// What a call of `Notify` shows.
fn sent(message: &Message) -> std::result::Result<Notification, Malformed> {
    let mut body = message.body("susssasa{sv}i")?;
    let app_name = body.string()?;
    body.u32()?; // which one it replaces; the answer has the same number then
    body.string()?; // icon
    let (title, text) = (body.string()?, body.string()?);
    let words = body.strings()?;
    let line = |text: &str| cut(text, MOST_LINE);
    let label = |text: &str| cut(text, MOST_LABEL);
    let actions = words.chunks_exact(2).take(MOST_ACTIONS);
    Ok(Notification {
        handle: None,
        app_name: line(&app_name),
        title: line(&title),
        body: cut(&text, MOST_BODY),
        actions: actions
            .map(|pair| NotificationAction { key: label(&pair[0]), label: label(&pair[1]) })
            .collect(),
    })
}

/// The beginning of a text.
fn cut(text: &str, limit: usize) -> String {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// A monitor of the session bus.
#[derive(Debug)]
pub(crate) struct Watch {
    connection: Connection,
    ear: Ear,
}

impl Watch {
    /// Becomes a monitor. Two round trips; what is sent after this has returned is heard.
    ///
    /// # Errors
    /// `PLATFORM_NOT_SUPPORTED` without a bus, `PERM_DENIED` where the bus lets nobody listen.
    pub(crate) fn start(deadline: Deadline) -> Result<Watch> {
        let mut connection = open_bus()?;
        // Connecting to it makes no difference, and a monitor can ask no more: what is to be known is asked before.
        let bus = connection.send(&Call::new(BUS, BUS_PATH, BUS, "GetId"));
        let owner = connection.send(&ask_bus("GetNameOwner"));
        let text = |answer: std::result::Result<Message, Failure>| {
            answer.and_then(|message| Ok(message.body("s")?.string()?.into_owned()))
        };
        let bus = text(connection.wait(bus, deadline.at())).map_err(|failure| no_bus(&failure))?;
        let owner = match text(connection.wait(owner, deadline.at())) {
            Ok(owner) => Some(owner),
            Err(Failure::Remote { .. }) => None,
            Err(failure) => return Err(no_bus(&failure)),
        };
        let monitoring = connection.call(
            &Call {
                signature: "asu",
                body: &|writer| {
                    writer.strings(RULES);
                    writer.u32(0);
                },
                ..Call::new(BUS, BUS_PATH, "org.freedesktop.DBus.Monitoring", "BecomeMonitor")
            },
            deadline.at(),
        );
        match monitoring {
            Ok(_) => Ok(Watch { connection, ear: Ear { bus, owner, pending: VecDeque::new() } }),
            Err(failure @ Failure::Remote { .. }) => {
                Err(Error::new(ErrorCode::PermDenied, "the session bus lets nobody listen to notifications")
                    .kind("monitoring_refused")
                    .hint("run outside of the sandbox: its bus is a filtered one")
                    .platform_detail(failure.to_string())
                    .delivery(Delivery::NotDelivered))
            }
            Err(failure) => Err(no_bus(&failure)),
        }
    }

    /// The next that is heard; `None` at the deadline.
    fn heard(&mut self, deadline: Instant) -> Result<Option<Heard>> {
        loop {
            match self.connection.next_message(deadline) {
                Ok(message) => {
                    if let Some(heard) = self.ear.hear(&message) {
                        return Ok(Some(heard));
                    }
                }
                Err(Failure::Timeout) => return Ok(None),
                Err(failure) => return Err(no_bus(&failure)),
            }
        }
    }

    /// Whether this is heard before the limit. The service ending meanwhile is an error.
    fn hears(&mut self, wanted: impl Fn(&Heard) -> bool, limit: Instant) -> Result<bool> {
        loop {
            match self.heard(limit).map_err(|error| error.redelivered(Delivery::Uncertain))? {
                Some(heard) if wanted(&heard) => return Ok(true),
                Some(Heard::Event(NotificationEvent::ServiceChanged(_))) => {
                    return Err(Error::new(
                        ErrorCode::ActionFailed,
                        "the notification service ended meanwhile",
                    )
                    .delivery(Delivery::Uncertain));
                }
                Some(_) => {}
                None => return Ok(false),
            }
        }
    }
}

impl NotificationWatch for Watch {
    fn next(&mut self, deadline: Deadline) -> Result<Option<NotificationEvent>> {
        loop {
            match self.heard(deadline.at())? {
                Some(Heard::Event(event)) => return Ok(Some(event)),
                Some(Heard::Invoked(..)) => {}
                None => return Ok(None),
            }
        }
    }
}

/// Starts the program as the listener of a session. Its standard output is a pipe, on which it says that it listens.
///
/// # Errors
/// When it cannot be started.
pub fn start_listener(root: &Path, session: &str) -> std::io::Result<Child> {
    use std::os::unix::process::CommandExt;
    // Whoever waits for the other end of a pipe that our parent gave us, or for the lease that it holds for us, must not
    // wait as long as the session runs.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    Command::new(std::env::current_exe()?)
        .args([LISTEN.as_ref(), root.as_os_str(), session.as_ref()])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // What ends our group, such as a terminal that is closed, does not end it.
        .process_group(0)
        .spawn()
}

/// Listens, and makes sure that a notification is still one of the service that showed it.
fn watch_for(place: &Place, deadline: Deadline) -> Result<Watch> {
    let watch = Watch::start(deadline)?;
    if watch.ear.bus != place.bus {
        return Err(gone("it was on another desktop"));
    }
    if watch.ear.owner.as_ref() != Some(&place.owner) {
        return Err(gone("the service that showed it has ended"));
    }
    Ok(watch)
}

/// Asks the service to close a notification, and waits until it says that it is closed.
pub(crate) fn dismiss(handle: &Handle, deadline: Deadline) -> Result<()> {
    let place = Place::of(handle)?;
    let mut watch = watch_for(&place, deadline)?;
    let mut connection = open_bus()?;
    let closed = connection.call(
        &Call {
            signature: "u",
            body: &|writer| writer.u32(place.id),
            ..Call::new(&place.owner, PATH, SERVICE, "CloseNotification")
        },
        deadline.at(),
    );
    match closed {
        Ok(_) => {}
        Err(Failure::Remote { .. }) => return Err(gone("the service does not know it")),
        Err(failure) => return Err(unanswered(&failure)),
    }
    let is_it =
        |heard: &Heard| matches!(heard, Heard::Event(NotificationEvent::Ended(ended, _)) if ended == handle);
    if watch.hears(is_it, deadline.at().min(Instant::now() + SEEN))? {
        return Ok(());
    }
    // Services answer so for numbers that they do not know, too.
    Err(Error::new(ErrorCode::ActionFailed, "the service took the request and did not say that it is gone")
        .kind("notification_not_closed")
        .hint("it may have been gone before; list-notifications shows what is still open")
        .delivery(Delivery::Unverified))
}

fn not_offered(cause: &'static str, hint: &'static str) -> Error {
    Error::new(ErrorCode::ActionNotSupported, cause)
        .kind("action_not_offered")
        .hint(hint)
        .delivery(Delivery::NotDelivered)
}

/// Whether an action was sent.
enum Sent {
    Yes,
    /// There is no such way here.
    NoWay,
}

impl Linux {
    /// Does what a notification offers: by its button where the service has an accessible one, else by the service's own
    /// interface.
    pub(crate) fn invoke(
        &self,
        notification: &Notification,
        action: &NotificationAction,
        deadline: Deadline,
    ) -> Result<Delivery> {
        let handle = notification.handle.as_ref().ok_or_else(|| gone("nobody was told its number"))?;
        let place = Place::of(handle)?;
        let mut watch = watch_for(&place, deadline)?;
        let mut connection = open_bus()?;
        let pid = connection
            .call(
                &Call {
                    signature: "s",
                    body: &|writer| writer.string(&place.owner),
                    ..Call::new(BUS, BUS_PATH, BUS, "GetConnectionUnixProcessID")
                },
                deadline.at(),
            )
            .and_then(|message| Ok(message.body("u")?.u32()?))
            .map_err(|failure| match failure {
                Failure::Remote { .. } => gone("the service that showed it has ended"),
                failure => no_bus(&failure),
            })?;
        if let Sent::NoWay = self.press(pid, notification, action, deadline)?
            && let Sent::NoWay = tell_dunst(&mut connection, &place, notification, action, deadline)?
        {
            return Err(not_offered(
                "the notification service offers no way to do this but the pointer",
                "look where it is with screenshot, and use mouse-click with --headed",
            ));
        }
        let is_it =
            |heard: &Heard| matches!(heard, Heard::Invoked(of, key) if of == handle && *key == action.key);
        let limit = deadline.at().min(Instant::now() + SEEN);
        Ok(if watch.hears(is_it, limit)? { Delivery::Verified } else { Delivery::Unverified })
    }

    /// Presses the button of this action in the notification on the screen, if its service can be read.
    fn press(
        &self,
        pid: u32,
        notification: &Notification,
        action: &NotificationAction,
        deadline: Deadline,
    ) -> Result<Sent> {
        let windows = match self.apps(deadline) {
            Ok(apps) => match apps.iter().find(|app| app.pid == pid && app.accessible == Some(true)) {
                Some(app) => self.windows(Some(app), deadline)?,
                None => return Ok(Sent::NoWay),
            },
            // Without an accessibility bus there may still be another way.
            Err(error) if error.code() == ErrorCode::PermDenied => return Ok(Sent::NoWay),
            Err(error) => return Err(error),
        };
        let limits = Limits { max_depth: 30, nodes: MOST_OBJECTS, ..Limits::default() };
        let mut shown = Vec::new();
        for window in windows {
            let scope = Scope { window: Window { visible: Some(true), ..window }, root: None };
            let Ok(observed) = self.observe(&scope, &limits, deadline) else { continue };
            if says(&observed.tree, &notification.title) {
                shown.push(observed.tree);
            }
        }
        let body = plain(&notification.body);
        if shown.len() > 1 {
            shown.retain(|tree| says(tree, &body));
        }
        let tree = match shown.as_slice() {
            [] => return Ok(Sent::NoWay),
            [tree] => tree,
            _ => {
                return Err(Error::new(
                    ErrorCode::AmbiguousTarget,
                    "several notifications on the screen say the same",
                )
                .kind("ambiguous_notification")
                .hint("dismiss the others first, by their index")
                .delivery(Delivery::NotDelivered));
            }
        };
        let buttons: Vec<_> = tree
            .iter()
            .filter(|(_, node)| node.role == Role::Button && node.name.as_deref() == Some(&*action.label))
            .collect();
        let [(_, button)] = buttons.as_slice() else { return Ok(Sent::NoWay) };
        match self.perform(&button.handle, &Operation::Activate, deadline)? {
            Performed::Done { .. } => Ok(Sent::Yes),
            Performed::NotOffered | Performed::Refused { .. } => Ok(Sent::NoWay),
        }
    }
}

/// Whether something in the tree has this text, however its lines are broken.
fn says(tree: &Tree, text: &str) -> bool {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = fold(text);
    tree.iter()
        .any(|(_, node)| [&node.name, &node.value].into_iter().flatten().any(|text| fold(text) == wanted))
}

/// A body without its markup.
fn plain(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    let mut is_tag = false;
    for character in body.chars() {
        match character {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            character if !is_tag => text.push(character),
            _ => {}
        }
    }
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        .into_iter()
        .fold(text, |text, (entity, character)| text.replace(entity, character))
}

/// What dunst's own interface can do: the action that a click would choose, of the notification at a place on the screen.
///
/// Which notification is at which place it does not tell, so only one that is alone is certain.
fn tell_dunst(
    connection: &mut Connection,
    place: &Place,
    notification: &Notification,
    action: &NotificationAction,
    deadline: Deadline,
) -> Result<Sent> {
    let object = Object::new(&place.owner, PATH);
    let asked =
        ["displayedLength", "waitingLength"].map(|property| send_get(connection, &object, DUNST, property));
    let mut count = |serial| match connection.wait(serial, deadline.at()) {
        Ok(message) => Ok(variant_number(&message).ok()),
        Err(Failure::Remote { .. }) => Ok(None),
        Err(failure) => Err(unanswered(&failure).redelivered(Delivery::NotDelivered)),
    };
    let (displayed, waiting) = (count(asked[0])?, count(asked[1])?);
    let (Some(displayed), Some(waiting)) = (displayed, waiting) else { return Ok(Sent::NoWay) };
    let has_default = notification.actions.iter().any(|action| action.key == "default");
    let is_chosen = action.key == "default" || (!has_default && notification.actions.len() == 1);
    if !is_chosen {
        return Err(not_offered(
            "dunst does only the default action, or the only one, without its menu",
            "open its menu with the pointer, or do in the application what the action would do",
        ));
    }
    #[allow(clippy::float_cmp, reason = "they are whole numbers")]
    let is_alone = displayed == 1.0 && waiting == 0.0;
    if !is_alone {
        return Err(not_offered(
            "dunst does not tell which of several notifications is which",
            "dismiss the other notifications first; when dunst is paused, dunstctl set-paused false",
        ));
    }
    let told = connection.call(
        &Call {
            signature: "u",
            body: &|writer| writer.u32(0),
            ..Call::new(&place.owner, PATH, DUNST, "NotificationAction")
        },
        deadline.at(),
    );
    match told {
        Ok(_) => Ok(Sent::Yes),
        Err(Failure::Remote { .. }) => Ok(Sent::NoWay),
        Err(failure) => Err(unanswered(&failure)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dbus::test_message;

    const DAEMON: &str = ":1.8";

    fn ear() -> Ear {
        Ear { bus: "b0".to_owned(), owner: Some(DAEMON.to_owned()), pending: VecDeque::new() }
    }

    fn notify(caller: &str, serial: u32, title: &str, wants_reply: bool) -> Message {
        let title = title.to_owned();
        test_message(
            1,
            serial,
            0,
            &[(7, caller), (2, SERVICE), (3, "Notify")],
            !wants_reply,
            "susssasa{sv}i",
            &|writer| {
                writer.string("Mail");
                writer.u32(0);
                writer.string("icon");
                writer.string(&title);
                writer.string("body");
                writer.strings(&["default", "Open", "reply", "Reply", "odd"]);
                writer.u32(0);
                writer.align(8);
                writer.i32(-1);
            },
        )
    }

    fn answer(to: &str, serial: u32, id: u32) -> Message {
        test_message(2, 90, serial, &[(7, DAEMON), (6, to)], false, "u", &|writer| writer.u32(id))
    }

    fn handle(id: u32) -> Handle {
        Place { bus: "b0".to_owned(), owner: DAEMON.to_owned(), id }.handle()
    }

    fn shown(heard: Option<Heard>) -> Option<(String, Option<Handle>)> {
        match heard {
            Some(Heard::Event(NotificationEvent::Shown(shown))) => Some((shown.title, shown.handle)),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_notification_is_shown_once_its_service_gives_it_a_number() {
        let mut ear = ear();
        assert_eq!(ear.hear(&notify(":1.20", 7, "one", true)), None);
        assert_eq!(ear.hear(&notify(":1.21", 7, "two", true)), None);
        // Answers to others, and to other calls of theirs.
        assert_eq!(ear.hear(&answer(":1.20", 8, 1)), None);
        assert_eq!(ear.hear(&answer(":1.22", 7, 1)), None);
        assert_eq!(shown(ear.hear(&answer(":1.21", 7, 4))), Some(("two".to_owned(), Some(handle(4)))));
        let Some(Heard::Event(NotificationEvent::Shown(one))) = ear.hear(&answer(":1.20", 7, 5)) else {
            panic!()
        };
        assert_eq!((&*one.app_name, &*one.title, &*one.body), ("Mail", "one", "body"));
        let actions: Vec<_> = one.actions.iter().map(|action| (&*action.key, &*action.label)).collect();
        assert_eq!(actions, [("default", "Open"), ("reply", "Reply")]);
        assert_eq!(ear.hear(&answer(":1.20", 7, 5)), None, "answered");
    }

    #[test]
    fn a_refused_one_is_not_shown_and_nothing_piles_up() {
        let mut ear = ear();
        ear.hear(&notify(":1.20", 7, "one", true));
        let refused = test_message(3, 91, 7, &[(7, DAEMON), (6, ":1.20"), (4, "a.b")], false, "", &|_| {});
        assert_eq!(ear.hear(&refused), None);
        assert_eq!(ear.hear(&answer(":1.20", 7, 5)), None);
        for serial in 0..1000 {
            ear.hear(&notify(":1.20", serial, "flood", true));
        }
        assert_eq!(ear.pending.len(), MOST_PENDING);
        assert!(shown(ear.hear(&answer(":1.20", 999, 5))).is_some(), "the newest are kept");
    }

    #[test]
    fn one_that_wants_no_answer_has_no_handle() {
        let mut ear = ear();
        assert_eq!(shown(ear.hear(&notify(":1.20", 7, "one", false))), Some(("one".to_owned(), None)));
        ear.owner = None;
        assert_eq!(ear.hear(&notify(":1.20", 8, "one", false)), None, "nobody shows it");
    }

    #[test]
    fn signals_say_what_became_of_it_and_who_says_so() {
        let mut ear = ear();
        let closed = |sender: &str, reason: u32| {
            let names = [(7, sender), (2, SERVICE), (3, "NotificationClosed")];
            test_message(4, 1, 0, &names, false, "uu", &|writer| {
                writer.u32(5);
                writer.u32(reason);
            })
        };
        for (reason, end) in [
            (1, NotificationEnd::Expired),
            (2, NotificationEnd::Dismissed),
            (3, NotificationEnd::Closed),
            (4, NotificationEnd::Closed),
        ] {
            let event = NotificationEvent::Ended(handle(5), end);
            assert_eq!(ear.hear(&closed(DAEMON, reason)), Some(Heard::Event(event)));
        }
        let Some(Heard::Event(NotificationEvent::Ended(other, _))) = ear.hear(&closed(":1.66", 2)) else {
            panic!()
        };
        assert_ne!(other, handle(5), "what somebody else says is about nothing of ours");
        let names = [(7, DAEMON), (2, SERVICE), (3, "ActionInvoked")];
        let invoked = test_message(4, 1, 0, &names, false, "us", &|writer| {
            writer.u32(5);
            writer.string("reply");
        });
        assert_eq!(ear.hear(&invoked), Some(Heard::Invoked(handle(5), "reply".to_owned())));
    }

    #[test]
    fn a_service_that_ends_is_noticed_by_the_word_of_the_bus_only() {
        let mut ear = ear();
        let changed = |sender: &str, name: &'static str, owner: &'static str| {
            let names = [(7, sender), (2, BUS), (3, "NameOwnerChanged")];
            test_message(4, 1, 0, &names, false, "sss", &|writer| {
                writer.string(name);
                writer.string(DAEMON);
                writer.string(owner);
            })
        };
        assert_eq!(ear.hear(&changed(":1.66", SERVICE, "")), None);
        assert_eq!(ear.hear(&changed(BUS, "a.b", "")), None);
        assert_eq!(
            ear.hear(&changed(BUS, SERVICE, "")),
            Some(Heard::Event(NotificationEvent::ServiceChanged(false)))
        );
        assert_eq!(
            ear.hear(&changed(BUS, SERVICE, ":1.9")),
            Some(Heard::Event(NotificationEvent::ServiceChanged(true)))
        );
    }

    #[test]
    fn handles_come_back_and_others_are_refused() {
        let place = Place { bus: "b0".to_owned(), owner: DAEMON.to_owned(), id: 7 };
        assert_eq!(Place::of(&place.handle()).unwrap(), place);
        for text in ["", "b0/:1.8", "b0/:1.8/x", "b0/:1.8/1/2", "b0/org.other.Name/1", "b0/:1.8 x/1"] {
            assert!(Place::of(&Handle::new(text)).is_err(), "{text:?}");
        }
    }

    #[test]
    fn texts_are_cut_between_characters_and_lose_their_markup() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(plain("a <b>bold</b> &lt;x&gt; &amp;lt; 1 > 0"), "a bold <x> &lt; 1 > 0");
    }
}
