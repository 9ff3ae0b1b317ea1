//! One example or more for every command: what is typed, what comes back, what is seen in the application. The pages of
//! `docs/commands` show them, and `tests/examples.rs` runs them against a real application, in this order within a page.

/// What comes back; a part of it, in JSON. A text with `…` stands for any text that begins and ends so.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// Of `data`.
    Data(&'static str),
    /// Of `error`.
    Error(&'static str),
}

/// What is seen by somebody else than us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// There is nothing to see: the command only answers.
    Nothing,
    /// The application's own log gets a line that begins so.
    Log(&'static str),
    /// The sender of a notification is told this.
    Sender(&'static str),
    /// The window has another place or size.
    Rectangle,
    /// The window is not on the screen.
    Unmapped,
    /// The window has the keyboard.
    Active,
    /// The clipboard holds this.
    Clipboard(&'static str),
    /// A file of this name is there.
    File(&'static str),
    /// A window with this title is there.
    Window(&'static str),
    /// No window with this title is there.
    NoWindow(&'static str),
}

impl Proof {
    /// The same for a reader.
    pub(crate) fn sentence(self) -> Option<String> {
        Some(match self {
            Proof::Nothing => return None,
            Proof::Log(line) => format!("the application says `{line}`"),
            Proof::Sender(word) => format!("its sender is told `{word}`"),
            Proof::Rectangle => "the window system has the window in another place".to_owned(),
            Proof::Unmapped => "the window system has taken the window off the screen".to_owned(),
            Proof::Active => "the window manager says that the window is active".to_owned(),
            Proof::Clipboard("") => "another program finds nothing to paste".to_owned(),
            Proof::Clipboard(text) => format!("another program pastes `{text}`"),
            Proof::File(name) => format!("the file `{name}` is there"),
            Proof::Window(title) => format!("a window “{title}” is on the screen"),
            Proof::NoWindow(title) => format!("no window “{title}” is on the screen any more"),
        })
    }
}

/// A command line that is shown and run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Example {
    /// The command that it is for.
    pub(crate) command: &'static str,
    /// What it does, as a sentence.
    pub(crate) shows: &'static str,
    /// Where it runs: a page of the fixture, `windows`, `launch`, or `notifications`: in a session that has begun.
    pub(crate) page: &'static str,
    /// Words in the lines below that stand for an element: `REF…` for its ref, `XY` for its middle, `X` and `Y` for the two
    /// halves of that; role and name. `SESSION` is the id of a session of this name. `INDEX` is the index of a notification
    /// that was just sent: by whom, with which title.
    pub(crate) elements: &'static [(&'static str, &'static str, &'static str)],
    /// What is typed before.
    pub(crate) before: &'static [&'static [&'static str]],
    /// What is typed.
    pub(crate) args: &'static [&'static str],
    /// What comes back.
    pub(crate) answer: Answer,
    /// What is seen then.
    pub(crate) proof: Proof,
}

/// Where examples run.
pub(crate) const PAGES: &[&str] =
    &["controls", "texts", "lists", "scroll", "dialogs", "pointer", "windows", "launch", "notifications"];

/// A command line as one types it.
#[allow(dead_code, reason = "the tests that run the examples do not need it")]
pub(crate) fn line(args: &[&str]) -> String {
    let is_plain = |word: &&str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,:/=+@".contains(c))
    };
    let words = args.iter().map(|word| if is_plain(word) { (*word).to_owned() } else { format!("'{word}'") });
    std::iter::once("agent-desktop".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

const NONE: Example = Example {
    command: "",
    shows: "",
    page: "controls",
    elements: &[],
    before: &[],
    args: &[],
    answer: Answer::Data("{}"),
    proof: Proof::Nothing,
};

const SAVE: &[(&str, &str, &str)] = &[("REF", "button", "Save")];
const REMEMBER: &[(&str, &str, &str)] = &[("REF", "checkbox", "Remember me")];
const DETAILS: &[(&str, &str, &str)] = &[("REF", "disclosure", "Details")];
const NAME: &[(&str, &str, &str)] = &[("REF", "textfield", "Full name")];
const NOTES: &[(&str, &str, &str)] = &[("REF", "textfield", "Notes")];
const BUILD: &[(&str, &str, &str)] = &[("INDEX", "ci", "Build finished")];
const CANVAS: &[(&str, &str, &str)] = &[("XY", "group", "Canvas")];

/// All of them.
pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        command: "snapshot",
        shows: "Read a window, only the branches with something to operate",
        args: &["snapshot", "--app", "fixture-gtk3", "-i"],
        answer: Answer::Data(
            r#"{"app":"fixture-gtk3","window":{"title":"Fixture GTK 3"},"snapshot_id":"s…","complete":true,"tree":{"role":"window","name":"Fixture GTK 3"}}"#,
        ),
        ..NONE
    },
    Example {
        command: "find",
        shows: "Find one button by its name",
        args: &["find", "--app", "fixture-gtk3", "--role", "button", "--name", "Save", "--first"],
        answer: Answer::Data(
            r#"{"match":{"ref_id":"@s…","role":"button","name":"Save"},"snapshot_id":"s…"}"#,
        ),
        ..NONE
    },
    Example {
        command: "find",
        shows: "Count what is switched on",
        args: &["find", "--app", "fixture-gtk3", "--state", "checked", "--count"],
        answer: Answer::Data(r#"{"count":1}"#),
        ..NONE
    },
    Example {
        command: "get",
        shows: "Read the value of a slider as it is now",
        elements: &[("REF", "slider", "Volume")],
        args: &["get", "REF", "--property", "value"],
        answer: Answer::Data(r#"{"property":"value","value":"20"}"#),
        ..NONE
    },
    Example {
        command: "is",
        shows: "Ask whether a box is checked",
        elements: REMEMBER,
        args: &["is", "REF", "--property", "checked"],
        answer: Answer::Data(r#"{"property":"checked","result":false,"applicable":true}"#),
        ..NONE
    },
    Example {
        command: "click",
        shows: "Press a button without moving the pointer",
        elements: SAVE,
        args: &["click", "REF"],
        answer: Answer::Data(
            r#"{"action":"click","steps":[{"label":"press","outcome":"succeeded"}],"disposition":{"retry":"unsafe"}}"#,
        ),
        proof: Proof::Log("clicked Save"),
        ..NONE
    },
    Example {
        command: "toggle",
        shows: "Turn a switch over",
        elements: &[("REF", "switch", "Wifi")],
        args: &["toggle", "REF"],
        answer: Answer::Data(r#"{"action":"toggle","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("switch Wifi on"),
        ..NONE
    },
    Example {
        command: "check",
        shows: "Check a box; it would be left alone if it were checked",
        elements: REMEMBER,
        args: &["check", "REF"],
        answer: Answer::Data(r#"{"action":"check","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("check Remember me on"),
        ..NONE
    },
    Example {
        command: "uncheck",
        shows: "Take the mark away again",
        elements: REMEMBER,
        args: &["uncheck", "REF"],
        answer: Answer::Data(r#"{"action":"uncheck","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("check Remember me off"),
        ..NONE
    },
    Example {
        command: "select",
        shows: "Choose an item of a combo box by its text",
        elements: &[("REF", "combobox", "Colour")],
        args: &["select", "REF", "Green"],
        answer: Answer::Data(r#"{"action":"select","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("combo Green"),
        ..NONE
    },
    Example {
        command: "set-value",
        shows: "Set a number",
        elements: &[("REF", "incrementor", "Amount")],
        args: &["set-value", "REF", "42"],
        answer: Answer::Data(r#"{"action":"set-value","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("spin 42"),
        ..NONE
    },
    Example {
        command: "expand",
        shows: "Open a section",
        elements: DETAILS,
        args: &["expand", "REF"],
        answer: Answer::Data(r#"{"action":"expand","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("expander on"),
        ..NONE
    },
    Example {
        command: "collapse",
        shows: "Close it",
        elements: DETAILS,
        args: &["collapse", "REF"],
        answer: Answer::Data(r#"{"action":"collapse","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("expander off"),
        ..NONE
    },
    Example {
        command: "menu",
        shows: "See what is in a menu, without opening it",
        args: &["menu", "list", "File/Export", "--app", "fixture-gtk3"],
        answer: Answer::Data(r#"{"items":[{"name":"PNG","path":"File/Export/PNG"}],"complete":true}"#),
        ..NONE
    },
    Example {
        command: "menu",
        shows: "Choose an item by its path",
        args: &["menu", "open", "File/Export/PNG", "--app", "fixture-gtk3"],
        answer: Answer::Data(
            r#"{"action":"menu_open","path":["File","Export","PNG"],"disposition":{"delivery":"delivered_verified"}}"#,
        ),
        proof: Proof::Log("menu PNG"),
        ..NONE
    },
    Example {
        command: "batch",
        shows: "Find a button and press it, in one process",
        args: &[
            "batch",
            r#"[{"command":"find","args":{"app":"fixture-gtk3","role":"button","name":"Save","first":true}},{"command":"click","args":{"ref_id":{"$result":"0.data.match.ref_id"}}}]"#,
        ],
        answer: Answer::Data(
            r#"{"results":[{"command":"click","ok":true,"index":1,"execution":"completed"}],"completed_entries":2,"failed_entries":0}"#,
        ),
        proof: Proof::Log("clicked Save"),
        ..NONE
    },
    Example {
        command: "screenshot",
        shows: "Take a picture of a window",
        args: &["screenshot", "window.png", "--app", "fixture-gtk3"],
        answer: Answer::Data(r#"{"path":"window.png","format":"png"}"#),
        proof: Proof::File("window.png"),
        ..NONE
    },
    Example {
        command: "list-apps",
        shows: "List one application",
        args: &["list-apps", "--app", "fixture"],
        answer: Answer::Data(r#"{"apps":[{"name":"fixture-gtk3","presentation":"foreground"}]}"#),
        ..NONE
    },
    Example {
        command: "list-windows",
        shows: "List its windows",
        args: &["list-windows", "--app", "fixture-gtk3"],
        answer: Answer::Data(r#"[{"id":"w-…","title":"Fixture GTK 3","app_name":"fixture-gtk3"}]"#),
        ..NONE
    },
    Example {
        command: "list-displays",
        shows: "List the displays",
        args: &["list-displays"],
        answer: Answer::Data(r#"[{"is_primary":true,"scale":1}]"#),
        ..NONE
    },
    Example {
        command: "clipboard-set",
        shows: "Copy a text",
        args: &["clipboard-set", "Hello"],
        answer: Answer::Data(r#"{"ok":true,"type":"text"}"#),
        proof: Proof::Clipboard("Hello"),
        ..NONE
    },
    Example {
        command: "clipboard-get",
        shows: "Read it back",
        before: &[&["clipboard-set", "Hello"]],
        args: &["clipboard-get"],
        answer: Answer::Data(r#"{"type":"text","text":"Hello"}"#),
        ..NONE
    },
    Example {
        command: "clipboard-clear",
        shows: "Empty the clipboard",
        before: &[&["clipboard-set", "Hello"]],
        args: &["clipboard-clear"],
        answer: Answer::Data(r#"{"cleared":true}"#),
        proof: Proof::Clipboard(""),
        ..NONE
    },
    Example {
        command: "session",
        shows: "Start a session; what follows names it",
        args: &["session", "start", "--name", "demo"],
        answer: Answer::Data(r#"{"session_id":"run-…","name":"demo","trace":"on","artifacts":"events"}"#),
        ..NONE
    },
    Example {
        command: "session",
        shows: "End one",
        elements: &[("SESSION", "session", "demo")],
        args: &["session", "end", "SESSION"],
        answer: Answer::Data(r#"{"session_id":"run-…"}"#),
        ..NONE
    },
    Example {
        command: "trace",
        shows: "Show what was done in a session",
        elements: &[("SESSION", "session", "demo"), ("REF", "button", "Save")],
        before: &[&["--session", "SESSION", "find", "--app", "fixture-gtk3", "--name", "Save", "--count"]],
        args: &["--session", "SESSION", "trace", "show", "--event", "command.end"],
        answer: Answer::Data(
            r#"{"events":[{"event":"command.end","command":"find","ok":true}],"truncated":false}"#,
        ),
        ..NONE
    },
    Example {
        command: "status",
        shows: "See what works here",
        args: &["status"],
        answer: Answer::Data(
            r#"{"platform":"linux","permissions":{"accessibility":{"state":"granted"}},"session_id":null}"#,
        ),
        ..NONE
    },
    Example {
        command: "doctor",
        shows: "Find out what keeps this desktop from being operated",
        args: &["doctor"],
        answer: Answer::Data(
            r#"{"healthy":true,"checks":[{"id":"accessibility_bus","state":"ok"},{"id":"input","state":"ok","can_fix":false}]}"#,
        ),
        ..NONE
    },
    Example {
        command: "doctor",
        shows: "Prove with a window of its own that it can be",
        args: &["doctor", "--self-test", "--headed"],
        answer: Answer::Data(
            r#"{"healthy":true,"checks":[{"id":"self_test_pointer","state":"ok","seen":"the window was sent `button 1 120 80 server`"}]}"#,
        ),
        ..NONE
    },
    Example {
        command: "permissions",
        shows: "See what the system allows",
        args: &["permissions"],
        answer: Answer::Data(
            r#"{"accessibility":{"state":"granted"},"screen_recording":{"state":"granted"},"automation":{"state":"not_required"}}"#,
        ),
        ..NONE
    },
    Example {
        command: "skills",
        shows: "Read the guide to the peculiarities of Linux",
        args: &["skills", "get", "agent-desktop", "linux"],
        answer: Answer::Data(
            r##"{"skill":"agent-desktop","reference":"references/linux.md","content":"# Linux…"}"##,
        ),
        ..NONE
    },
    Example {
        command: "version",
        shows: "See which version this is",
        args: &["version"],
        answer: Answer::Data(r#"{"version":"…","os":"linux"}"#),
        ..NONE
    },
    Example {
        command: "key-down",
        shows: "See why it is refused",
        args: &["key-down", "shift"],
        answer: Answer::Error(
            r#"{"code":"ACTION_NOT_SUPPORTED","disposition":{"delivery":"not_delivered"}}"#,
        ),
        ..NONE
    },
    Example {
        command: "key-up",
        shows: "See why it is refused",
        args: &["key-up", "shift"],
        answer: Answer::Error(
            r#"{"code":"ACTION_NOT_SUPPORTED","disposition":{"delivery":"not_delivered"}}"#,
        ),
        ..NONE
    },
    Example {
        command: "mouse-down",
        shows: "See why it is refused",
        args: &["mouse-down", "--xy", "10,10", "--headed"],
        answer: Answer::Error(
            r#"{"code":"ACTION_NOT_SUPPORTED","disposition":{"delivery":"not_delivered"}}"#,
        ),
        ..NONE
    },
    Example {
        command: "mouse-up",
        shows: "See why it is refused",
        args: &["mouse-up", "--xy", "10,10", "--headed"],
        answer: Answer::Error(
            r#"{"code":"ACTION_NOT_SUPPORTED","disposition":{"delivery":"not_delivered"}}"#,
        ),
        ..NONE
    },
    // ---- texts
    Example {
        command: "type",
        shows: "Put text at the caret",
        page: "texts",
        elements: NAME,
        args: &["type", "REF", "Ada"],
        answer: Answer::Data(r#"{"action":"type","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("entry Full name text=\"Ada\""),
        ..NONE
    },
    Example {
        command: "set-value",
        shows: "Replace all of a text",
        page: "texts",
        elements: NAME,
        args: &["set-value", "REF", "Grace Hopper"],
        answer: Answer::Data(r#"{"action":"set-value","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("entry Full name text=\"Grace Hopper\""),
        ..NONE
    },
    Example {
        command: "clear",
        shows: "Empty a field",
        page: "texts",
        elements: NAME,
        args: &["clear", "REF"],
        answer: Answer::Data(r#"{"action":"clear","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("entry Full name text=\"\""),
        ..NONE
    },
    Example {
        command: "focus",
        shows: "Put the keyboard focus inside the window on a field",
        page: "texts",
        elements: &[("REF", "textfield", "Short")],
        args: &["focus", "REF"],
        answer: Answer::Data(r#"{"action":"focus","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("focus Short"),
        ..NONE
    },
    Example {
        command: "text",
        shows: "Read the second line of a text",
        page: "texts",
        elements: NOTES,
        args: &["text", "get", "REF", "--unit", "line", "--at", "11"],
        answer: Answer::Data(r#"{"start":11,"text":"Second line…"}"#),
        ..NONE
    },
    Example {
        command: "text",
        shows: "Replace a word",
        page: "texts",
        elements: NOTES,
        args: &["text", "replace", "REF", "2nd", "--pattern", "Second"],
        answer: Answer::Data(r#"{"disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("textview \"First line\\n2nd line\\nThird line\""),
        ..NONE
    },
    Example {
        command: "right-click",
        shows: "Open the context menu of a text that offers no operation for it, with the pointer",
        page: "texts",
        elements: NOTES,
        args: &["right-click", "REF", "--headed"],
        answer: Answer::Data(r#"{"action":"right-click","disposition":{"retry":"unsafe"}}"#),
        ..NONE
    },
    // ---- lists
    Example {
        command: "select",
        shows: "Choose a row of a list",
        page: "lists",
        elements: &[("REF", "listbox", "Cities")],
        args: &["select", "REF", "Oslo"],
        answer: Answer::Data(r#"{"action":"select","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("list Oslo"),
        ..NONE
    },
    Example {
        command: "expand",
        shows: "Open a row of a tree",
        page: "lists",
        elements: &[("REF", "treeitem", "Fruits")],
        args: &["expand", "REF"],
        answer: Answer::Data(r#"{"action":"expand","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("tree expanded Fruits"),
        ..NONE
    },
    Example {
        command: "double-click",
        shows: "Open a row, as one does with two clicks",
        page: "lists",
        elements: &[("REF", "treeitem", "Vegetables")],
        args: &["double-click", "REF", "--headed"],
        answer: Answer::Data(r#"{"action":"double-click","disposition":{"retry":"unsafe"}}"#),
        proof: Proof::Log("tree activated Vegetables"),
        ..NONE
    },
    // ---- scroll
    Example {
        command: "scroll",
        shows: "Scroll down by its scroll bar",
        page: "scroll",
        elements: &[("REF", "scrollarea", "Rows")],
        args: &["scroll", "REF", "--amount", "2"],
        answer: Answer::Data(r#"{"action":"scroll","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("scrolled "),
        ..NONE
    },
    Example {
        command: "scroll-to",
        shows: "Bring a row into view that is far below",
        page: "scroll",
        elements: &[("REF", "button", "Row 150")],
        args: &["scroll-to", "REF"],
        answer: Answer::Data(r#"{"action":"scroll-to","disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Log("scrolled "),
        ..NONE
    },
    // ---- dialogs
    Example {
        command: "choose-file",
        shows: "Without a file chooser nothing is touched",
        page: "dialogs",
        args: &["choose-file", "/etc/hostname", "--timeout-ms", "500"],
        answer: Answer::Error(
            r#"{"code":"ELEMENT_NOT_FOUND","details":{"kind":"file_chooser_not_open"},"disposition":{"delivery":"not_delivered"}}"#,
        ),
        ..NONE
    },
    Example {
        command: "wait",
        shows: "Wait for the window that a click opens",
        page: "dialogs",
        elements: &[("REF", "button", "Ask")],
        before: &[&["click", "REF"]],
        args: &["wait", "--window", "Question", "--timeout", "5000"],
        answer: Answer::Data(r#"{"found":true,"window":{"title":"Question"}}"#),
        proof: Proof::Log("dialog opened Question"),
    },
    Example {
        command: "list-surfaces",
        shows: "See the dialog that is open",
        page: "dialogs",
        args: &["list-surfaces", "--app", "fixture-gtk3"],
        answer: Answer::Data(r#"{"surfaces":[{"type":"sheet","title":"Question"}]}"#),
        ..NONE
    },
    // ---- pointer
    Example {
        command: "hover",
        shows: "Rest the pointer in the middle of a drawing",
        page: "pointer",
        elements: CANVAS,
        args: &["hover", "--xy", "XY", "--headed"],
        answer: Answer::Data(r#"{"hovered":true}"#),
        proof: Proof::Log("pointer entered"),
        ..NONE
    },
    Example {
        command: "drag",
        shows: "Drag from there to a button",
        page: "pointer",
        elements: &[("XY", "group", "Canvas"), ("REF", "button", "Save")],
        args: &["drag", "--from-xy", "XY", "--to", "REF", "--headed"],
        answer: Answer::Data(r#"{"dragged":true}"#),
        proof: Proof::Log("pointer dragged"),
        ..NONE
    },
    Example {
        command: "mouse-move",
        shows: "Move the pointer",
        page: "pointer",
        elements: CANVAS,
        args: &["mouse-move", "--xy", "XY", "--headed"],
        answer: Answer::Data(r#"{"moved":true}"#),
        proof: Proof::Log("pointer entered"),
        ..NONE
    },
    Example {
        command: "mouse-click",
        shows: "Click a point",
        page: "pointer",
        elements: CANVAS,
        args: &["mouse-click", "--xy", "XY", "--headed"],
        answer: Answer::Data(r#"{"clicked":true,"count":1}"#),
        proof: Proof::Log("pointer pressed"),
        ..NONE
    },
    Example {
        command: "mouse-wheel",
        shows: "Turn the wheel down",
        page: "pointer",
        elements: &[("X", "group", "Canvas"), ("Y", "group", "Canvas")],
        args: &["mouse-wheel", "--x", "X", "--y", "Y", "--dy=-2", "--headed"],
        answer: Answer::Data(r#"{"scrolled":true,"dy":-2}"#),
        proof: Proof::Log("pointer wheel down"),
        ..NONE
    },
    Example {
        command: "triple-click",
        shows: "Click three times",
        page: "pointer",
        elements: SAVE,
        args: &["triple-click", "REF", "--headed"],
        answer: Answer::Data(r#"{"action":"triple-click","disposition":{"retry":"unsafe"}}"#),
        proof: Proof::Log("clicked Save"),
        ..NONE
    },
    Example {
        command: "press",
        shows: "Press a chord in a window",
        page: "pointer",
        args: &["press", "ctrl+s", "--app", "fixture-gtk3", "--headed"],
        answer: Answer::Data(r#"{"action":"press","disposition":{"delivery":"delivered_unverified"}}"#),
        proof: Proof::Log("key ctrl+s"),
        ..NONE
    },
    // ---- windows
    Example {
        command: "focus-window",
        shows: "Bring a window to the front",
        page: "windows",
        args: &["focus-window", "--title", "Fixture GTK 3"],
        answer: Answer::Data(r#"{"focused":{"title":"Fixture GTK 3"}}"#),
        proof: Proof::Active,
        ..NONE
    },
    Example {
        command: "resize-window",
        shows: "Give a window a size, its frame included",
        page: "windows",
        args: &["resize-window", "--app", "fixture-gtk3", "--width", "800", "--height", "600"],
        answer: Answer::Data(r#"{"resized":true,"width":800,"height":600}"#),
        proof: Proof::Rectangle,
        ..NONE
    },
    Example {
        command: "move-window",
        shows: "Put its corner somewhere",
        page: "windows",
        args: &["move-window", "--app", "fixture-gtk3", "--x", "40", "--y", "60"],
        answer: Answer::Data(r#"{"moved":true,"x":40,"y":60}"#),
        proof: Proof::Rectangle,
        ..NONE
    },
    Example {
        command: "maximize",
        shows: "Let it fill the display",
        page: "windows",
        args: &["maximize", "--app", "fixture-gtk3"],
        answer: Answer::Data(r#"{"maximized":true,"window":{"maximized":true}}"#),
        proof: Proof::Rectangle,
        ..NONE
    },
    Example {
        command: "restore",
        shows: "Give it its former size",
        page: "windows",
        args: &["restore", "--app", "fixture-gtk3"],
        answer: Answer::Data(r#"{"restored":true}"#),
        proof: Proof::Rectangle,
        ..NONE
    },
    Example {
        command: "minimize",
        shows: "Take it off the screen",
        page: "windows",
        args: &["minimize", "--app", "fixture-gtk3"],
        answer: Answer::Data(r#"{"minimized":true,"window":{"minimized":true}}"#),
        proof: Proof::Unmapped,
        ..NONE
    },
    // ---- launch
    Example {
        command: "launch",
        shows: "Start an application and wait for its window",
        page: "launch",
        args: &["launch", "gnome-calculator", "--wait"],
        answer: Answer::Data(r#"{"app":"gnome-calculator","window":{"id":"w-…"}}"#),
        proof: Proof::Window("Calculator"),
        ..NONE
    },
    Example {
        command: "close-app",
        shows: "End it and wait until it is gone",
        page: "launch",
        args: &["close-app", "gnome-calculator"],
        answer: Answer::Data(r#"{"method":"graceful","closed":true}"#),
        proof: Proof::NoWindow("Calculator"),
        ..NONE
    },
    // ---- notifications
    Example {
        command: "list-notifications",
        shows: "See what came since the session began",
        page: "notifications",
        elements: BUILD,
        args: &["list-notifications", "--app", "ci"],
        answer: Answer::Data(
            r#"{"notifications":[{"app_name":"ci","title":"Build finished","actions":["Show log"],"state":"open"}]}"#,
        ),
        ..NONE
    },
    Example {
        command: "notification-action",
        shows: "Press the button of one",
        page: "notifications",
        elements: BUILD,
        args: &["notification-action", "INDEX", "Show log", "--expected-app", "ci"],
        answer: Answer::Data(r#"{"disposition":{"delivery":"delivered_verified"}}"#),
        proof: Proof::Sender("invoked log"),
        ..NONE
    },
    Example {
        command: "dismiss-notification",
        shows: "Take one away",
        page: "notifications",
        elements: BUILD,
        args: &["dismiss-notification", "INDEX", "--expected-title", "Build finished"],
        answer: Answer::Data(r#"{"dismissed":{"title":"Build finished"}}"#),
        proof: Proof::Sender("closed 3"),
        ..NONE
    },
    Example {
        command: "dismiss-all-notifications",
        shows: "Take away all of one sender",
        page: "notifications",
        elements: BUILD,
        args: &["dismiss-all-notifications", "--app", "ci"],
        answer: Answer::Data("{}"),
        proof: Proof::Sender("closed 3"),
        ..NONE
    },
];
