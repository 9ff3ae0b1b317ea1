//! Outline: a tree as text, one line a node, for models and people.
//!
//! ```text
//! Notes, snapshot sq4m2: @e1 below is @sq4m2:e1
//! window "Inbox"
//!   toolbar
//!     button "New" @e1
//!     button "Send" @e2 disabled
//!   textfield "Search" @e3 = "invoice" focused
//!   list "Mail" @e4 … 12 more: snapshot --root @sq4m2:e4
//! ```
//!
//! What a line says, in this order: role, name, ref, value, description, states, what it offers where the role does not
//! tell, bounds if asked for, and whether something below is missing and how to get it. Nothing else: an agent pays for
//! every byte. All text from the screen stands in quotes, on one line, with whatever could break or disguise the line
//! escaped, so that an application cannot write lines of its own.

use std::fmt::Write as _;

use crate::action::Capability;
use crate::filter::{self, Filtered};
use crate::platform::Stop;
use crate::refs::{Issued, RefTarget};
use crate::role::Role;
use crate::state::State;
use crate::tree::{Cut, Node, NodeId, Tree};

/// Characters of screen text that a message shows.
pub const MESSAGE_TEXT: usize = 60;
/// Characters of a name, a value or a description that a line shows.
pub const LINE_TEXT: usize = 120;
/// Spaces for a level are counted up to this depth: deeper trees would pay more for indentation than for text.
const MAX_INDENT: u32 = 40;

/// At most `limit` characters of a text, with `…` for what was cut.
pub fn cut(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    let end = text.char_indices().nth(limit.saturating_sub(1)).map_or(0, |(index, _)| index);
    format!("{}…", text[..end].trim_end())
}

/// Whether a character would break a line, hide itself or turn the text around it.
const fn is_unsafe(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'
        | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// A text in quotes on one line: `"`, `\` and whatever could break or disguise the line is escaped.
pub fn quote(text: &str, limit: usize) -> String {
    let mut quoted = String::with_capacity(text.len().min(limit * 4) + 2);
    quoted.push('"');
    for character in cut(text, limit).chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            _ if is_unsafe(character) => quoted.extend(character.escape_unicode()),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// What a node is called in messages: `button "Save"`.
pub fn describe(role: Role, name: Option<&str>) -> String {
    match name.filter(|name| !name.trim().is_empty()) {
        Some(name) => format!("{role} {}", quote(name, MESSAGE_TEXT)),
        None => format!("unnamed {role}"),
    }
}

/// What stands above an outline.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Name of the application.
    pub app: &'a str,
    /// Title of the window.
    pub window: &'a str,
    /// Id of the snapshot; `None`: no refs were given out.
    pub snapshot_id: Option<&'a str>,
    /// Why not everything was read; `None`: it was.
    pub stopped: Option<Stop>,
    /// Whether elements have no ref because the map is full.
    pub refs_cut: bool,
}

/// How to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Print bounds.
    pub include_bounds: bool,
}

/// The whole outline: header and one line for every node of the view that says something. Ends with a line break.
///
/// Nameless groups that only hold other nodes have no line, and what they hold stands in their place; nor has the text of a
/// control that is called by that text. They stay in the tree, and in JSON.
pub fn render(header: &Header, tree: &Tree, view: &Filtered, issued: &Issued, style: Style) -> String {
    let root_name = tree.root().and_then(|root| tree.node(root).name.as_deref());
    let mut text = header_line(header, root_name, issued.iter().next().map(|(_, number)| number));
    text.push('\n');
    let mut stack: Vec<(NodeId, u32)> = view.root().map(|root| (root, 0)).into_iter().collect();
    while let Some((id, depth)) = stack.pop() {
        let has_line = says_something(tree, view, id, issued);
        if has_line {
            for _ in 0..depth.min(MAX_INDENT) {
                text.push_str("  ");
            }
            write_node(&mut text, tree, view, id, issued, header.snapshot_id, style);
            text.push('\n');
        }
        let inner = depth + u32::from(has_line);
        stack.extend(view.children(id).iter().rev().map(|&child| (child, inner)));
    }
    text
}

/// Whether a node has a line of its own.
fn says_something(tree: &Tree, view: &Filtered, id: NodeId, issued: &Issued) -> bool {
    let node = tree.node(id);
    if view.root() == Some(id) || issued.number(id).is_some() || node.cut.is_some() || view.is_truncated(id) {
        return true;
    }
    let name = shown(node.name.as_deref());
    let says_more = shown(node.value.as_deref()).is_some()
        || shown(node.description.as_deref()).is_some()
        || !node.states.is_empty()
        || node.capabilities.makes_operable()
        || filter::hint(tree, id).is_some();
    match node.role {
        Role::Group => says_more || name.is_some(),
        Role::StaticText => {
            let repeats = node.parent.is_some_and(|parent| {
                name.is_some()
                    && tree.ancestors(id).take(3).any(|above| {
                        issued.number(above).is_some() && shown(tree.node(above).name.as_deref()) == name
                    })
                    && tree.node(parent).children.len() <= 2
            });
            says_more || !repeats
        }
        _ => true,
    }
}

/// The line above an outline; `example` is the number of a ref in it.
///
/// The title of the window is left out where the first line of the outline says it: `root_name`.
pub fn header_line(header: &Header, root_name: Option<&str>, example: Option<u32>) -> String {
    let mut line = cut(header.app, MESSAGE_TEXT);
    line.retain(|character| !is_unsafe(character));
    if root_name != Some(header.window) {
        let _ = write!(line, ", window {}", quote(header.window, LINE_TEXT));
    }
    if let Some(snapshot_id) = header.snapshot_id {
        let _ = write!(line, ", snapshot {snapshot_id}");
        if let Some(number) = example {
            let _ = write!(line, ": @e{number} below is @{snapshot_id}:e{number}");
        }
    }
    match header.stopped {
        None => {}
        Some(Stop::Deadline) => line.push_str("; incomplete: not everything could be read in time"),
        Some(Stop::Limit(limit)) => {
            let _ = write!(line, "; incomplete: too much to read at once (limit: {limit}), use --root");
        }
        Some(Stop::Gone) => line.push_str("; incomplete: the application went away while it was read"),
        Some(Stop::Unreadable) => line.push_str("; incomplete: some elements could not be read"),
    }
    if header.refs_cut {
        line.push_str("; too many elements, some have no ref: use --root or --max-depth");
    }
    line
}

/// The line of one node, without indentation and without a line break.
pub fn node_line(
    tree: &Tree,
    view: &Filtered,
    id: NodeId,
    issued: &Issued,
    snapshot_id: Option<&str>,
    style: Style,
) -> String {
    let mut line = String::new();
    write_node(&mut line, tree, view, id, issued, snapshot_id, style);
    line
}

fn write_node(
    line: &mut String,
    tree: &Tree,
    view: &Filtered,
    id: NodeId,
    issued: &Issued,
    snapshot_id: Option<&str>,
    style: Style,
) {
    let node = tree.node(id);
    line.push_str(node.role.as_str());
    if let Some(native) = node.native_role.as_deref().filter(|_| node.role == Role::Unknown) {
        let _ = write!(line, " {}", quote(native, MESSAGE_TEXT));
        if shown(node.name.as_deref()).is_some() {
            line.push_str(" named");
        }
    }
    let name = shown(node.name.as_deref());
    if let Some(name) = &name {
        let _ = write!(line, " {}", quote(name, LINE_TEXT));
    }
    if let Some(number) = issued.number(id) {
        let _ = write!(line, " @e{number}");
    }
    // What is checked says so as a state.
    let value = shown(node.value.as_deref())
        .filter(|value| name.as_ref() != Some(value) && !node.role.is_toggleable());
    if let Some(value) = &value {
        let _ = write!(line, " = {}", quote(value, LINE_TEXT));
    }
    if let Some(description) = shown(node.description.as_deref()).filter(|text| Some(text) != name.as_ref()) {
        let _ = write!(line, " — {}", quote(&description, LINE_TEXT));
    }
    if let Some(hint) = filter::hint(tree, id) {
        let _ = write!(line, " ({})", quote(&hint, MESSAGE_TEXT).trim_matches('"'));
    }
    write_flags(line, node);
    if let Some(bounds) = node.bounds.filter(|_| style.include_bounds) {
        let _ = write!(line, " [{},{} {}x{}]", bounds.x, bounds.y, bounds.width, bounds.height);
    }
    if let Some(cut) = node.cut {
        write_cut(line, tree, node, id, cut, issued, snapshot_id);
    } else if view.is_truncated(id) && tree.root() == Some(id) {
        line.push_str(" … incomplete below");
    }
}

/// A text on one line with its white space run together; `None` if nothing is left to show.
fn shown(text: Option<&str>) -> Option<String> {
    let text = text?;
    // Texts of documents carry U+FFFC for every embedded object; the objects themselves are nodes.
    let mut shown = String::with_capacity(text.len().min(LINE_TEXT * 4));
    for word in text.split(|character: char| character.is_whitespace() || character == '\u{fffc}') {
        if word.is_empty() {
            continue;
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
        if shown.len() > LINE_TEXT * 4 {
            break; // more than is shown in any alphabet
        }
    }
    (!shown.is_empty()).then_some(shown)
}

fn write_flags(line: &mut String, node: &Node) {
    for state in node.states.iter() {
        // What offers a popup by its role says so already.
        let is_obvious = state == State::HasPopup && matches!(node.role, Role::ComboBox | Role::MenuButton);
        if !is_obvious {
            let _ = write!(line, " {}", state.as_str());
        }
    }
    if !node.role.is_interactive() && node.capabilities.makes_operable() {
        let common = [Capability::SetFocus, Capability::RightClick, Capability::ScrollTo];
        let mut separator = " can ";
        for capability in node.capabilities.iter().filter(|capability| !common.contains(capability)) {
            let _ = write!(line, "{separator}{}", capability.as_str());
            separator = ",";
        }
    }
}

/// What is missing below, and what to do about it.
fn write_cut(
    line: &mut String,
    tree: &Tree,
    node: &Node,
    id: NodeId,
    cut: Cut,
    issued: &Issued,
    snapshot_id: Option<&str>,
) {
    let missing = node.children_count.map(|count| count.saturating_sub(node.children.len() as u32));
    match (cut, missing) {
        (Cut::Virtual, Some(missing)) if missing > 0 => {
            let _ = write!(line, " … {missing} more out of view: scroll");
            return;
        }
        (Cut::Virtual, _) => {
            line.push_str(" … only what is in view: scroll for more");
            return;
        }
        (_, Some(0)) if cut == Cut::Depth => return,
        (_, Some(missing)) if missing > 0 => {
            let _ = write!(line, " … {missing} more");
        }
        _ => line.push_str(" … more"),
    }
    let anchor = std::iter::once(id).chain(tree.ancestors(id)).find_map(|id| issued.number(id));
    if let (Some(snapshot_id), Some(number)) = (snapshot_id, anchor) {
        let _ = write!(line, ": snapshot --root {}", RefTarget::new(snapshot_id, number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use crate::geometry::Rect;
    use crate::refs::RefMap;
    use crate::sample::{context, named, node, trees};
    use crate::tree::NativeIdKind;
    use proptest::prelude::*;

    fn outline(tree: &Tree, filter: Filter) -> String {
        let view = Filtered::new(tree, filter);
        let (_, issued) = RefMap::allocate(tree, &view, &context());
        let header = Header {
            app: "Notes",
            window: "Inbox",
            snapshot_id: Some("sq4m2"),
            stopped: None,
            refs_cut: false,
        };
        render(&header, tree, &view, &issued, Style::default())
    }

    #[test]
    fn what_is_missing_is_said_with_its_reason() {
        let header =
            |stopped| Header { app: "Notes", window: "Inbox", snapshot_id: None, stopped, refs_cut: false };
        let line = |stopped| header_line(&header(stopped), Some("Inbox"), None);
        assert_eq!(line(None), "Notes");
        let reasons = [
            (Stop::Deadline, "in time"),
            (Stop::Limit("children"), "limit: children"),
            (Stop::Gone, "went away"),
            (Stop::Unreadable, "could not be read"),
        ];
        for (stop, reason) in reasons {
            let text = line(Some(stop));
            assert!(text.starts_with("Notes; incomplete: ") && text.contains(reason), "{text}");
        }
    }

    #[test]
    fn reads_like_the_window() {
        let mut tree = Tree::default();
        let root = tree.push(None, named(Role::Window, "Inbox"));
        let toolbar = tree.push(Some(root), node(Role::Toolbar));
        let new = tree.push(Some(toolbar), named(Role::Button, "New"));
        tree.push(Some(new), named(Role::StaticText, "New"));
        let mut send = named(Role::Button, "Send");
        send.states.insert(State::Disabled);
        tree.push(Some(toolbar), send);
        let mut search = named(Role::TextField, "Search");
        search.value = Some("invoice\nfrom  \"ACME\"".to_owned());
        search.states.insert(State::Focused);
        tree.push(Some(root), search);
        let mut list = named(Role::List, "Mail");
        list.cut = Some(Cut::Depth);
        list.children_count = Some(12);
        tree.push(Some(root), list);
        let mut card = node(Role::Group);
        card.capabilities.insert(Capability::Click);
        card.capabilities.insert(Capability::SetFocus);
        tree.push(Some(root), card);
        let mut odd = named(Role::Unknown, "Knob");
        odd.native_role = Some("dial".to_owned());
        tree.push(Some(root), odd);
        let mut sheet = node(Role::Table);
        sheet.cut = Some(Cut::Virtual);
        sheet.children_count = Some(1000);
        tree.push(Some(root), sheet);
        let text = outline(&tree, Filter { without_echoes: true, ..Filter::default() });
        assert_eq!(
            text,
            "\
Notes, snapshot sq4m2: @e1 below is @sq4m2:e1
window \"Inbox\"
  toolbar
    button \"New\" @e1
    button \"Send\" @e2 disabled
  textfield \"Search\" @e3 = \"invoice from \\\"ACME\\\"\" focused
  list \"Mail\" @e4 … 12 more: snapshot --root @sq4m2:e4
  group @e5 can Click
  unknown \"dial\" named \"Knob\"
  table … 1000 more out of view: scroll
"
        );
    }

    #[test]
    fn a_cut_branch_without_identity_names_the_ref_above_it() {
        let mut tree = Tree::default();
        let root = tree.push(None, named(Role::Window, "Files"));
        let panel = tree.push(Some(root), named(Role::Group, "Panel"));
        let mut inner = node(Role::Group);
        inner.cut = Some(Cut::Budget);
        tree.push(Some(panel), inner);
        let text = outline(&tree, Filter::default());
        assert!(
            text.contains("\n  group \"Panel\" @e1\n    group … more: snapshot --root @sq4m2:e1\n"),
            "{text}"
        );
        assert!(text.contains("window \"Files\" … incomplete below\n"), "{text}");
    }

    #[test]
    fn long_texts_are_cut_at_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(cut("a   b", 3), "a…");
        assert_eq!(cut("ab", 0), "…");
        assert_eq!(quote("\u{202e}x\u{2028}\u{1b}[2J", 60), "\"\\u{202e}x\\u{2028}\\u{1b}[2J\"");
    }

    #[test]
    fn bounds_are_printed_when_asked_for() {
        let mut tree = Tree::default();
        let mut root = named(Role::Window, "A");
        root.bounds = Some(Rect::from_pixels(1, 2, 30, 40));
        root.native_id =
            Some(crate::tree::NativeId { kind: NativeIdKind::AutomationId, value: "main".to_owned() });
        tree.push(None, root);
        let view = Filtered::all(&tree);
        let line = node_line(&tree, &view, 0, &Issued::default(), None, Style { include_bounds: true });
        assert_eq!(line, "window \"A\" [1,2 30x40]");
    }

    proptest! {
        #[test]
        fn one_line_a_node_and_no_control_characters(tree in trees(), interactive_only: bool, compact: bool) {
            let filter = Filter { interactive_only, compact, ..Filter::default() };
            let text = outline(&tree, filter);
            let view = Filtered::new(&tree, filter);
            let refs = RefMap::allocate(&tree, &view, &context()).1;
            let speaking = view.kept().iter().filter(|&&id| says_something(&tree, &view, id, &refs)).count();
            prop_assert_eq!(text.matches('\n').count(), 1 + speaking);
            let is_clean = |character: char| character == '\n' || !is_unsafe(character);
            prop_assert!(text.chars().all(is_clean), "{:?}", text);
        }

        #[test]
        fn quotes_cannot_be_left(text in "\\PC{0,80}|[\"\\\\\n]{0,9}") {
            let quoted = quote(&text, 60);
            let inner = &quoted[1..quoted.len() - 1];
            let mut escaped = false;
            for character in inner.chars() {
                prop_assert!(escaped || character != '"');
                escaped = !escaped && character == '\\';
            }
            prop_assert!(!escaped);
        }
    }
}
