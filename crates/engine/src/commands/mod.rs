//! Every command: one file each, with its request, its reply and what it does; listed in one table here.
//!
//! From the table come the command line, the decoding of JSON arguments, and the checks before a command runs. Adding a
//! command is one file and one line.

// Flags of a command line are independent switches; an enum would not make them clearer.
#![allow(clippy::struct_excessive_bools, reason = "the flags of the command line")]

use std::fmt;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use serde::Serialize;

use crate::context::{Context, Format, OPERATION_MS, Options, SNAPSHOT_MS};
use crate::envelope;

mod ref_action;
pub(crate) mod window_change;

/// What a command answers. Becomes `data` of the envelope.
pub trait Reply: Serialize {
    /// The same for people and models, where a line or a tree says it better than JSON.
    fn outline(&self) -> Option<String> {
        None
    }

    /// What reached an application, for commands that act on one.
    fn delivery(&self) -> Option<&'static str> {
        None
    }

    /// Whether the process ends as after a failure, although there is a result.
    fn is_failure(&self) -> bool {
        false
    }
}

/// A reply as it is printed.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) is_failure: bool,
    pub(crate) delivery: Option<&'static str>,
}

/// What a command does to the world, and what it needs for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// It changes something.
    pub mutates: bool,
    /// It reads or operates applications.
    pub accessibility: bool,
    /// It takes pictures.
    pub screen: bool,
    /// It takes the interaction lease.
    pub takes_lease: bool,
    /// It accepts `--wait-for` and `--wait-for-gone`.
    pub waits: bool,
    /// It fails without `--headed`.
    pub needs_headed: bool,
}

impl Effects {
    /// Looks at nothing but ourselves, or at what needs no permission.
    pub const NONE: Effects = Effects {
        mutates: false,
        accessibility: false,
        screen: false,
        takes_lease: false,
        waits: false,
        needs_headed: false,
    };
    /// Reads applications.
    pub const READS: Effects = Effects { accessibility: true, ..Effects::NONE };
    /// Operates applications.
    pub const ACTS: Effects = Effects { mutates: true, takes_lease: true, ..Effects::READS };
    /// Takes pictures, of one window or of a whole display.
    pub const CAPTURES: Effects = Effects { mutates: true, screen: true, ..Effects::READS };
    /// Moves the pointer.
    pub const POINTS: Effects = Effects { needs_headed: true, ..Effects::ACTS };

    /// Whether it does something to applications or to what they share, rather than only look.
    pub(crate) const fn operates(self) -> bool {
        // What takes a picture changes a file of the caller's, and nothing on the desktop.
        self.takes_lease || self.needs_headed || (self.mutates && self.accessibility && !self.screen)
    }

    /// The same, without the lease.
    #[must_use]
    pub const fn without_lease(self) -> Effects {
        Effects { takes_lease: false, ..self }
    }

    /// The same, and changes something.
    #[must_use]
    pub const fn changing(self) -> Effects {
        Effects { mutates: true, ..self }
    }

    /// The same, and takes the lease.
    #[must_use]
    pub const fn leased(self) -> Effects {
        Effects { takes_lease: true, ..self }
    }

    /// The same, and accepts `--wait-for`.
    #[must_use]
    pub const fn waiting(self) -> Effects {
        Effects { waits: true, ..self }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, at most; [`Command::effects`] says it for one call.
    pub effects: Effects,
    /// Whether it has `--timeout-ms`.
    pub has_timeout: bool,
}

/// A command with its arguments: what a door makes and the engine runs.
pub trait Run: fmt::Debug {
    /// What it answers.
    type Reply: Reply;

    /// What this very call does, `table` being what the command does at most.
    fn effects(&self, table: Effects) -> Effects {
        table
    }

    /// Refuses arguments that make no sense, before anything is looked at.
    ///
    /// # Errors
    /// `INVALID_ARGS`.
    fn check(&self, _options: &Options) -> Result<()> {
        Ok(())
    }

    /// Does it.
    fn run(&self, context: &Context<'_>) -> Result<Self::Reply>;
}

macro_rules! commands {
    ($($name:literal $module:ident::$type:ident, $effects:expr $(, $timeout:ident: $default:expr)?;)*) => {
        $(pub mod $module;)*
        $(pub use $module::$type;)*

        /// A command with its arguments.
        #[derive(Clone, Debug)]
        #[cfg_attr(feature = "clap", derive(clap::Subcommand))]
        #[allow(missing_docs, reason = "each variant is documented at its type")]
        #[allow(clippy::large_enum_variant, reason = "there is one at a time")]
        pub enum Command {
            $(#[cfg_attr(feature = "clap", command(name = $name))] $type($type),)*
        }

        impl Command {
            /// Every command, in the order of the help.
            pub const SPECS: &[Spec] = &[
                $(Spec { name: $name, effects: $effects, has_timeout: has_timeout!($($timeout)?) },)*
            ];

            /// Its name on the command line.
            pub const fn name(&self) -> &'static str {
                match self { $(Command::$type(_) => $name,)* }
            }

            /// Its row in the table.
            pub const fn spec(&self) -> Spec {
                match self {
                    $(Command::$type(_) =>
                        Spec { name: $name, effects: $effects, has_timeout: has_timeout!($($timeout)?) },)*
                }
            }

            /// What this very call does.
            pub fn effects(&self) -> Effects {
                match self { $(Command::$type(command) => command.effects($effects),)* }
            }

            /// Makes a command from its name and its arguments in JSON; `null` stands for no arguments.
            ///
            /// # Errors
            /// `INVALID_ARGS` for unknown commands, unknown arguments, and values of the wrong type.
            pub fn decode(name: &str, arguments: serde_json::Value) -> Result<Command> {
                match name {
                    $($name => Ok(Command::$type(decode_arguments(arguments)?)),)*
                    _ => Err(Error::invalid("there is no such command")
                        .hint("agent-desktop --help lists the commands")),
                }
            }

            /// The deadline asked for and the one it has otherwise, in milliseconds.
            pub(crate) fn timeout(&self) -> (Option<u64>, u64) {
                match self { $(Command::$type(_command) => timeout!(_command $($timeout: $default)?),)* }
            }

            pub(crate) fn check(&self, options: &Options) -> Result<()> {
                match self { $(Command::$type(command) => command.check(options),)* }
            }

            /// Runs it and writes the reply.
            pub(crate) fn run(&self, context: &Context<'_>) -> Result<Answer> {
                match self {
                    $(Command::$type(command) => {
                        command.run(context).map(|reply| write($name, &reply, context.options.format))
                    })*
                }
            }
        }
    };
}

macro_rules! has_timeout {
    (timeout_ms) => {
        true
    };
    (own) => {
        true
    };
    ($($other:ident)?) => {
        false
    };
}

macro_rules! timeout {
    ($command:ident own: $default:expr) => {
        ($command.own_timeout(), $default)
    };
    ($command:ident $field:ident: $default:expr) => {
        ($command.$field, $default)
    };
    ($command:ident) => {
        (None, OPERATION_MS)
    };
}

// Name on the command line, type, effects (the matrix of the contract), field that holds the deadline and its default.
commands! {
    "snapshot" snapshot::Snapshot, Effects::READS.waiting(), timeout_ms: SNAPSHOT_MS;
    "find" find::Find, Effects::READS, timeout_ms: OPERATION_MS;
    "get" get::Get, Effects::READS, timeout_ms: OPERATION_MS;
    "is" is::Is, Effects::READS, timeout_ms: OPERATION_MS;
    "click" click::Click, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "double-click" double_click::DoubleClick, Effects::POINTS.waiting(), timeout_ms: OPERATION_MS;
    "triple-click" triple_click::TripleClick, Effects::POINTS.waiting(), timeout_ms: OPERATION_MS;
    "right-click" right_click::RightClick, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "type" type_text::TypeText, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "set-value" set_value::SetValue, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "clear" clear::Clear, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "focus" focus::Focus, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "select" select::Select, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "toggle" toggle::Toggle, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "check" check::Check, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "uncheck" uncheck::Uncheck, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "expand" expand::Expand, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "collapse" collapse::Collapse, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "scroll" scroll::Scroll, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "scroll-to" scroll_to::ScrollTo, Effects::ACTS.waiting(), timeout_ms: OPERATION_MS;
    "text" text::Text, Effects::ACTS, own: OPERATION_MS;
    "menu" menu::Menu, Effects::ACTS.waiting(), own: menu::WALK_MS;
    "choose-file" choose_file::ChooseFile, Effects::ACTS.waiting(), timeout_ms: choose_file::CHOOSE_MS;
    "press" press::Press, Effects::ACTS, timeout_ms: OPERATION_MS;
    "key-down" key_down::KeyDown, Effects::ACTS.without_lease();
    "key-up" key_up::KeyUp, Effects::ACTS.without_lease();
    "hover" hover::Hover, Effects::POINTS.waiting(), timeout_ms: OPERATION_MS;
    "drag" drag::Drag, Effects::POINTS.waiting(), timeout_ms: OPERATION_MS;
    "mouse-move" mouse_move::MouseMove, Effects::POINTS, timeout_ms: OPERATION_MS;
    "mouse-click" mouse_click::MouseClick, Effects::POINTS, timeout_ms: OPERATION_MS;
    "mouse-wheel" mouse_wheel::MouseWheel, Effects::POINTS, timeout_ms: OPERATION_MS;
    "mouse-down" mouse_down::MouseDown, Effects::POINTS.without_lease();
    "mouse-up" mouse_up::MouseUp, Effects::POINTS.without_lease();
    "launch" launch::Launch, Effects::ACTS, timeout: launch::LAUNCH_MS;
    "close-app" close_app::CloseApp, Effects::ACTS, timeout_ms: OPERATION_MS;
    "focus-window" focus_window::FocusWindow, Effects::ACTS, timeout_ms: OPERATION_MS;
    "resize-window" resize_window::ResizeWindow, Effects::ACTS, timeout_ms: OPERATION_MS;
    "move-window" move_window::MoveWindow, Effects::ACTS, timeout_ms: OPERATION_MS;
    "minimize" minimize::Minimize, Effects::ACTS, timeout_ms: OPERATION_MS;
    "maximize" maximize::Maximize, Effects::ACTS, timeout_ms: OPERATION_MS;
    "restore" restore::Restore, Effects::ACTS, timeout_ms: OPERATION_MS;
    "list-apps" list_apps::ListApps, Effects::NONE, timeout_ms: OPERATION_MS;
    "list-windows" list_windows::ListWindows, Effects::NONE, timeout_ms: OPERATION_MS;
    "list-displays" list_displays::ListDisplays, Effects::NONE, timeout_ms: OPERATION_MS;
    "list-surfaces" list_surfaces::ListSurfaces, Effects::READS, timeout_ms: OPERATION_MS;
    "screenshot" screenshot::Screenshot, Effects::CAPTURES, timeout_ms: OPERATION_MS;
    "wait" wait::Wait, Effects::READS, timeout: wait::WAIT_MS;
    "clipboard-get" clipboard_get::ClipboardGet, Effects::NONE, timeout_ms: OPERATION_MS;
    "clipboard-set" clipboard_set::ClipboardSet, Effects::NONE.changing().leased(), timeout_ms: OPERATION_MS;
    "clipboard-clear" clipboard_clear::ClipboardClear, Effects::NONE.changing().leased();
    "list-notifications" list_notifications::ListNotifications, Effects::NONE, timeout_ms: OPERATION_MS;
    "dismiss-notification" dismiss_notification::DismissNotification, Effects::NONE.changing().leased(), timeout_ms: OPERATION_MS;
    "dismiss-all-notifications" dismiss_all_notifications::DismissAllNotifications, Effects::NONE.changing().leased(), timeout_ms: OPERATION_MS;
    "notification-action" notification_action::NotificationAction, Effects::NONE.changing().leased(), timeout_ms: OPERATION_MS;
    "batch" batch::Batch, Effects::NONE.changing(), timeout_ms: batch::BATCH_MS;
    "session" session::Session, Effects::NONE.changing();
    "trace" trace::Trace, Effects::NONE.changing();
    "status" status::Status, Effects::NONE;
    "doctor" doctor::Doctor, Effects::NONE.changing().leased(), timeout_ms: OPERATION_MS;
    "permissions" permissions::Permissions, Effects::NONE;
    "skills" skills::Skills, Effects::NONE;
    "version" version::Version, Effects::NONE;
}

fn decode_arguments<T: serde::de::DeserializeOwned>(arguments: serde_json::Value) -> Result<T> {
    let arguments = match arguments {
        serde_json::Value::Null => serde_json::Value::Object(serde_json::Map::new()),
        other => other,
    };
    serde_json::from_value(arguments).map_err(|error| {
        Error::invalid("the arguments do not fit the command").platform_detail(error.to_string())
    })
}

fn write<R: Reply>(name: &str, reply: &R, format: Format) -> Answer {
    let text = match format {
        Format::Json => None,
        Format::Outline => reply.outline(),
    };
    Answer {
        text: text.unwrap_or_else(|| envelope::success(name, reply)),
        is_failure: reply.is_failure(),
        delivery: reply.delivery(),
    }
}

/// One line an item, or a word saying that there is none.
pub(crate) fn lines(items: impl Iterator<Item = String>, none: &str) -> String {
    let text: Vec<String> = items.collect();
    if text.is_empty() { none.to_owned() } else { text.join("\n") }
}

/// The reply of a command that never has one.
#[derive(Debug, Serialize)]
pub enum Never {}

impl Reply for Never {}

/// The refusal to hold a key or a button.
fn held_input(what: &str) -> Error {
    Error::new(ErrorCode::ActionNotSupported, format!("{what} would stay down when this process ends"))
        .hint("use press, mouse-click or drag, which release what they hold")
        .delivery(Delivery::NotDelivered)
}

/// The words of `--surface`, for the parser.
#[cfg(feature = "clap")]
fn surface_words() -> clap::builder::PossibleValuesParser {
    use agent_desktop_core::platform::SurfaceKind;
    SurfaceKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().into()
}

/// A list that may be written as its only item.
fn one_or_more<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<String>, D::Error> {
    use serde::Deserialize;
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    Ok(match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(one) => vec![one],
        OneOrMore::More(more) => more,
    })
}

/// The action of a command that has several: an object whose `action` names it, beside the arguments of that action and
/// no others.
fn action_of<'de, D: serde::Deserializer<'de>, T: serde::de::DeserializeOwned>(
    deserializer: D,
    otherwise: Option<&str>,
) -> std::result::Result<T, D::Error> {
    use serde::Deserialize;
    let mut object = serde_json::Map::deserialize(deserializer)?;
    if let (None, Some(action)) = (object.get("action"), otherwise) {
        object.insert("action".to_owned(), action.into());
    }
    serde_json::from_value(object.into()).map_err(serde::de::Error::custom)
}
