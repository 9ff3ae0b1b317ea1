//! What a system has to provide: the porting guide, on one page.
//!
//! Every method blocks until it has an answer or its deadline has passed, is called from one thread at a time, and
//! returns what it read so far rather than nothing. Nothing here has a default body, so that the compiler lists what a
//! new system still lacks.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::action::{Direction, MouseButton};
use crate::deadline::Deadline;
use crate::delivery::Delivery;
use crate::error::Result;
use crate::geometry::{Point, Rect};
use crate::key::{Chord, Modifier};
use crate::tree::{Handle, Node, Tree};

/// Where time comes from.
pub trait Clock {
    /// Now.
    fn now(&self) -> Instant;
    /// Waits.
    fn sleep(&self, duration: Duration);
}

/// State of one permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// It is there.
    Granted,
    /// It is missing; the text says what to do.
    Denied(String),
    /// This system has no such permission.
    NotRequired,
    /// It could not be found out.
    Unknown,
}

/// Permissions that commands need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Reading and operating applications.
    pub accessibility: Permission,
    /// Taking pictures.
    pub screen_recording: Permission,
    /// Scripting other applications.
    pub automation: Permission,
}

/// How an application presents itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presentation {
    /// It has ordinary windows.
    Foreground,
    /// It lives in a tray or a panel.
    Background,
}

/// A running application.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// The name it gives itself.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Proof that it is the same process later; absent if the system gives none.
    pub process_instance: Option<String>,
    /// The platform's application id.
    pub application_id: Option<String>,
    /// How it presents itself.
    pub presentation: Option<Presentation>,
    /// The toolkit it is made with, if it says so.
    pub toolkit: Option<String>,
    /// Its place in the accessibility tree.
    pub handle: Option<Handle>,
    /// Whether it can be read; `None`: it has a tree, and did not answer.
    pub accessible: Option<bool>,
}

/// A top-level window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Opaque id.
    pub id: String,
    /// Its title; may be empty.
    pub title: String,
    /// Name of its application.
    pub app_name: String,
    /// Process of its application.
    pub pid: u32,
    /// Proof that it is the same process later.
    pub process_instance: Option<String>,
    /// Content rectangle, without the frame that a window manager draws.
    pub bounds: Option<Rect>,
    /// What a user calls the window: with the frame that a window manager draws, without a shadow. `None`: not known.
    pub frame: Option<Rect>,
    /// Whether it has the keyboard.
    pub is_focused: bool,
    /// Whether it is minimized, if the system tells.
    pub minimized: Option<bool>,
    /// Whether it fills its display, maximized or full screen, if the system tells.
    pub maximized: Option<bool>,
    /// Whether it can be seen in principle (mapped, on this desktop, not minimized), if the system tells.
    pub visible: Option<bool>,
    /// Whether it is modal: other windows of its application do not take input while it is open.
    pub is_modal: bool,
    /// Its root in the accessibility tree.
    pub handle: Option<Handle>,
    /// Whether its content can be read; `None`: it should, and its application has not told it yet.
    pub accessible: Option<bool>,
}

/// A display, in the order of `--screen`: the primary one first.
#[derive(Clone, Debug, PartialEq)]
pub struct Display {
    /// Opaque id.
    pub id: String,
    /// What it covers of the desktop.
    pub bounds: Rect,
    /// Whether it is the primary one.
    pub is_primary: bool,
    /// Physical pixels for a logical one.
    pub scale: f64,
}

macro_rules! surface_kinds {
    ($($variant:ident $kebab:literal $snake:literal),* $(,)?) => {
        /// What can be observed: a window, or something transient.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each variant is the surface of its name")]
        pub enum SurfaceKind { $($variant),* }

        impl SurfaceKind {
            /// Every kind.
            pub const ALL: &[SurfaceKind] = &[$(SurfaceKind::$variant),*];

            /// The word on the command line.
            pub const fn as_str(self) -> &'static str {
                match self { $(SurfaceKind::$variant => $kebab),* }
            }

            /// The word in JSON.
            pub const fn as_json(self) -> &'static str {
                match self { $(SurfaceKind::$variant => $snake),* }
            }

            /// The kind of this word, in either spelling.
            pub fn parse(text: &str) -> Option<SurfaceKind> {
                match text { $($kebab => Some(SurfaceKind::$variant),)* _ =>
                    SurfaceKind::ALL.iter().copied().find(|kind| kind.as_json() == text) }
            }
        }
    };
}

surface_kinds! {
    Window "window" "window", Focused "focused" "focused", Menu "menu" "menu", MenuBar "menubar" "menubar",
    Sheet "sheet" "sheet", Popover "popover" "popover", Alert "alert" "alert", Desktop "desktop" "desktop",
    Taskbar "taskbar" "taskbar", SystemTray "system-tray" "system_tray",
    QuickSettings "quick-settings" "quick_settings",
    NotificationCenter "notification-center" "notification_center", Toolbar "toolbar" "toolbar",
    Dock "dock" "dock", Spotlight "spotlight" "spotlight", MenuBarExtras "menu-bar-extras" "menu_bar_extras",
    SystemTrayOverflow "system-tray-overflow" "system_tray_overflow", StartMenu "start-menu" "start_menu",
    ActionCenter "action-center" "action_center",
}

/// Something transient that is open: a menu, a dialog, a popover.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    /// Opaque id, unique within the application while the surface is open.
    pub id: String,
    /// `menu`, `context_menu`, `sheet`, `popover`, `alert`, or `menubar` when that was asked for.
    pub kind: &'static str,
    /// Its title.
    pub title: Option<String>,
    /// How many items it has, for menus.
    pub item_count: Option<u32>,
    /// Its root.
    pub handle: Handle,
    /// A menu bar that does not show, and whose menus open all the same.
    pub is_hidden: bool,
}

/// What to observe.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The window; its bounds decide what is offscreen.
    pub window: Window,
    /// The root of the observation; `None`: the window's own root.
    pub root: Option<Handle>,
}

/// How much to observe. The contract's table C11.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Logical depth: unnamed groups in web pages do not count.
    pub max_depth: u32,
    /// Depth as the application counts.
    pub max_raw_depth: u32,
    /// Nodes in total.
    pub nodes: u32,
    /// Children of one node.
    pub children: u32,
    /// Bytes of one text.
    pub text_bytes: u32,
    /// Bytes of all text.
    pub total_text_bytes: u64,
    /// Also what is not showing: closed menus, other tabs, rows scrolled out of view.
    pub include_hidden: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_depth: 10,
            max_raw_depth: 50,
            nodes: 50_000,
            children: 4096,
            text_bytes: TEXT_READ,
            total_text_bytes: 8 * 1024 * 1024,
            include_hidden: false,
        }
    }
}

/// What stopped an observation before it was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The deadline.
    Deadline,
    /// A limit, named in the contract's words (`nodes`, `children`, `text`).
    Limit(&'static str),
    /// The application stopped answering or went away.
    Gone,
    /// Some facts could not be read.
    Unreadable,
}

/// What was observed.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The tree; its root is what was asked for.
    pub tree: Tree,
    /// What stopped it, if it is not complete.
    pub stopped: Option<Stop>,
    /// Nodes the platform looked at, pruned ones included.
    pub nodes_visited: u32,
    /// Whether the application has content that it does not publish yet (a browser that waits for a reader).
    pub needs_activation: bool,
}

/// What could be read of a handle.
#[derive(Clone, Debug)]
pub enum Reading {
    /// It lives; `parent` and `children` of the node are not filled in.
    Live(Box<Node>),
    /// It is gone.
    Gone,
    /// It did not answer in time.
    Unanswered,
}

/// A semantic operation on one element. What it means natively is the platform's to know; whether it worked is for the
/// engine to see.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Do what a click does.
    Activate,
    /// Open the context menu.
    ShowMenu,
    /// Take the keyboard focus.
    Focus,
    /// Replace all text.
    SetText(String),
    /// Insert text at the caret, replacing the selection.
    InsertText(String),
    /// Put the caret before the character of this number; the length of the text: behind the last one.
    SetCaret(u32),
    /// Select the characters from the first number up to, without, the second.
    SelectText(u32, u32),
    /// Put text in the place of the characters from `start` up to, without, `end`.
    ReplaceText {
        /// The first character that goes.
        start: u32,
        /// The first that stays.
        end: u32,
        /// What comes.
        text: String,
    },
    /// Set a number, within its range.
    SetNumber(f64),
    /// Change a check box, a switch, a toggle button.
    Toggle,
    /// Open (true) or close (false).
    SetExpanded(bool),
    /// Become the selected child of its container.
    Select,
    /// Move the view.
    Scroll(Direction),
    /// Come into view.
    ScrollIntoView,
}

/// Characters of one text that a tree holds.
pub const TEXT_READ: u32 = 64 * 1024;

/// What is wanted of a text. Offsets count characters (Unicode scalar values), whatever the toolkit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextQuery {
    /// From the first number up to, without, the second; `None`: all of it.
    pub range: Option<(u32, u32)>,
    /// The line on the screen that holds this offset, instead of the range.
    pub line_at: Option<u32>,
    /// Attributes (fonts, colours, spelling) as well.
    pub attributes: bool,
    /// Characters at most.
    pub limit: u32,
}

/// A text, or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextContent {
    /// Characters of the whole text.
    pub length: u32,
    /// Where the part begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// The part.
    pub text: String,
    /// Where the caret is, if there is one.
    pub caret: Option<u32>,
    /// What is selected.
    pub selections: Vec<(u32, u32)>,
    /// Attributes, as far as asked for.
    pub runs: Vec<TextRun>,
    /// A password: there is no text.
    pub is_secret: bool,
}

/// A part of a text with the same attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRun {
    /// Where it begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// Names and values, in the toolkit's words, sorted.
    pub attributes: Vec<(String, String)>,
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Performed {
    /// The application took it; `label` is the step in our words, `native` the platform's.
    Done {
        /// Our word: `press`, `set_text`.
        label: &'static str,
        /// The platform's word, for `platform_detail` and traces.
        native: String,
    },
    /// The element offers no such thing; nothing was sent.
    NotOffered,
    /// The application refused; nothing changed as far as it says.
    Refused {
        /// Our word for what was tried.
        label: &'static str,
        /// What the application answered.
        native: String,
    },
}

/// Who would receive a click at a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Hit {
    /// The element, or something inside it.
    Target,
    /// Something else.
    Other {
        /// Its role.
        role: crate::role::Role,
        /// Its name.
        name: Option<String>,
        /// Where it is.
        bounds: Option<Rect>,
    },
    /// Nobody can say: an ancestor answered, or nothing.
    Unknown,
}

/// Physical input. Every button and key pressed is released again before the call returns, on every path.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Put the pointer there.
    Move(Point),
    /// Click there.
    Click {
        /// Where.
        at: Point,
        /// Which button.
        button: MouseButton,
        /// How often.
        count: u32,
        /// Held meanwhile.
        modifiers: Vec<Modifier>,
    },
    /// Turn the wheel there; lines, positive up and left.
    Wheel {
        /// Where.
        at: Point,
        /// Lines up (positive) or down.
        dy: i32,
        /// Lines left (positive) or right.
        dx: i32,
        /// Held meanwhile.
        modifiers: Vec<Modifier>,
    },
    /// Press there, move, release there.
    Drag {
        /// From where.
        from: Point,
        /// To where.
        to: Point,
        /// How long the move takes.
        duration: Duration,
        /// How long to stay over the target before the release.
        drop_delay: Duration,
    },
    /// Press and release a chord.
    Chord(Chord),
    /// Type text into whatever has the focus.
    Text(String),
}

/// What to do with a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowOperation {
    /// Give it the keyboard and bring it to the front.
    Focus,
    /// Put the top left corner of its frame there.
    Move(Point),
    /// Give its frame this width and height.
    Resize(f64, f64),
    /// Take it off the screen.
    Minimize,
    /// Let it fill its display.
    Maximize,
    /// Bring it back if it is minimized, else undo the maximizing.
    Restore,
}

/// What to start.
#[derive(Clone, Debug, Default)]
pub struct LaunchRequest {
    /// Name of an application, of its desktop entry, or of an executable.
    pub app: String,
    /// Arguments, in order.
    pub args: Vec<String>,
    /// Environment, added to ours.
    pub env: Vec<(String, String)>,
    /// Working directory.
    pub cwd: Option<PathBuf>,
}

/// What was started.
#[derive(Clone, Debug)]
pub struct Launched {
    /// The name under which it will be found.
    pub name: String,
    /// The process that was started; the application may turn out to be another one.
    pub pid: u32,
    /// Proof that it is the same process later.
    pub process_instance: Option<String>,
    /// What marks the processes that come from it, where the system has such a thing.
    pub mark: Option<String>,
}

/// What to take a picture of.
#[derive(Clone, Debug)]
pub enum CaptureTarget {
    /// A display.
    Display(Display),
    /// A window's own pixels, whatever covers it.
    Window(Window),
    /// A part of the desktop.
    Region(Rect),
}

/// A picture, 8-bit RGB without padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// The part of the desktop that it shows, logical pixels. Of a window: its frame, or what of that could be had.
    pub area: Rect,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// `width * height * 3` bytes.
    pub rgb: Vec<u8>,
}

/// A form of what is in the clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClipboardForm {
    /// Text.
    Text,
    /// Files, as `file://` addresses.
    Files,
    /// A picture.
    Image,
}

/// What is in the clipboard, or is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClipboardContent {
    /// Text.
    Text(String),
    /// Files, as `file://` addresses.
    Files(Vec<String>),
    /// A picture, as a PNG file.
    Image(Vec<u8>),
}

/// What the clipboard offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClipboardOffer {
    /// Who put it there, in the platform's words; another content means another word, mostly.
    pub owner: String,
    /// The forms it can be had in, the richest first: files, image, text.
    pub forms: Vec<ClipboardForm>,
    /// Whether it is marked as a secret, as password managers do.
    pub is_concealed: bool,
}

/// A notification, as an application sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notification {
    /// By which it is known again and operated, in the platform's words; `None`: nobody was told.
    pub handle: Option<Handle>,
    /// The name its sender gives itself; may be empty.
    pub app_name: String,
    /// Its first line.
    pub title: String,
    /// The rest, with the markup that the sender wrote; may be empty.
    pub body: String,
    /// What it offers.
    pub actions: Vec<NotificationAction>,
}

/// Something that a notification offers to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationAction {
    /// The sender's word for it. `default` is what a click on the notification itself does.
    pub key: String,
    /// What its button says; may be empty.
    pub label: String,
}

/// Why a notification is no longer shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationEnd {
    /// Its time was over.
    Expired,
    /// A person took it away.
    Dismissed,
    /// A program took it away, or nobody says who.
    Closed,
}

/// What is heard of notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationEvent {
    /// One is shown; with the handle of one that was shown before: that one has another content now.
    Shown(Notification),
    /// One is no longer shown.
    Ended(Handle, NotificationEnd),
    /// Who showed notifications is gone, and all of them with it; `true`: somebody else shows them from now on.
    ServiceChanged(bool),
}

/// Listens to notifications, from the moment at which it was made.
pub trait NotificationWatch {
    /// What was heard next; `None`: nothing until the deadline. Fails when nothing can be heard any more.
    fn next(&mut self, deadline: Deadline) -> Result<Option<NotificationEvent>>;
}

/// How far an examination of the desktop goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examination {
    /// Looks, and changes nothing.
    Look,
    /// The same, and switches on what is off and can be switched on without harm.
    Repair,
    /// Opens a window of our own and proves that it is listed, shown in a picture, clicked and typed into. Moves the pointer
    /// and the focus, and puts both back. Call with the interaction lease held.
    Prove,
}

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    /// It is as it should be.
    Ok,
    /// Something will not work, or not for every application.
    Warning,
    /// What commands rely on is not there.
    Failed,
    /// It could not be looked at, because of something that another check says.
    Skipped,
}

impl CheckState {
    /// The word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            CheckState::Ok => "ok",
            CheckState::Warning => "warning",
            CheckState::Failed => "failed",
            CheckState::Skipped => "skipped",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, for programs.
    pub id: &'static str,
    /// What it came to.
    pub state: CheckState,
    /// What was seen.
    pub seen: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do; `None`: nothing.
    pub advice: Option<String>,
    /// Whether [`Examination::Repair`] would set it right.
    pub can_fix: bool,
    /// What was changed.
    pub fixed: Option<String>,
    /// Applications that it is about.
    pub apps: Vec<AppAdvice>,
}

impl Check {
    /// A check that found this.
    pub fn new(id: &'static str, why: &'static str, state: CheckState, seen: impl Into<String>) -> Check {
        Check {
            id,
            state,
            seen: seen.into(),
            why,
            advice: None,
            can_fix: false,
            fixed: None,
            apps: Vec::new(),
        }
    }

    /// With what to do about it.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Check {
        self.advice = Some(advice.into());
        self
    }
}

/// What to do about one application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppAdvice {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// What to do.
    pub advice: String,
}

/// Something that changed on the desktop.
#[derive(Clone, Debug, PartialEq)]
pub enum DesktopEvent {
    /// A window came. Its application may go by another name until [`DesktopEvent::AppNamed`].
    WindowOpened(Window),
    /// A window went, as it was last seen.
    WindowClosed(Window),
    /// An application came.
    AppLaunched(App),
    /// An application that was known by its window only has said what it is called.
    AppNamed(App),
    /// An application went, as it was last seen.
    AppTerminated(App),
    /// Another window has the keyboard, or none has.
    FocusChanged(Option<Window>),
    /// A menu, dialog or popover came, of the application that is looked at.
    SurfaceAppeared(Surface),
    /// One went, as it was last seen.
    SurfaceDismissed(Surface),
}

/// What was there when a watch began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DesktopCounts {
    /// Windows.
    pub windows: usize,
    /// Applications.
    pub apps: usize,
    /// Open surfaces of the application that is looked at.
    pub surfaces: usize,
}

/// Watches a desktop, from the moment at which it was made: what comes and goes between two calls is told as well.
pub trait DesktopWatch {
    /// What was there at the beginning.
    fn counts(&self) -> DesktopCounts;
    /// The application of a process, as far as it is known.
    fn app(&self, pid: u32) -> Option<App>;
    /// What happened next; `None`: nothing until the deadline. Fails when nothing can be seen any more.
    fn next(&mut self, deadline: Deadline) -> Result<Option<DesktopEvent>>;
}

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs, and is the same.
    Running,
    /// It is stopped, or does not answer.
    Unresponsive,
    /// It is gone, or another process has its number now.
    Exited,
}

/// Shortcuts and processes that are protected.
#[derive(Clone, Copy, Debug)]
pub struct Safety {
    /// Chords that quit, log out, lock or kill.
    pub blocked_chords: &'static [&'static str],
    /// Processes that `close-app` never ends.
    pub protected_processes: &'static [&'static str],
}

/// Cost of what was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Native calls made.
    pub calls: u64,
    /// Times it waited for answers.
    pub waits: u64,
}

/// A desktop that can be read and operated.
pub trait Platform: Clock {
    /// The operating system, as in `version`.
    fn name(&self) -> &'static str;
    /// What it protects.
    fn safety(&self) -> Safety;
    /// Surfaces it can observe.
    fn supported_surfaces(&self) -> &'static [SurfaceKind];
    /// Cost so far.
    fn statistics(&self) -> Statistics;

    /// What is permitted. Never prompts.
    fn permissions(&self, deadline: Deadline) -> Permissions;
    /// Running applications, those without accessibility included.
    fn apps(&self, deadline: Deadline) -> Result<Vec<App>>;
    /// Top-level windows, of one application or of all, topmost first where the order is known.
    fn windows(&self, app: Option<&App>, deadline: Deadline) -> Result<Vec<Window>>;
    /// Displays, primary first.
    fn displays(&self, deadline: Deadline) -> Result<Vec<Display>>;
    /// Open menus, dialogs and popovers of an application, innermost last; of one kind, if a kind is given. A menu bar is
    /// listed only when it is asked for.
    fn surfaces(&self, app: &App, kind: Option<SurfaceKind>, deadline: Deadline) -> Result<Vec<Surface>>;
    /// Whether this process still lives.
    fn process_state(&self, pid: u32, instance: Option<&str>) -> ProcessState;

    /// Reads a tree. Returns what it has at the deadline.
    fn observe(&self, scope: &Scope, limits: &Limits, deadline: Deadline) -> Result<Observation>;
    /// Reads single elements anew, all facts, all at once; the answers in the order of the handles.
    fn read(&self, handles: &[Handle], window: &Window, deadline: Deadline) -> Result<Vec<Reading>>;
    /// Reads the text of an element; `None`: it has none, or cannot tell lines.
    fn text(&self, target: &Handle, query: &TextQuery, deadline: Deadline) -> Result<Option<TextContent>>;
    /// The living ancestors of an element up to its window, nearest first.
    fn ancestors(&self, handle: &Handle, deadline: Deadline) -> Result<Vec<Handle>>;
    /// Whether this surface is what `target` has opened: it is `target` itself or hangs below it, or the application keeps
    /// it elsewhere and shows it in the place of the list of `target`.
    fn is_opened_by(&self, surface: &Handle, target: &Handle, deadline: Deadline) -> Result<bool> {
        Ok(surface == target || self.ancestors(surface, deadline)?.contains(target))
    }
    /// Who would receive a click at `point` meant for `target`.
    fn hit_test(&self, target: &Handle, window: &Window, point: Point, deadline: Deadline) -> Result<Hit>;

    /// The dialog, drawn inside the window, that keeps people from using `target`: browsers ask their questions so. A dialog
    /// that is a window says so itself ([`Window::is_modal`]).
    fn dialog_over(&self, target: &Handle, window: &Window, deadline: Deadline) -> Result<Option<Hit>>;

    /// The button of a dialog that Enter presses, if it says which that is.
    fn default_button(&self, _dialog: &Handle, _deadline: Deadline) -> Result<Option<Handle>> {
        Ok(None)
    }
    /// Makes a file chooser show the field in which a path is typed; `false`: it offers no such thing, and nothing was sent.
    fn show_location(&self, _dialog: &Handle, _deadline: Deadline) -> Result<bool> {
        Ok(false)
    }
    /// Carries out one semantic operation, once.
    fn perform(&self, target: &Handle, operation: &Operation, deadline: Deadline) -> Result<Performed>;
    /// Sends physical input, once. Returns how many characters were sent, for text.
    fn input(&self, input: &Input, deadline: Deadline) -> Result<usize>;
    /// Changes a window. Whether it did is for the caller to see.
    fn window_operation(&self, window: &Window, operation: WindowOperation, deadline: Deadline)
    -> Result<()>;

    /// Which of these running applications are what `launch` would start by that name, though they go by another one.
    fn instances(&self, name: &str, apps: &[App]) -> Vec<App>;
    /// Whether a process comes from what was launched: started by it, or on its behalf.
    fn comes_from(&self, pid: u32, launched: &Launched) -> bool;
    /// Starts an application; does not wait for its window.
    fn launch(&self, request: &LaunchRequest, deadline: Deadline) -> Result<Launched>;
    /// Asks an application to quit, or ends it; does not wait for the end.
    fn close(&self, app: &App, force: bool, deadline: Deadline) -> Result<()>;
    /// What the clipboard offers.
    fn clipboard_offer(&self, deadline: Deadline) -> Result<ClipboardOffer>;
    /// Reads the clipboard in one form; `None`: it has no such form. `limit`: bytes at most.
    fn clipboard_read(
        &self,
        form: ClipboardForm,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Option<ClipboardContent>>;
    /// Puts this into the clipboard, where it stays after we have ended; `None`: empties it.
    fn clipboard_write(&self, content: Option<&ClipboardContent>, deadline: Deadline) -> Result<()>;
    /// Watches what comes and goes; surfaces only of `app`.
    fn watch_desktop(&self, app: Option<&App>, deadline: Deadline) -> Result<Box<dyn DesktopWatch>>;
    /// Whether anybody shows notifications on this desktop. Starts nobody who could.
    fn has_notification_service(&self, deadline: Deadline) -> Result<bool>;
    /// Begins to listen: whatever is sent after this has returned is heard.
    fn watch_notifications(&self, deadline: Deadline) -> Result<Box<dyn NotificationWatch + '_>>;
    /// Takes a notification away, and sees that it is gone.
    fn dismiss_notification(&self, handle: &Handle, deadline: Deadline) -> Result<()>;
    /// Does what a notification offers, once; says whether its sender was seen to be told.
    fn invoke_notification(
        &self,
        notification: &Notification,
        action: &NotificationAction,
        deadline: Deadline,
    ) -> Result<Delivery>;
    /// Takes a picture. Never returns the pixels of another window.
    fn capture(&self, target: &CaptureTarget, deadline: Deadline) -> Result<Image>;
    /// Examines the desktop itself. What is broken or silent is a check that failed, not an error; each check has a share of
    /// the time, so that one that hangs leaves time for the others.
    fn diagnose(&self, examination: Examination, deadline: Deadline) -> Result<Vec<Check>>;
}
