//! Roles: what kind of thing a node is.
//!
//! The 79 canonical roles and `unknown`. Which native role becomes which of these is decided in each platform's
//! `map.rs`; which roles are interactive, expandable and so on is decided here.

use std::fmt;
use std::str::FromStr;

macro_rules! roles {
    ($($variant:ident $text:literal),* $(,)?) => {
        /// A canonical role.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is the role of its name")]
        pub enum Role { $($variant),* }

        impl Role {
            /// Every role, `unknown` last, in alphabetical order of their names.
            pub const ALL: &[Role] = &[$(Role::$variant),*];

            /// The name used in JSON, in queries and in outlines.
            pub const fn as_str(self) -> &'static str {
                match self { $(Role::$variant => $text),* }
            }

            fn from_canonical(text: &str) -> Option<Role> {
                match text { $($text => Some(Role::$variant),)* _ => None }
            }
        }
    };
}

roles! {
    Alert "alert", AlertDialog "alertdialog", Application "application", Article "article", Banner "banner",
    Browser "browser", Button "button", Cell "cell", CheckBox "checkbox", ColorWell "colorwell", Column "column",
    ComboBox "combobox", Complementary "complementary", ContentInfo "contentinfo", DateField "datefield",
    Definition "definition", Dialog "dialog", Disclosure "disclosure", DockItem "dockitem", Document "document",
    Drawer "drawer", Form "form", Grid "grid", Group "group", Handle "handle", Heading "heading",
    HelpTag "helptag", Image "image", Incrementor "incrementor", LayoutItem "layoutitem",
    LevelIndicator "levelindicator", Link "link", List "list", ListBox "listbox", Log "log", Main "main",
    Marquee "marquee", Matte "matte", Math "math", Menu "menu", MenuButton "menubutton", MenuItem "menuitem",
    Navigation "navigation", Note "note", Option "option", Outline "outline", Paragraph "paragraph",
    Popover "popover", ProgressBar "progressbar", RadioButton "radiobutton", RadioGroup "radiogroup",
    Region "region", RelevanceIndicator "relevanceindicator", Row "row", Ruler "ruler",
    RulerMarker "rulermarker", ScrollArea "scrollarea", ScrollBar "scrollbar", Search "search",
    Separator "separator", Sheet "sheet", Slider "slider", Splitter "splitter", StaticText "statictext",
    Status "status", Switch "switch", Tab "tab", Table "table", TabList "tablist", TabPanel "tabpanel",
    Term "term", TextField "textfield", TimeField "timefield", Timer "timer", Toolbar "toolbar",
    Tooltip "tooltip", TreeItem "treeitem", WebArea "webarea", Window "window", Unknown "unknown",
}

impl Role {
    /// Words of other vocabularies that queries may use, and the role each stands for.
    pub const ALIASES: &[(&str, Role)] = &[
        ("gridcell", Role::Cell),
        ("img", Role::Image),
        ("radio", Role::RadioButton),
        ("searchbox", Role::TextField),
        ("searchfield", Role::TextField),
        ("spinbutton", Role::Incrementor),
        ("textarea", Role::TextField),
        ("textbox", Role::TextField),
        ("togglebutton", Role::Button),
        ("tree", Role::Outline),
    ];

    /// Whether a person operates things of this role directly; such nodes always get a ref.
    pub const fn is_interactive(self) -> bool {
        matches!(
            self,
            Role::Button
                | Role::Cell
                | Role::CheckBox
                | Role::ColorWell
                | Role::ComboBox
                | Role::DockItem
                | Role::Incrementor
                | Role::Link
                | Role::ListBox
                | Role::MenuButton
                | Role::MenuItem
                | Role::Option
                | Role::RadioButton
                | Role::Slider
                | Role::Switch
                | Role::Tab
                | Role::TextField
                | Role::TreeItem
        )
    }

    /// Whether `checked` is a question one can ask of this role.
    pub const fn is_toggleable(self) -> bool {
        matches!(self, Role::CheckBox | Role::Switch | Role::RadioButton)
    }

    /// Whether `expanded` is a question one can ask of this role.
    pub const fn is_expandable(self) -> bool {
        matches!(self, Role::ComboBox | Role::MenuButton | Role::TreeItem | Role::Disclosure)
    }

    /// Whether the value changes in normal use, so that it cannot identify the node.
    pub const fn has_mutable_value(self) -> bool {
        matches!(
            self,
            Role::ComboBox
                | Role::CheckBox
                | Role::Incrementor
                | Role::ListBox
                | Role::RadioButton
                | Role::Slider
                | Role::Switch
                | Role::TextField
        )
    }

    /// Whether text can be entered into this role without it saying so itself.
    pub const fn is_editable(self) -> bool {
        matches!(self, Role::TextField | Role::ComboBox)
    }

    /// Whether the role carries numbers rather than text as its value.
    pub const fn is_numeric(self) -> bool {
        matches!(
            self,
            Role::Incrementor
                | Role::Slider
                | Role::ScrollBar
                | Role::ProgressBar
                | Role::LevelIndicator
                | Role::Splitter
        )
    }

    /// Parses a role as a user writes it: trimmed, any case, aliases included.
    ///
    /// `unknown` is an answer, not a question: it is not accepted.
    ///
    /// # Errors
    /// The text itself, when it names no role.
    pub fn parse_query(text: &str) -> Result<Role, UnknownRole> {
        let folded = text.trim().to_lowercase();
        if let Some(&(_, role)) = Role::ALIASES.iter().find(|(alias, _)| *alias == folded) {
            return Ok(role);
        }
        match Role::from_canonical(&folded) {
            Some(Role::Unknown) | None => Err(UnknownRole),
            Some(role) => Ok(role),
        }
    }
}

/// The text names no role that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRole;

impl fmt::Display for UnknownRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not a role; roles are listed in docs/contract.md")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    /// Parses the exact canonical name, `unknown` included: what our own JSON contains.
    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Role::from_canonical(text).ok_or(UnknownRole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_eighty_roles_and_eighteen_are_interactive() {
        assert_eq!(Role::ALL.len(), 80);
        assert_eq!(Role::ALL.iter().filter(|role| role.is_interactive()).count(), 18);
    }

    #[test]
    fn every_role_parses_back() {
        for &role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
    }

    #[test]
    fn queries_fold_and_know_aliases_but_not_unknown() {
        assert_eq!(Role::parse_query(" TextBox "), Ok(Role::TextField));
        assert_eq!(Role::parse_query("tree"), Ok(Role::Outline));
        assert_eq!(Role::parse_query("unknown"), Err(UnknownRole));
        assert_eq!(Role::parse_query("buton"), Err(UnknownRole));
    }
}
