//! Accessible names: which of the candidates an element is called by.
//!
//! The order follows accname, <https://www.w3.org/TR/accname-1.2/>, as far as a reader from outside can: applications
//! have usually computed most of it themselves.

use crate::role::Role;
use crate::tree::{NodeId, Tree};

/// What an element could be called by, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameCandidates {
    /// What the author said it is called.
    pub label: Option<String>,
    /// Text of the elements that label it.
    pub labelled_by: Option<String>,
    /// The toolkit's title for it.
    pub title: Option<String>,
    /// Its own text, when it is text that nobody can edit.
    pub static_text: Option<String>,
    /// The text shown while it is empty.
    pub placeholder: Option<String>,
    /// Its description.
    pub description: Option<String>,
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Name and description by these candidates, before child labels are known.
///
/// The description is reported only when an earlier candidate supplied the name.
pub fn choose(candidates: NameCandidates) -> (Option<String>, Option<String>) {
    let description = filled(candidates.description);
    let name = filled(candidates.label)
        .or_else(|| filled(candidates.labelled_by))
        .or_else(|| filled(candidates.title))
        .or_else(|| filled(candidates.static_text));
    match name {
        Some(name) => {
            let description = description.filter(|text| *text != name);
            (Some(name), description)
        }
        None => (filled(candidates.placeholder).or(description), None),
    }
}

/// How many children are looked at for a label.
const LABEL_CHILDREN: usize = 5;

/// Names interactive nodes that have no name after their children: static text first, then named cells and groups and
/// the static text inside them.
///
/// A placeholder or a description ranks below a child's text; platforms leave such nodes in `fallback`, which gives the
/// name to use when no child supplies one.
pub fn name_from_children(tree: &mut Tree, mut fallback: impl FnMut(NodeId) -> Option<String>) {
    for id in 0..tree.len() as NodeId {
        let node = tree.node(id);
        if node.name.is_some() {
            continue;
        }
        // What stands inside a field, a combo box or a slider is its content, not what it is called.
        let is_filled = matches!(
            node.role,
            Role::TextField | Role::ComboBox | Role::ListBox | Role::Slider | Role::Incrementor
        );
        let from_child = if node.role.is_interactive() && !is_filled { child_label(tree, id) } else { None };
        if let Some(name) = from_child.or_else(|| fallback(id)) {
            tree.node_mut(id).name = Some(name);
        }
    }
}

fn is_marker(text: &str) -> bool {
    let text = text.trim();
    let number = text.strip_suffix(['.', ')']).unwrap_or("-");
    !text.contains(char::is_alphanumeric)
        || (!number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

fn child_label(tree: &Tree, id: NodeId) -> Option<String> {
    let children = || tree.node(id).children.iter().take(LABEL_CHILDREN).map(|&child| tree.node(child));
    let text_of = |node: &crate::tree::Node| {
        matches!(node.role, Role::StaticText | Role::Paragraph | Role::Heading)
            .then(|| filled(node.name.clone()).or_else(|| filled(node.value.clone())))
            .flatten()
    };
    let mut texts: Vec<String> = children().filter_map(text_of).collect();
    // The bullet or the number in front of a list item says nothing, unless it is all there is.
    let text = texts.iter().position(|text| !is_marker(text)).unwrap_or(0);
    (text < texts.len()).then(|| texts.swap_remove(text)).or_else(|| {
        children().filter(|child| matches!(child.role, Role::Cell | Role::Group | Role::Image)).find_map(
            |child| {
                filled(child.name.clone()).or_else(|| {
                    child
                        .children
                        .iter()
                        .take(LABEL_CHILDREN)
                        .map(|&inner| tree.node(inner))
                        .find_map(text_of)
                })
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Handle, Node};

    #[allow(clippy::unnecessary_wraps, reason = "stands for a field that is one")]
    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn blank_candidates_do_not_count() {
        let candidates = NameCandidates { label: some("  "), title: some("Open"), ..Default::default() };
        assert_eq!(choose(candidates).0.as_deref(), Some("Open"));
    }

    #[test]
    fn description_becomes_the_name_only_when_nothing_else_does() {
        let only = NameCandidates { description: some("Opens a file"), ..Default::default() };
        assert_eq!(choose(only), (some("Opens a file"), None));
        let both =
            NameCandidates { label: some("Open"), description: some("Opens a file"), ..Default::default() };
        assert_eq!(choose(both), (some("Open"), some("Opens a file")));
    }

    #[test]
    fn a_list_item_is_not_called_by_its_bullet() {
        for (marker, wanted) in [("• ", "Milk"), ("12.", "Milk"), ("3)", "Milk"), ("Fresh", "Fresh")] {
            let mut tree = Tree::default();
            let item = tree.push(None, Node::new(Role::Option, Handle::new("1")));
            for text in [marker, "Milk"] {
                tree.push(
                    Some(item),
                    Node { name: some(text), ..Node::new(Role::StaticText, Handle::new(text)) },
                );
            }
            name_from_children(&mut tree, |_| None);
            assert_eq!(tree.node(item).name.as_deref(), Some(wanted));
        }
    }

    #[test]
    fn an_unnamed_button_is_called_by_the_text_inside() {
        let mut tree = Tree::default();
        let button = tree.push(None, Node::new(Role::Button, Handle::new("1")));
        let group = tree.push(Some(button), Node::new(Role::Group, Handle::new("2")));
        tree.push(Some(group), Node { name: some("Save"), ..Node::new(Role::StaticText, Handle::new("3")) });
        name_from_children(&mut tree, |_| None);
        assert_eq!(tree.node(button).name.as_deref(), Some("Save"));
        assert_eq!(tree.node(group).name, None);
    }
}
