//! The accessibility bus: how we get there, and who is there.
//!
//! The bus is asked for at `org.a11y.Bus`; a socket path is never guessed. An application is one or more objects that a
//! process has registered: some processes register several, GNOME's Qt programs an empty second one.

use std::time::{Duration, Instant};

use agent_desktop_core::geometry::Rect;
use agent_desktop_core::tree::Handle;
use agent_desktop_core::{Deadline, Error, ErrorCode, Result};

use crate::dbus::{Call, Connection, Failure, Malformed, Message, session_bus_addresses};
use crate::host;
use crate::map::Toolkit;

pub(crate) const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
pub(crate) const APPLICATION: &str = "org.a11y.atspi.Application";
pub(crate) const ACTION: &str = "org.a11y.atspi.Action";
pub(crate) const COMPONENT: &str = "org.a11y.atspi.Component";
pub(crate) const EDITABLE_TEXT: &str = "org.a11y.atspi.EditableText";
pub(crate) const SELECTION: &str = "org.a11y.atspi.Selection";
pub(crate) const TABLE: &str = "org.a11y.atspi.Table";
pub(crate) const TEXT: &str = "org.a11y.atspi.Text";
pub(crate) const VALUE: &str = "org.a11y.atspi.Value";
pub(crate) const CACHE: &str = "org.a11y.atspi.Cache";
pub(crate) const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

pub(crate) const REGISTRY: &str = "org.a11y.atspi.Registry";
pub(crate) const ROOT: &str = "/org/a11y/atspi/accessible/root";
const NULL: &str = "/org/a11y/atspi/null";

/// How long applications may take to say their name before those that are slow are listed without it.
const SLOW_APPLICATION: Duration = Duration::from_millis(1500);
/// The same for applications whose process is stopped.
const STOPPED_APPLICATION: Duration = Duration::from_millis(100);

/// An accessible object: who owns it, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    pub(crate) bus: Box<str>,
    pub(crate) path: Box<str>,
}

impl Object {
    pub(crate) fn new(bus: &str, path: &str) -> Object {
        Object { bus: bus.into(), path: path.into() }
    }

    /// Whether this is AT-SPI's way to say "nobody".
    pub(crate) fn is_null(&self) -> bool {
        &*self.path == NULL || self.path.is_empty()
    }

    /// The handle of this object: a bus name has no slash, so the first one divides.
    pub(crate) fn handle(&self) -> Handle {
        Handle::new(format!("{}{}", self.bus, self.path))
    }

    /// The object of a handle.
    ///
    /// # Errors
    /// `INVALID_ARGS` when the handle was not made here.
    pub(crate) fn from_handle(handle: &Handle) -> Result<Object> {
        match handle.as_str().find('/') {
            Some(slash) if slash > 0 => {
                let (bus, path) = handle.as_str().split_at(slash);
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":._-/".contains(&byte);
                if bus.len() <= 255 && path.len() <= 4096 && handle.as_str().bytes().all(is_plain) {
                    return Ok(Object::new(bus, path));
                }
                Err(Error::invalid("the stored handle is not one of ours"))
            }
            _ => Err(Error::invalid("the stored handle is not one of ours")),
        }
    }
}

/// Sends `Properties.Get`.
pub(crate) fn send_get(connection: &mut Connection, object: &Object, interface: &str, property: &str) -> u32 {
    connection.send(&Call {
        signature: "ss",
        body: &|writer| {
            writer.string(interface);
            writer.string(property);
        },
        ..Call::new(&object.bus, &object.path, PROPERTIES, "Get")
    })
}

/// Sends a call without arguments.
pub(crate) fn send_plain(connection: &mut Connection, object: &Object, interface: &str, member: &str) -> u32 {
    connection.send(&Call::new(&object.bus, &object.path, interface, member))
}

/// Asks where an object is on the screen.
pub(crate) fn send_extents(connection: &mut Connection, object: &Object) -> u32 {
    connection.send(&Call {
        signature: "u",
        body: &|writer| writer.u32(0),
        ..Call::new(&object.bus, &object.path, COMPONENT, "GetExtents")
    })
}

/// The answer to [`send_extents`].
pub(crate) fn extents_of(message: &Message) -> std::result::Result<Rect, Malformed> {
    let mut body = message.body("(iiii)")?;
    body.structure()?;
    Ok(Rect::from_pixels(body.i32()?, body.i32()?, body.i32()?, body.i32()?))
}

/// Sends a call with one number.
pub(crate) fn send_number(
    connection: &mut Connection,
    object: &Object,
    interface: &str,
    member: &str,
    number: i32,
) -> u32 {
    connection.send(&Call {
        signature: "i",
        body: &|writer| writer.i32(number),
        ..Call::new(&object.bus, &object.path, interface, member)
    })
}

/// The string in a variant.
pub(crate) fn variant_string(message: &Message) -> Result<String, Failure> {
    let mut body = message.body("v")?;
    match body.signature()?.as_ref() {
        "s" => Ok(body.string()?.into_owned()),
        _ => Err(Failure::Malformed("variant")),
    }
}

/// The number in a variant; any numeric type.
pub(crate) fn variant_number(message: &Message) -> Result<f64, Failure> {
    let mut body = message.body("v")?;
    match body.signature()?.as_ref() {
        "d" => Ok(body.f64()?),
        "i" => Ok(f64::from(body.i32()?)),
        "u" => Ok(f64::from(body.u32()?)),
        _ => Err(Failure::Malformed("variant")),
    }
}

/// The truth value in a variant.
pub(crate) fn variant_bool(message: &Message) -> Result<bool, Failure> {
    let mut body = message.body("v")?;
    match body.signature()?.as_ref() {
        "b" => Ok(body.bool()?),
        _ => Err(Failure::Malformed("variant")),
    }
}

/// An array of references.
pub(crate) fn objects(message: &Message, owner: &str) -> Result<Vec<Object>, Failure> {
    let mut body = message.body("a(so)")?;
    let end = body.array(8)?;
    let mut objects = Vec::new();
    while body.more(end) {
        let (bus, path) = body.reference()?;
        objects.push(owned_by(&bus, &path, owner));
    }
    Ok(objects)
}

/// One reference.
pub(crate) fn object(message: &Message, owner: &str) -> Result<Object, Failure> {
    let mut body = message.body("(so)")?;
    let (bus, path) = body.reference()?;
    Ok(owned_by(&bus, &path, owner))
}

/// A reference as it came; on a direct connection applications leave their own bus name out.
pub(crate) fn owned_by(bus: &str, path: &str, owner: &str) -> Object {
    Object::new(if bus.is_empty() { owner } else { bus }, path)
}

/// The state set.
pub(crate) fn states(message: &Message) -> Result<u64, Failure> {
    let mut body = message.body("au")?;
    let end = body.array(4)?;
    let mut states = 0_u64;
    for word in 0..2 {
        if body.more(end) {
            states |= u64::from(body.u32()?) << (32 * word);
        }
    }
    Ok(states)
}

/// A registered application.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    pub(crate) root: Object,
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) toolkit_name: String,
    pub(crate) toolkit_version: String,
    pub(crate) windows: Vec<Object>,
    /// Whether it answered: its name and its windows are known. Otherwise it has the name of its process.
    pub(crate) answers: bool,
}

impl Registered {
    pub(crate) fn toolkit(&self) -> Toolkit {
        Toolkit::from_name(&self.toolkit_name)
    }
}

/// A failure as an error of ours, about the bus itself.
pub(crate) fn bus_error(failure: &Failure) -> Error {
    let error = match failure {
        Failure::Timeout => Error::new(ErrorCode::Timeout, "the accessibility bus did not answer in time")
            .kind("deadline")
            .hint("the accessibility bus is there but silent; see whether at-spi2-registryd runs"),
        _ => Error::new(ErrorCode::PermDenied, "the accessibility bus cannot be reached").hint(
            "install at-spi2-core and run inside the desktop session (DBUS_SESSION_BUS_ADDRESS set), \
             then start the application again",
        ),
    };
    error.platform_detail(failure.to_string()).delivery(agent_desktop_core::Delivery::NotDelivered)
}

/// The connection to the accessibility bus.
#[derive(Debug)]
pub(crate) struct Bus {
    pub(crate) connection: Connection,
    /// Whether we have told the registry that we listen; ATK applications serve their cache only then.
    is_listening: bool,
}

impl Bus {
    /// Connects to the accessibility bus.
    ///
    /// # Errors
    /// `PERM_DENIED` when there is none, `TIMEOUT` when there is one and it is silent.
    pub(crate) fn connect(deadline: Deadline) -> Result<Bus> {
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // The variable is how sandboxes hand the bus in. A dead one does not keep us from asking.
        if let Some(address) = environment("AT_SPI_BUS_ADDRESS")
            && let Ok(connection) = Connection::open(&address, true)
        {
            return Ok(Bus { connection, is_listening: false });
        }
        let mut last = Failure::Disconnected("no session bus".into());
        for session in session_bus_addresses(&environment) {
            match accessibility_address(&session, deadline.at())
                .and_then(|address| Connection::open(&address, true))
            {
                Ok(connection) => return Ok(Bus { connection, is_listening: false }),
                // A session bus that was asked and has no answer is final; one that is not there is not.
                Err(failure @ (Failure::Timeout | Failure::Remote { .. })) => {
                    return Err(bus_error(&failure));
                }
                Err(failure) => last = failure,
            }
        }
        Err(bus_error(&last))
    }

    /// Tells the registry that somebody listens, and waits until this application knows. Two round trips, once for each
    /// connection; the registry forgets it when the connection ends.
    ///
    /// Only where `GetItems` is wanted: everybody starts to send events, and see [`Toolkit::survives_visitors`].
    ///
    /// [`Toolkit::survives_visitors`]: crate::map::Toolkit::survives_visitors
    pub(crate) fn listen(&mut self, owner: &str, deadline: Deadline) {
        if self.is_listening {
            return;
        }
        self.is_listening = true;
        let registered = self.connection.send(&Call {
            signature: "sass",
            body: &|writer| {
                writer.string("object:children-changed");
                writer.u32(0);
                writer.string(owner);
            },
            ..Call::new(REGISTRY, "/org/a11y/atspi/registry", "org.a11y.atspi.Registry", "RegisterEvent")
        });
        // The registry tells applications before it answers, and this question reaches the application after that.
        let _ = self.connection.wait(registered, deadline.at());
        let asked = send_get(&mut self.connection, &Object::new(owner, ROOT), ACCESSIBLE, "ChildCount");
        let _ = self.connection.wait(asked, deadline.at());
    }

    /// Asks the registry whether it is there. One round trip, the first one included.
    ///
    /// # Errors
    /// As [`bus_error`].
    pub(crate) fn greet(&mut self, deadline: Deadline) -> Result<()> {
        let registry = Object::new(REGISTRY, ROOT);
        let serial = send_get(&mut self.connection, &registry, ACCESSIBLE, "ChildCount");
        match self.connection.wait(serial, deadline.at()) {
            Ok(_) => Ok(()),
            Err(failure) => Err(bus_error(&failure)),
        }
    }

    /// Everyone registered, with name, process, toolkit and windows. Two round trips.
    ///
    /// Who does not answer in time is listed by process name, with `answers` false.
    ///
    /// # Errors
    /// As [`bus_error`].
    pub(crate) fn applications(&mut self, deadline: Deadline) -> Result<Vec<Registered>> {
        let registry = Object::new(REGISTRY, ROOT);
        let serial = send_plain(&mut self.connection, &registry, ACCESSIBLE, "GetChildren");
        let roots = self
            .connection
            .wait(serial, deadline.at())
            .and_then(|message| objects(&message, REGISTRY))
            .map_err(|failure| bus_error(&failure))?;
        let started = Instant::now();
        let asked: Vec<(Object, [u32; 5])> = roots
            .into_iter()
            .filter(|root| !root.is_null())
            .map(|root| {
                let pid = self.connection.send(&Call {
                    signature: "s",
                    body: &|writer| writer.string(&root.bus),
                    ..Call::new(
                        "org.freedesktop.DBus",
                        "/org/freedesktop/DBus",
                        "org.freedesktop.DBus",
                        "GetConnectionUnixProcessID",
                    )
                });
                let serials = [
                    pid,
                    send_get(&mut self.connection, &root, ACCESSIBLE, "Name"),
                    send_plain(&mut self.connection, &root, ACCESSIBLE, "GetChildren"),
                    send_get(&mut self.connection, &root, APPLICATION, "ToolkitName"),
                    send_get(&mut self.connection, &root, APPLICATION, "Version"),
                ];
                (root, serials)
            })
            .collect();
        let mut applications = Vec::with_capacity(asked.len());
        for (root, serials) in asked {
            let [pid, name, windows, toolkit, version] = serials;
            let pid = match self.connection.wait(pid, deadline.at()) {
                Ok(message) => message.body("u").and_then(|mut body| body.u32()).unwrap_or(0),
                Err(Failure::Remote { .. }) => continue, // gone meanwhile
                Err(failure) => return Err(bus_error(&failure)),
            };
            let patience = if host::is_stopped(pid) { STOPPED_APPLICATION } else { SLOW_APPLICATION };
            // Who is silent leaves time to say so, and to see which windows it has.
            let until = started + patience.min(deadline.remaining(started) / 2);
            let (name, answers) = match self.connection.wait(name, until) {
                Ok(message) => (variant_string(&message).unwrap_or_default(), true),
                Err(Failure::Timeout) => (host::command_name(pid), false),
                Err(Failure::Disconnected(why)) => return Err(bus_error(&Failure::Disconnected(why))),
                Err(_) => continue,
            };
            let until = if answers { deadline.at() } else { until };
            let mut text = |serial| {
                self.connection
                    .wait(serial, until)
                    .and_then(|message| variant_string(&message))
                    .unwrap_or_default()
            };
            let (toolkit_name, toolkit_version) = (text(toolkit), text(version));
            let windows =
                self.connection.wait(windows, until).and_then(|message| objects(&message, &root.bus));
            // No answer is not the answer that there are none.
            let answers = answers && !matches!(windows, Err(Failure::Timeout));
            let windows = windows.unwrap_or_default();
            applications.push(Registered {
                root,
                name,
                pid,
                toolkit_name,
                toolkit_version,
                windows,
                answers,
            });
        }
        self.connection.forget_replies();
        Ok(applications)
    }
}

/// Asks the desktop where its accessibility bus is.
pub(crate) fn accessibility_address(session: &str, deadline: Instant) -> Result<String, Failure> {
    let mut connection = Connection::open(session, true)?;
    let message = connection
        .call(&Call::new("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress"), deadline)?;
    let address = message.body("s")?.string()?.into_owned();
    if address.is_empty() {
        Err(Failure::Disconnected("the desktop has no accessibility bus".into()))
    } else {
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_divide_at_the_first_slash() {
        let object = Object::new(":1.42", "/org/a11y/atspi/accessible/7");
        assert_eq!(Object::from_handle(&object.handle()).unwrap(), object);
        for text in ["", "/only/path", ":1.4", ":1.4/a b", ":1.4/\n"] {
            assert!(Object::from_handle(&Handle::new(text)).is_err(), "{text:?}");
        }
    }

    #[test]
    fn nobody_is_recognised() {
        assert!(Object::new(":1.1", NULL).is_null());
    }
}
