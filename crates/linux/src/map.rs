//! AT-SPI words and ours.
//!
//! Pure: numbers and names in, our vocabulary out; compiled and tested on every machine. The mapping follows Core-AAM,
//! <https://w3c.github.io/core-aam/>, where it speaks; where a toolkit departs from it the reason stands beside the row.
//! Roles are compared by number, because readers and toolkits name the same number differently between versions.

use agent_desktop_core::action::{Capabilities, Capability};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::{State, States};

/// Role numbers of AT-SPI that decide something beyond the mapping.
///
/// Spec: `AtspiRole`, <https://docs.gtk.org/atspi2/enum.Role.html>
pub(crate) mod role {
    pub(crate) const ALERT: u32 = 2;
    pub(crate) const CHECK_BOX: u32 = 7;
    pub(crate) const CHECK_MENU_ITEM: u32 = 8;
    pub(crate) const COMBO_BOX: u32 = 11;
    pub(crate) const DIALOG: u32 = 16;
    pub(crate) const FILE_CHOOSER: u32 = 19;
    pub(crate) const FILLER: u32 = 20;
    pub(crate) const COLOR_CHOOSER: u32 = 9;
    pub(crate) const FONT_CHOOSER: u32 = 22;
    pub(crate) const FRAME: u32 = 23;
    pub(crate) const INTERNAL_FRAME: u32 = 28;
    pub(crate) const LABEL: u32 = 29;
    pub(crate) const LAYERED_PANE: u32 = 30;
    pub(crate) const LIST: u32 = 31;
    pub(crate) const LIST_ITEM: u32 = 32;
    pub(crate) const MENU: u32 = 33;
    pub(crate) const MENU_BAR: u32 = 34;
    pub(crate) const MENU_ITEM: u32 = 35;
    pub(crate) const PAGE_TAB: u32 = 37;
    pub(crate) const PANEL: u32 = 39;
    pub(crate) const PASSWORD_TEXT: u32 = 40;
    pub(crate) const POPUP_MENU: u32 = 41;
    pub(crate) const PUSH_BUTTON: u32 = 43;
    pub(crate) const RADIO_BUTTON: u32 = 44;
    pub(crate) const RADIO_MENU_ITEM: u32 = 45;
    pub(crate) const SCROLL_PANE: u32 = 49;
    pub(crate) const SLIDER: u32 = 51;
    pub(crate) const SPIN_BUTTON: u32 = 52;
    pub(crate) const TABLE: u32 = 55;
    pub(crate) const TABLE_CELL: u32 = 56;
    pub(crate) const TEXT: u32 = 61;
    pub(crate) const TOGGLE_BUTTON: u32 = 62;
    pub(crate) const TREE: u32 = 65;
    pub(crate) const TREE_TABLE: u32 = 66;
    pub(crate) const VIEWPORT: u32 = 68;
    pub(crate) const WINDOW: u32 = 69;
    pub(crate) const PARAGRAPH: u32 = 73;
    pub(crate) const APPLICATION: u32 = 75;
    pub(crate) const ENTRY: u32 = 79;
    pub(crate) const SECTION: u32 = 85;
    pub(crate) const LINK: u32 = 88;
    pub(crate) const TABLE_ROW: u32 = 90;
    pub(crate) const TREE_ITEM: u32 = 91;
    pub(crate) const DOCUMENT_WEB: u32 = 95;
    pub(crate) const LIST_BOX: u32 = 98;
    pub(crate) const NOTIFICATION: u32 = 101;
    pub(crate) const STATIC: u32 = 116;
}

/// State bits of AT-SPI.
///
/// Spec: `AtspiStateType`, <https://docs.gtk.org/atspi2/enum.StateType.html>
pub(crate) mod state {
    pub(crate) const ACTIVE: u64 = 1 << 1;
    pub(crate) const BUSY: u64 = 1 << 3;
    pub(crate) const CHECKED: u64 = 1 << 4;
    pub(crate) const DEFUNCT: u64 = 1 << 6;
    pub(crate) const EDITABLE: u64 = 1 << 7;
    pub(crate) const ENABLED: u64 = 1 << 8;
    pub(crate) const EXPANDABLE: u64 = 1 << 9;
    pub(crate) const EXPANDED: u64 = 1 << 10;
    pub(crate) const FOCUSABLE: u64 = 1 << 11;
    pub(crate) const FOCUSED: u64 = 1 << 12;
    pub(crate) const ICONIFIED: u64 = 1 << 15;
    pub(crate) const MODAL: u64 = 1 << 16;
    pub(crate) const MULTISELECTABLE: u64 = 1 << 18;
    pub(crate) const PRESSED: u64 = 1 << 20;
    pub(crate) const SELECTABLE: u64 = 1 << 22;
    pub(crate) const SELECTED: u64 = 1 << 23;
    pub(crate) const SENSITIVE: u64 = 1 << 24;
    pub(crate) const SHOWING: u64 = 1 << 25;
    pub(crate) const VISIBLE: u64 = 1 << 30;
    pub(crate) const MANAGES_DESCENDANTS: u64 = 1 << 31;
    pub(crate) const INDETERMINATE: u64 = 1 << 32;
    pub(crate) const REQUIRED: u64 = 1 << 33;
    pub(crate) const INVALID_ENTRY: u64 = 1 << 36;
    pub(crate) const IS_DEFAULT: u64 = 1 << 39;
    pub(crate) const CHECKABLE: u64 = 1 << 41;
    pub(crate) const HAS_POPUP: u64 = 1 << 42;
    pub(crate) const READ_ONLY: u64 = 1 << 43;
}

/// Which interfaces an object has; one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interfaces(u16);

impl Interfaces {
    pub(crate) const ACTION: Interfaces = Interfaces(1);
    pub(crate) const COMPONENT: Interfaces = Interfaces(2);
    pub(crate) const TEXT: Interfaces = Interfaces(4);
    pub(crate) const EDITABLE_TEXT: Interfaces = Interfaces(8);
    pub(crate) const VALUE: Interfaces = Interfaces(16);
    pub(crate) const SELECTION: Interfaces = Interfaces(32);
    pub(crate) const TABLE: Interfaces = Interfaces(64);
    pub(crate) const TABLE_CELL: Interfaces = Interfaces(128);

    pub(crate) const fn has(self, other: Interfaces) -> bool {
        self.0 & other.0 != 0
    }

    /// Adds an interface.
    pub(crate) const fn insert(&mut self, other: Interfaces) {
        self.0 |= other.0;
    }

    /// Adds the interface of this D-Bus name, if it is one that matters here.
    pub(crate) fn insert_name(&mut self, name: &str) {
        let bit = match name.strip_prefix("org.a11y.atspi.") {
            Some("Action") => Self::ACTION,
            Some("Component") => Self::COMPONENT,
            Some("Text") => Self::TEXT,
            Some("EditableText") => Self::EDITABLE_TEXT,
            Some("Value") => Self::VALUE,
            Some("Selection") => Self::SELECTION,
            Some("Table") => Self::TABLE,
            Some("TableCell") => Self::TABLE_CELL,
            _ => return,
        };
        self.0 |= bit.0;
    }
}

/// Toolkits whose behaviour differs in what matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toolkit {
    /// GTK 2 and 3, and the GTK 3 back end of `LibreOffice`: the ATK bridge.
    Gtk3,
    /// GTK 4.
    Gtk4,
    /// Qt 5 and later.
    Qt,
    /// Firefox and Thunderbird: the ATK bridge.
    Gecko,
    /// Chromium and Electron: the ATK bridge.
    Chromium,
    /// Anything else.
    Other,
}

impl Toolkit {
    /// By `Application.ToolkitName`. GTK 4 calls itself `GTK`, GTK 3 `gtk`.
    pub(crate) fn from_name(name: &str) -> Toolkit {
        match name {
            "GTK" => Toolkit::Gtk4,
            "gtk" | "GAIL" => Toolkit::Gtk3,
            "Qt" => Toolkit::Qt,
            "Gecko" => Toolkit::Gecko,
            "Chromium" => Toolkit::Chromium,
            _ => Toolkit::Other,
        }
    }

    /// Whether its accessibility is served by the ATK bridge: a filled cache, peer-to-peer connections.
    pub(crate) fn has_atk_bridge(self) -> bool {
        matches!(self, Toolkit::Gtk3 | Toolkit::Gecko | Toolkit::Chromium)
    }

    /// Whether its applications may be visited by a listener or over their own socket, and left again.
    ///
    /// Chromium (seen in 156) ends with a segmentation fault when the last of either leaves while the text of a password
    /// field changes. Over the bus, unannounced, it can be read at any time.
    pub(crate) fn survives_visitors(self) -> bool {
        self != Toolkit::Chromium
    }

    /// Whether `SHOWING` says what shows. GTK 4 sets it on the window only; there, `VISIBLE` and a size decide.
    pub(crate) fn showing_is_reliable(self) -> bool {
        self != Toolkit::Gtk4
    }

    /// Whether `GetExtents` in screen coordinates is measured from the window instead.
    pub(crate) fn extents_are_window_relative(self) -> bool {
        self == Toolkit::Gtk4
    }
}

/// What an object was found to be; the input of [`role_of`], [`states_of`] and [`capabilities_of`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeFacts<'a> {
    pub(crate) role: u32,
    pub(crate) states: u64,
    pub(crate) interfaces: Interfaces,
    pub(crate) toolkit: Toolkit,
    /// Names of its actions, lower case is not assumed.
    pub(crate) actions: &'a [String],
    /// Whether its parent is a container with a selection.
    pub(crate) parent_selects: bool,
}

/// Our role for an object.
pub(crate) fn role_of(facts: &NativeFacts<'_>) -> Role {
    let has_action = |name: &str| facts.actions.iter().any(|action| folded(action) == name);
    match facts.role {
        role::PUSH_BUTTON if opens_by_inner_button(facts) => Role::MenuButton,
        role::ALERT => Role::Alert,
        role::CHECK_BOX if facts.toolkit == Toolkit::Gtk4 && has_action("toggle") => Role::Switch,
        role::TOGGLE_BUTTON if has_action("toggle") && facts.toolkit == Toolkit::Gtk3 => Role::Switch,
        role::CHECK_BOX | role::CHECK_MENU_ITEM => Role::CheckBox,
        role::RADIO_BUTTON | role::RADIO_MENU_ITEM => Role::RadioButton,
        role::TOGGLE_BUTTON if facts.states & state::EXPANDABLE != 0 => Role::Disclosure,
        role::TOGGLE_BUTTON | role::PUSH_BUTTON
            if facts.states & (state::EXPANDABLE | state::HAS_POPUP) == state::HAS_POPUP =>
        {
            Role::MenuButton
        }
        // An expander of GTK 4 is a push button that expands.
        role::PUSH_BUTTON if facts.states & state::EXPANDABLE != 0 && has_action("activate") => {
            Role::Disclosure
        }
        role::PUSH_BUTTON | role::TOGGLE_BUTTON => Role::Button,
        129 => Role::MenuButton,
        130 => Role::Switch,
        12 => Role::DateField,
        5 | 31 | 121 => Role::List,
        role::LIST_BOX => Role::ListBox,
        role::LIST_ITEM => Role::Option,
        role::COMBO_BOX => Role::ComboBox,
        role::DIALOG | role::FILE_CHOOSER | role::COLOR_CHOOSER | role::FONT_CHOOSER => Role::Dialog,
        role::FRAME | role::WINDOW | role::INTERNAL_FRAME => Role::Window,
        3 | 4 | 26 | 27 | 80 | 100 | 106 | 107 => Role::Image,
        role::LABEL | role::STATIC | 1 | 81 => Role::StaticText,
        role::MENU | role::POPUP_MENU if facts.role == role::POPUP_MENU || !facts.parent_selects => {
            Role::Menu
        }
        // A menu inside a menu bar or a menu is the item that opens it.
        role::MENU | role::MENU_ITEM | 59 => Role::MenuItem,
        role::MENU_BAR => Role::Menu,
        role::PAGE_TAB => Role::Tab,
        38 => Role::TabList,
        role::PASSWORD_TEXT | role::ENTRY | 60 | 76 | 77 => Role::TextField,
        // A text that nobody can edit and nobody can put a caret in is just text.
        role::TEXT if facts.states & (state::EDITABLE | state::FOCUSABLE) == 0 => Role::StaticText,
        role::TEXT => Role::TextField,
        42 => Role::ProgressBar,
        103 | 114 => Role::LevelIndicator,
        48 => Role::ScrollBar,
        role::SCROLL_PANE => Role::ScrollArea,
        50 => Role::Separator,
        15 | role::SLIDER => Role::Slider,
        role::SPIN_BUTTON => Role::Incrementor,
        53 => Role::Splitter,
        54 => Role::Status,
        role::TABLE => Role::Table,
        role::TREE_TABLE if facts.toolkit == Toolkit::Gtk4 => Role::Table,
        role::TREE | role::TREE_TABLE => Role::Outline,
        role::TABLE_CELL
            if facts.states & state::EXPANDABLE != 0 && facts.interfaces.has(Interfaces::TABLE_CELL) =>
        {
            Role::TreeItem
        }
        role::TABLE_CELL | 10 | 47 | 57 | 58 => Role::Cell,
        role::TREE_ITEM => Role::TreeItem,
        role::TABLE_ROW => Role::Row,
        63 => Role::Toolbar,
        64 => Role::Tooltip,
        role::PARAGRAPH => Role::Paragraph,
        74 => Role::Ruler,
        role::APPLICATION => Role::Application,
        82 | 84 | 92 | 93 | 94 | 96 => Role::Document,
        role::DOCUMENT_WEB | 25 => Role::WebArea,
        83 => Role::Heading,
        71 => Role::Banner,
        72 => Role::ContentInfo,
        87 => Role::Form,
        role::LINK => Role::Link,
        97 | 124 => Role::Note,
        role::NOTIFICATION | 102 => Role::Status,
        108 | 123 => Role::Definition,
        122 => Role::Term,
        109 => Role::Article,
        110 => Role::Region,
        111 => Role::Log,
        112 => Role::Marquee,
        113 | 117 | 118 => Role::Math,
        115 => Role::Timer,
        role::FILLER
        | role::PANEL
        | role::LAYERED_PANE
        | role::VIEWPORT
        | role::SECTION
        | 6
        | 17
        | 18
        | 21
        | 24
        | 36
        | 46
        | 70
        | 78
        | 86
        | 99
        | 104
        | 105
        | 119
        | 120
        | 125..=128 => Role::Group,
        _ => Role::Unknown,
    }
}

/// The role of a panel that Firefox calls a dialog only among its attributes: an alert of a page.
pub(crate) fn dialog_role(number: u32, toolkit: Toolkit, attributes: &[(String, String)]) -> Option<Role> {
    if toolkit != Toolkit::Gecko || number != role::PANEL {
        return None;
    }
    let (_, roles) = attributes.iter().find(|(name, _)| name == "xml-roles")?;
    roles.split_whitespace().find_map(|word| match word {
        "dialog" => Some(Role::Dialog),
        "alertdialog" => Some(Role::AlertDialog),
        _ => None,
    })
}

/// Our states for an object. `offscreen` is derived later, from bounds.
pub(crate) fn states_of(facts: &NativeFacts<'_>, our_role: Role) -> States {
    let mut states = States::NONE;
    let native = facts.states;
    let mut when = |bit: u64, state: State| {
        if native & bit != 0 {
            states.insert(state);
        }
    };
    when(state::FOCUSED, State::Focused);
    when(state::EXPANDED, State::Expanded);
    when(state::SELECTED, State::Selected);
    when(state::BUSY, State::Busy);
    when(state::MODAL, State::Modal);
    when(state::REQUIRED, State::Required);
    when(state::INDETERMINATE, State::Indeterminate);
    when(state::INVALID_ENTRY, State::Invalid);
    when(state::HAS_POPUP, State::HasPopup);
    // LibreOffice says it of every cell and paragraph; it is a property of what holds items.
    let holds_items = matches!(
        our_role,
        Role::List
            | Role::ListBox
            | Role::Table
            | Role::Outline
            | Role::Grid
            | Role::TabList
            | Role::Menu
            | Role::ComboBox
    );
    states.set(State::MultiSelectable, holds_items && native & state::MULTISELECTABLE != 0);
    if our_role.is_toggleable() || facts.states & state::CHECKABLE != 0 {
        // Qt sets both for a half-checked box.
        states.set(State::Checked, native & state::CHECKED != 0 && native & state::INDETERMINATE == 0);
    } else if native & (state::CHECKED | state::PRESSED) != 0 {
        // A toggle button that is down is checked to AT-SPI; to us it is a pressed button.
        states.insert(State::Pressed);
    }
    // A button of Qt stays down while the menu is open that belongs to it, and has no other sign of it.
    if our_role == Role::MenuButton && facts.toolkit == Toolkit::Qt && native & state::PRESSED != 0 {
        states.insert(State::Expanded);
    }
    // One of Chromium's window is checked meanwhile.
    let is_checked_opener = our_role == Role::MenuButton
        && facts.toolkit == Toolkit::Chromium
        && facts.role == role::PUSH_BUTTON
        && native & state::CHECKED != 0;
    if is_checked_opener {
        states.remove(State::Checked);
        states.insert(State::Expanded);
    }
    states.set(State::Secure, facts.role == role::PASSWORD_TEXT);
    states.set(State::Hidden, is_hidden(native, facts.toolkit));
    let can_be_disabled = our_role.is_interactive() || facts.interfaces.has(Interfaces::ACTION);
    // GTK 4 never sets ENABLED, GTK 3 takes it from half-checked boxes: only the absence of both says something.
    // Chromium takes both away from a field that can only be read; what is really disabled cannot have the focus either.
    let is_only_fixed = facts.toolkit == Toolkit::Chromium
        && native & (state::READ_ONLY | state::FOCUSABLE) == state::READ_ONLY | state::FOCUSABLE;
    let is_off = native & (state::ENABLED | state::SENSITIVE) == 0 && !is_only_fixed;
    states.set(State::Disabled, can_be_disabled && is_off);
    let is_field = matches!(our_role, Role::TextField | Role::Incrementor);
    let is_fixed = native & state::READ_ONLY != 0 || native & state::EDITABLE == 0;
    states.set(State::ReadOnly, is_field && is_fixed);
    states
}

/// Whether these states say that the object takes no input.
pub(crate) fn is_insensitive(native: u64) -> bool {
    native & (state::ENABLED | state::SENSITIVE) == 0
}

/// Whether it makes a difference for an object of this role that what it is in takes no input.
pub(crate) fn can_be_disabled(our_role: Role) -> bool {
    our_role.is_interactive()
}

/// Whether these states say that the object does not show.
pub(crate) fn is_hidden(native: u64, toolkit: Toolkit) -> bool {
    if toolkit.showing_is_reliable() { native & state::SHOWING == 0 } else { native & state::VISIBLE == 0 }
}

/// What a click does, in AT-SPI's action names of the toolkits we know; the first of these that an object has is used.
///
/// Chosen by name, never by position: the first action of a GTK 4 text view deletes a line.
const ACTIVATE: &[&str] = &[
    "click",
    "press",
    "activate",
    "toggle",
    "jump",
    "open",
    "switch",
    "select",
    "check",
    "uncheck",
    "dodefault",
    "show menu",
    "showmenu",
    "togglepopup",
];

/// Folds an action name: Qt writes `Press`, Gecko `press`, some translate blanks into dashes.
fn folded(action: &str) -> String {
    action.trim().to_lowercase().replace(['-', '_'], " ")
}

/// Whether the name of an action is one that toolkits use untranslated, so that it can be trusted as it is.
pub(crate) fn is_familiar_action(action: &str) -> bool {
    // LibreOffice leaves the translated name empty; its own name is then the one that counts.
    let folded = folded(action);
    folded.contains('.')
        || ACTIVATE.contains(&folded.as_str())
        || matches!(
            folded.as_str(),
            "expand or contract"
                | "expand"
                | "collapse"
                | "close"
                | "edit"
                | "clickancestor"
                | "showcontextmenu"
                | "show menu"
                | "set focus"
                | "setfocus"
                | "increase"
                | "decrease"
                | "increment"
                | "decrement"
                | "menu"
        )
}

/// The index of the first action whose folded name is in `wanted`, best name first.
fn find_action(actions: &[String], wanted: &[&str]) -> Option<usize> {
    wanted.iter().find_map(|name| actions.iter().position(|action| folded(action) == *name))
}

/// The index of the action that does what a click does.
///
/// An entry's `activate` is what Return does, not what a click does; it would submit the form.
pub(crate) fn activate_action(role: u32, actions: &[String]) -> Option<usize> {
    let wanted: &[&str] = match role {
        // Activating text runs a command (Return in an entry, delete-line in a text view); a click puts the caret there.
        role::TEXT | role::ENTRY | role::PASSWORD_TEXT | role::SPIN_BUTTON | role::PARAGRAPH => &[],
        // A cell's `activate` is a double click, `edit` opens an editor; a click selects.
        role::TABLE_CELL => &["click", "press"],
        role::CHECK_BOX | role::RADIO_BUTTON | role::TOGGLE_BUTTON => {
            &["click", "press", "toggle", "check", "uncheck", "select", "activate"]
        }
        // Qt's `Toggle` of a list item selects it.
        role::LIST_ITEM => &["click", "press", "select", "activate"],
        // What Chromium calls `doDefault` is nothing at all on things that are not controls.
        role::PUSH_BUTTON
        | role::MENU_ITEM
        | role::MENU
        | role::LINK
        | role::COMBO_BOX
        | role::PAGE_TAB
        | role::TREE_ITEM => ACTIVATE,
        _ => &["click", "press", "activate", "jump", "open", "switch", "select"],
    };
    find_action(actions, wanted)
}

/// The index of the action that opens the context menu.
///
/// On a Qt button or menu item `Show Menu` opens the control's own menu; that is what a click does.
pub(crate) fn menu_action(role: u32, toolkit: Toolkit, actions: &[String]) -> Option<usize> {
    if toolkit == Toolkit::Qt
        && matches!(role, role::PUSH_BUTTON | role::MENU_ITEM | role::COMBO_BOX | role::TOGGLE_BUTTON)
    {
        return None;
    }
    find_action(
        actions,
        &["showcontextmenu", "show context menu", "show menu", "showmenu", "menu", "popup menu"],
    )
}

/// The index of the action by which a Qt menu item opens and closes its own menu.
pub(crate) fn own_menu_action(actions: &[String]) -> Option<usize> {
    find_action(actions, &["show menu", "showmenu"])
}

/// The index of the action that opens or closes.
pub(crate) fn expand_action(open: bool, role: u32, actions: &[String]) -> Option<usize> {
    let direct: &[&str] = if open { &["expand", "open"] } else { &["collapse", "close"] };
    find_action(actions, direct).or_else(|| {
        find_action(actions, &["expand or contract", "expand or collapse", "togglepopup", "toggle popup"])
            .or_else(|| match role {
                role::COMBO_BOX => find_action(actions, &["press", "click", "open", "show menu"]),
                role::MENU | role::MENU_ITEM | role::PUSH_BUTTON | role::TOGGLE_BUTTON => {
                    find_action(actions, &["click", "press", "activate", "show menu", "expand"])
                }
                _ => None,
            })
    })
}

/// Whether an object of this kind is asked for its actions when a tree is read.
///
/// GTK 4 gives `Action` to every widget and answers with the menu commands that happen to be in scope; only controls
/// have actions of their own there. Text leaves of web pages repeat their ancestor's.
pub(crate) fn wants_actions(role: u32, interfaces: Interfaces, toolkit: Toolkit) -> bool {
    if !interfaces.has(Interfaces::ACTION) {
        return false;
    }
    match toolkit {
        Toolkit::Gtk4 => matches!(
            role,
            role::PUSH_BUTTON
                | role::TOGGLE_BUTTON
                | role::CHECK_BOX
                | role::RADIO_BUTTON
                | role::CHECK_MENU_ITEM
                | role::RADIO_MENU_ITEM
                | role::MENU_ITEM
                | role::COMBO_BOX
                | role::LINK
                | role::LIST_ITEM
                | role::PAGE_TAB
                | role::TREE_ITEM
                | role::TABLE_CELL
                | 129
                | 130
        ),
        _ => !matches!(role, role::STATIC | role::LABEL | role::PARAGRAPH | role::SCROLL_PANE | 50 | 82..=84),
    }
}

/// Whether the object does its work by a button inside it: menu buttons, drop-downs and combo boxes of GTK 4 have no action.
pub(crate) fn opens_by_inner_button(facts: &NativeFacts<'_>) -> bool {
    facts.toolkit == Toolkit::Gtk4
        && facts.actions.is_empty()
        && matches!(facts.role, role::COMBO_BOX | role::PUSH_BUTTON)
}

/// What the object offers.
pub(crate) fn capabilities_of(facts: &NativeFacts<'_>, our_role: Role) -> Capabilities {
    let mut offered = Capabilities::NONE;
    let is_usable = facts.states & (state::ENABLED | state::SENSITIVE) != 0;
    let is_editable = facts.states & state::EDITABLE != 0 && facts.states & state::READ_ONLY == 0;
    let selects_in_parent = facts.parent_selects && facts.states & state::SELECTABLE != 0;
    // Gecko offers a click on its windows, which does nothing.
    let is_window = matches!(our_role, Role::Window | Role::WebArea);
    if (activate_action(facts.role, facts.actions).is_some() && !is_window) || selects_in_parent {
        offered.insert(Capability::Click);
    }
    if selects_in_parent {
        offered.insert(Capability::Select);
    }
    if opens_by_inner_button(facts) && is_usable {
        for capability in [Capability::Click, Capability::Expand, Capability::Collapse] {
            offered.insert(capability);
        }
    }
    if menu_action(facts.role, facts.toolkit, facts.actions).is_some() {
        offered.insert(Capability::RightClick);
    }
    if our_role.is_toggleable() && offered.has(Capability::Click) {
        offered.insert(Capability::Toggle);
        offered.insert(Capability::Check);
        if our_role != Role::RadioButton {
            offered.insert(Capability::Uncheck);
        }
    }
    let can_set_number = facts.interfaces.has(Interfaces::VALUE)
        && matches!(our_role, Role::Slider | Role::Incrementor | Role::ScrollBar | Role::Splitter)
        && is_usable;
    let is_sheet_cell = crate::sheet::is_cell(facts.role, facts.states, facts.interfaces);
    if can_set_number || is_sheet_cell || (facts.interfaces.has(Interfaces::EDITABLE_TEXT) && is_editable) {
        offered.insert(Capability::SetValue);
    }
    if facts.interfaces.has(Interfaces::EDITABLE_TEXT) && is_editable {
        offered.insert(Capability::TypeText);
    }
    if facts.states & state::FOCUSABLE != 0 && facts.interfaces.has(Interfaces::COMPONENT) {
        offered.insert(Capability::SetFocus);
    }
    let can_expand =
        facts.states & state::EXPANDABLE != 0 || matches!(our_role, Role::ComboBox | Role::MenuButton);
    if can_expand && expand_action(true, facts.role, facts.actions).is_some() {
        offered.insert(Capability::Expand);
        offered.insert(Capability::Collapse);
    }
    let is_qt_combo = facts.toolkit == Toolkit::Qt && our_role == Role::ComboBox;
    if facts.interfaces.has(Interfaces::SELECTION)
        && !is_qt_combo
        && matches!(
            our_role,
            Role::ComboBox
                | Role::List
                | Role::ListBox
                | Role::TabList
                | Role::Table
                | Role::Outline
                | Role::Menu
        )
        || our_role == Role::ComboBox
            && !is_qt_combo
            && (offered.has(Capability::Click) || offered.has(Capability::Expand))
    {
        offered.insert(Capability::Select);
    }
    if matches!(our_role, Role::ScrollArea | Role::ScrollBar) {
        offered.insert(Capability::Scroll);
    }
    offered
}

/// The interface's name for a role, for nodes whose role we do not know.
pub(crate) fn native_role_name(number: u32) -> String {
    format!("atspi:{number}")
}

/// Whether GTK 4 made up this name from the class of the widget, which it does when the author gave none.
///
/// `GtkMenuButton` and `AdwLeaflet` are nobody's names for anything; a container called `HistoryView` is unnamed too.
pub(crate) fn is_type_name(name: &str, role: u32) -> bool {
    let mut characters = name.chars();
    if !characters.next().is_some_and(|first| first.is_ascii_uppercase())
        || !name.chars().all(|character| character.is_ascii_alphanumeric())
    {
        return false;
    }
    let has_prefix = ["Gtk", "Adw", "Gdk", "Gnome", "Nautilus", "Panel"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    });
    let is_container = matches!(
        role,
        role::FILLER
            | role::PANEL
            | role::SCROLL_PANE
            | role::LIST
            | role::TABLE
            | role::TABLE_ROW
            | role::TREE_TABLE
    );
    let humps = name.chars().filter(char::is_ascii_uppercase).count();
    has_prefix || (is_container && humps >= 2 && name.chars().any(|c| c.is_ascii_lowercase()))
}

/// Takes apart the doubled names of GTK 4.8, which joins a label with the text of the widget that labels it: `7 7`.
pub(crate) fn undoubled(name: &str) -> &str {
    let middle = name.len() / 2;
    if name.len() % 2 == 1 && name.is_char_boundary(middle) && name.as_bytes()[middle] == b' ' {
        let (first, second) = (&name[..middle], &name[middle + 1..]);
        if first == second && !first.is_empty() {
            return first;
        }
    }
    // `_Close Close`: the same with a mnemonic.
    if let Some((first, second)) = name.split_once(' ')
        && first.contains('_')
        && first.replace('_', "") == second
    {
        return second;
    }
    name
}

/// Column and row of a spreadsheet cell from its address, both counted from 0: `ZZ50000` is (701, 49999).
pub(crate) fn cell_address(name: &str) -> Option<(u32, u32)> {
    let split = name.find(|character: char| character.is_ascii_digit())?;
    let (letters, digits) = name.split_at(split);
    if letters.is_empty() || letters.len() > 3 || digits.starts_with('0') {
        return None;
    }
    let mut column = 0_u32;
    for letter in letters.bytes() {
        if !letter.is_ascii_uppercase() {
            return None;
        }
        column = column * 26 + u32::from(letter - b'A') + 1;
    }
    let row: u32 = digits.parse().ok()?;
    Some((column - 1, row.checked_sub(1)?))
}

/// The address of a spreadsheet cell; the reverse of [`cell_address`].
pub(crate) fn address_of(column: u32, row: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = column + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(b'A' + (rest % 26) as u8);
        rest /= 26;
    }
    letters.reverse();
    format!("{}{}", String::from_utf8_lossy(&letters), row + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn facts(role: u32, states: u64, actions: &[String]) -> NativeFacts<'_> {
        NativeFacts {
            role,
            states,
            interfaces: Interfaces::default(),
            toolkit: Toolkit::Gtk3,
            actions,
            parent_selects: false,
        }
    }

    #[test]
    fn a_click_on_a_gtk4_text_view_never_runs_its_first_action() {
        let actions = words(&["buffer.delete-line", "clipboard.cut", "activate"]);
        assert_eq!(activate_action(role::TEXT, &actions), None);
        assert_eq!(activate_action(role::LABEL, &words(&["clipboard.copy", "selection.delete"])), None);
    }

    #[test]
    fn qt_show_menu_on_a_button_is_a_click_and_not_a_context_menu() {
        let actions = words(&["Show Menu", "Set Focus"]);
        assert_eq!(activate_action(role::PUSH_BUTTON, &actions), Some(0));
        assert_eq!(menu_action(role::PUSH_BUTTON, Toolkit::Qt, &actions), None);
        assert_eq!(menu_action(role::LIST, Toolkit::Qt, &words(&["ShowMenu"])), Some(0));
    }

    #[test]
    fn disabled_needs_both_states_missing() {
        let none = Vec::new();
        assert!(states_of(&facts(role::PUSH_BUTTON, 0, &none), Role::Button).has(State::Disabled));
        let half = facts(role::CHECK_BOX, state::SENSITIVE | state::INDETERMINATE, &none);
        assert!(!states_of(&half, Role::CheckBox).has(State::Disabled));
    }

    #[test]
    fn a_half_checked_box_is_indeterminate_and_not_checked() {
        let none = Vec::new();
        let qt = facts(role::CHECK_BOX, state::CHECKED | state::INDETERMINATE | state::ENABLED, &none);
        let states = states_of(&qt, Role::CheckBox);
        assert!(states.has(State::Indeterminate) && !states.has(State::Checked));
    }

    #[test]
    fn type_names_of_gtk4_are_not_names() {
        assert!(is_type_name("GtkMenuButton", role::PUSH_BUTTON));
        assert!(is_type_name("HistoryView", role::FILLER));
        assert!(!is_type_name("LibreOffice", role::PUSH_BUTTON));
        assert!(!is_type_name("Gtk", role::PUSH_BUTTON));
        assert!(!is_type_name("Hidden text", role::FILLER));
        assert_eq!(undoubled("7 7"), "7");
        assert_eq!(undoubled("mod mod"), "mod");
        assert_eq!(undoubled("a b"), "a b");
    }

    #[test]
    fn addresses_of_cells() {
        assert_eq!(cell_address("A1"), Some((0, 0)));
        assert_eq!(cell_address("ZZ50000"), Some((701, 49_999)));
        assert_eq!(cell_address("A0"), None);
        assert_eq!(cell_address("Sheet1"), None);
        assert_eq!(cell_address("a1"), None);
    }

    #[test]
    fn every_role_number_maps_and_only_nonsense_is_unknown() {
        let none = Vec::new();
        for number in 1..=130 {
            let known = role_of(&facts(number, 0, &none)) != Role::Unknown;
            let nameless = matches!(number, 2..=4 | 13 | 14 | 67 | 89);
            assert!(known || nameless, "role {number}");
        }
        assert_eq!(role_of(&facts(100_000, 0, &none)), Role::Unknown);
    }

    proptest! {
        #[test]
        fn addresses_print_and_parse(column in 0_u32..16_384, row in 0_u32..1_048_576) {
            prop_assert_eq!(cell_address(&address_of(column, row)), Some((column, row)));
        }

        #[test]
        fn no_name_breaks_the_rules(name in "\\PC{0,12}") {
            let _ = is_type_name(&name, role::FILLER);
            prop_assert!(name.contains(undoubled(&name)));
            let _ = cell_address(&name);
        }
    }
}
