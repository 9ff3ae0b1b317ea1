//! Which nodes an agent gets to see.
//!
//! A view on a tree, not another tree: ids, paths and handles stay those of the tree that was read, and nothing is ever
//! moved. Nodes that a view leaves out are still there for refs, locators and resolution.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::action::{Capabilities, Capability};
use crate::refs;
use crate::role::Role;
use crate::tree::{Cut, NativeId, Node, NodeId, Tree};

/// What to leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Leave out branches in which nothing can be operated (`--interactive-only`).
    pub interactive_only: bool,
    /// Leave out groups that say nothing and hold one child, which takes their place (`--compact`).
    pub compact: bool,
    /// Bounds are shown, so that a group which has some says something.
    pub include_bounds: bool,
    /// Leave out texts that only repeat what their parent is called; for outlines.
    pub without_echoes: bool,
}

const OUT: u32 = u32::MAX;

/// The nodes to show and their children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// In document order.
    kept: Vec<NodeId>,
    /// By node id: index in `kept`, or `OUT`.
    position: Vec<u32>,
    /// By index in `kept`: where its children start in `children`; one more at the end.
    starts: Vec<u32>,
    children: Vec<NodeId>,
    anchors: BTreeSet<NodeId>,
    /// By node id: whether a budget or the deadline cut here or below.
    truncated: Vec<bool>,
}

impl Filtered {
    /// The view through `filter`. Takes time in proportion to the tree.
    pub fn new(tree: &Tree, filter: Filter) -> Filtered {
        let length = tree.len();
        let anchors = refs::anchors(tree);
        let mut truncated = vec![false; length];
        // A node is dropped with all below it, or stepped over: its children take its place.
        let mut dropped = vec![false; length];
        let mut stepped_over = vec![false; length];
        for id in (0..length as NodeId).rev() {
            let node = tree.node(id);
            let index = id as usize;
            truncated[index] |= node.cut == Some(Cut::Budget);
            if let Some(parent) = node.parent {
                truncated[parent as usize] |= truncated[index];
            }
            let has_ref = node.is_operable() || anchors.contains(&id);
            let mut remaining = node.children.iter().filter(|&&child| !dropped[child as usize]);
            let (first, second) = (remaining.next(), remaining.next());
            let is_cut = node.cut.is_some() || node.children_count.is_some();
            if id == 0 || has_ref || is_cut {
                continue;
            }
            if (filter.interactive_only && first.is_none())
                || (filter.without_echoes && first.is_none() && is_echo(tree, id))
            {
                dropped[index] = true;
            } else if filter.compact && first.is_some() && second.is_none() {
                stepped_over[index] = is_wrapper(tree, id, filter.include_bounds);
            }
        }

        let mut view = Filtered { position: vec![OUT; length], anchors, truncated, ..Filtered::default() };
        // Pre-order; what is dropped takes its subtree, one run of ids, with it.
        let mut id = 0;
        while (id as usize) < length {
            if dropped[id as usize] {
                id = tree.subtree(id).end;
                continue;
            }
            if !stepped_over[id as usize] {
                view.position[id as usize] = view.kept.len() as u32;
                view.kept.push(id);
            }
            id += 1;
        }
        for &id in &view.kept {
            view.starts.push(view.children.len() as u32);
            for &child in &tree.node(id).children {
                let mut child = child;
                while stepped_over[child as usize] {
                    // A wrapper has exactly one child that remains.
                    match tree.node(child).children.iter().find(|&&inner| !dropped[inner as usize]) {
                        Some(&inner) => child = inner,
                        None => break,
                    }
                }
                if view.contains(child) {
                    view.children.push(child);
                }
            }
        }
        view.starts.push(view.children.len() as u32);
        view
    }

    /// Everything.
    pub fn all(tree: &Tree) -> Filtered {
        Filtered::new(tree, Filter::default())
    }

    /// The root, unless the tree is empty. It is always kept.
    pub fn root(&self) -> Option<NodeId> {
        self.kept.first().copied()
    }

    /// The nodes kept, in document order.
    pub fn kept(&self) -> &[NodeId] {
        &self.kept
    }

    /// Whether a node is kept.
    pub fn contains(&self, id: NodeId) -> bool {
        self.position.get(id as usize).is_some_and(|&position| position != OUT)
    }

    /// The children of a kept node in this view; none for others.
    pub fn children(&self, id: NodeId) -> &[NodeId] {
        match self.position.get(id as usize) {
            Some(&position) if position != OUT => {
                let position = position as usize;
                &self.children[self.starts[position] as usize..self.starts[position + 1] as usize]
            }
            _ => &[],
        }
    }

    /// Nodes that have a ref only so that one can drill into them.
    pub fn anchors(&self) -> &BTreeSet<NodeId> {
        &self.anchors
    }

    /// Whether a budget or the deadline cut at this node or below (`subtree_truncated`).
    pub fn is_truncated(&self, id: NodeId) -> bool {
        self.truncated.get(id as usize).copied().unwrap_or(false)
    }

    /// The nodes kept with their depth in this view, in document order.
    pub fn walk(&self) -> Walk<'_> {
        Walk { view: self, stack: self.root().map(|root| (root, 0)).into_iter().collect() }
    }
}

/// Nodes of a view with their depth, in document order.
#[derive(Debug)]
pub struct Walk<'a> {
    view: &'a Filtered,
    stack: Vec<(NodeId, u32)>,
}

impl Iterator for Walk<'_> {
    type Item = (NodeId, u32);

    fn next(&mut self) -> Option<(NodeId, u32)> {
        let (id, depth) = self.stack.pop()?;
        self.stack.extend(self.view.children(id).iter().rev().map(|&child| (child, depth + 1)));
        Some((id, depth))
    }
}

/// Where a node stands among its siblings, where that helps: panes of a splitter say `column 1 of 3`.
pub fn hint(tree: &Tree, id: NodeId) -> Option<Cow<'_, str>> {
    let node = tree.node(id);
    if let Some(hint) = &node.hint {
        return Some(Cow::Borrowed(hint));
    }
    let siblings =
        &tree.node(node.parent.filter(|&parent| tree.node(parent).role == Role::Splitter)?).children;
    if siblings.len() < 2 {
        return None;
    }
    let position = siblings.iter().position(|&sibling| sibling == id)? + 1;
    Some(Cow::Owned(format!("column {position} of {}", siblings.len())))
}

/// Whether it is a group that says nothing, the number of its children aside.
fn is_wrapper(tree: &Tree, id: NodeId, include_bounds: bool) -> bool {
    let node = tree.node(id);
    // Browsers offer these two on every node; they say nothing about this one. Being focusable does.
    let common: Capabilities = [Capability::RightClick, Capability::ScrollTo].into_iter().collect();
    node.role == Role::Group
        && node.name.is_none()
        && node.value.is_none()
        && node.description.is_none()
        && !node.native_id.as_ref().is_some_and(NativeId::is_author_given)
        && node.states.is_empty()
        && node.capabilities.iter().all(|capability| common.has(capability))
        && !(include_bounds && node.bounds.is_some())
        && hint(tree, id).is_none()
}

/// Whether it is a text that its parent is called by, or has as its value.
fn is_echo(tree: &Tree, id: NodeId) -> bool {
    let node = tree.node(id);
    let text_of = |node: &Node| node.name.clone().or_else(|| node.value.clone());
    let (Role::StaticText, Some(parent), Some(text)) = (node.role, node.parent, text_of(node)) else {
        return false;
    };
    let parent = tree.node(parent);
    node.states.is_empty()
        && node.description.is_none()
        && [&parent.name, &parent.value].into_iter().flatten().any(|said| said.trim() == text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;
    use crate::sample::{named, node, trees};
    use crate::state::State;
    use crate::tree::NativeIdKind;
    use proptest::prelude::*;

    const INTERACTIVE: Filter =
        Filter { interactive_only: true, compact: false, include_bounds: false, without_echoes: false };
    const COMPACT: Filter = Filter { interactive_only: false, compact: true, ..INTERACTIVE };

    /// Parents by index, `None` for the root; the tree is made of these nodes in this order.
    fn tree(nodes: Vec<(Option<NodeId>, Node)>) -> Tree {
        let mut tree = Tree::default();
        for (parent, node) in nodes {
            tree.push(parent, node);
        }
        tree
    }

    #[test]
    fn interactive_only_keeps_what_leads_to_something() {
        let mut cut = node(Role::Group);
        cut.children_count = Some(3);
        let tree = tree(vec![
            (None, named(Role::Window, "A")),
            (Some(0), named(Role::StaticText, "gone")),
            (Some(0), node(Role::Group)),
            (Some(2), node(Role::Group)),
            (Some(0), node(Role::Group)),
            (Some(4), named(Role::Button, "kept")),
            (Some(4), named(Role::StaticText, "gone")),
            (Some(0), cut),
        ]);
        let view = Filtered::new(&tree, INTERACTIVE);
        assert_eq!(view.kept(), [0, 4, 5, 7]);
        assert_eq!(view.children(0), [4, 7]);
        assert_eq!(view.children(2), [0; 0]);
    }

    #[test]
    fn an_empty_window_is_still_shown() {
        let tree = tree(vec![(None, node(Role::Group)), (Some(0), node(Role::Group))]);
        assert_eq!(Filtered::new(&tree, INTERACTIVE).kept(), [0]);
        assert!(Filtered::all(&Tree::default()).root().is_none());
    }

    #[test]
    fn compact_steps_over_chains_of_groups_that_say_nothing() {
        let mut noisy = node(Role::Group);
        // Browsers and AT-SPI put these on every node.
        noisy.capabilities.insert(Capability::ScrollTo);
        noisy.native_id = Some(NativeId { kind: NativeIdKind::AtspiObjectPath, value: "/7".to_owned() });
        noisy.bounds = Some(Rect::from_pixels(0, 0, 1, 1));
        let tree = tree(vec![
            (None, node(Role::Group)),
            (Some(0), noisy),
            (Some(1), node(Role::Group)),
            (Some(2), named(Role::Button, "Go")),
        ]);
        let view = Filtered::new(&tree, COMPACT);
        assert_eq!((view.kept(), view.children(0)), (&[0, 3][..], &[3][..]));
        let with_bounds = Filtered::new(&tree, Filter { include_bounds: true, ..COMPACT });
        assert_eq!(with_bounds.kept(), [0, 1, 3]);
    }

    #[test]
    fn compact_keeps_groups_that_say_something() {
        let mut focusable = node(Role::Group);
        focusable.capabilities.insert(Capability::SetFocus);
        let mut selected = node(Role::Group);
        selected.states.insert(State::Selected);
        for said in [named(Role::Group, "Tools"), focusable, selected, node(Role::Toolbar)] {
            let tree = tree(vec![(None, node(Role::Window)), (Some(0), said), (Some(1), node(Role::Button))]);
            assert_eq!(Filtered::new(&tree, COMPACT).kept().len(), 3);
        }
    }

    #[test]
    fn both_filters_together_count_the_children_that_remain() {
        let tree = tree(vec![
            (None, node(Role::Window)),
            (Some(0), node(Role::Group)),
            (Some(1), named(Role::StaticText, "gone")),
            (Some(1), node(Role::Button)),
        ]);
        let view = Filtered::new(&tree, Filter { compact: true, ..INTERACTIVE });
        assert_eq!((view.kept(), view.children(0)), (&[0, 3][..], &[3][..]));
    }

    #[test]
    fn panes_of_a_splitter_are_numbered_and_kept() {
        let tree = tree(vec![
            (None, node(Role::Splitter)),
            (Some(0), node(Role::Group)),
            (Some(1), node(Role::Button)),
            (Some(0), node(Role::Group)),
        ]);
        assert_eq!(hint(&tree, 3).as_deref(), Some("column 2 of 2"));
        assert_eq!(hint(&tree, 2), None);
        assert!(Filtered::new(&tree, COMPACT).contains(1));
    }

    #[test]
    fn a_text_that_repeats_its_parent_is_an_echo() {
        let mut status = named(Role::StaticText, "Save");
        status.states.insert(State::Busy);
        let tree = tree(vec![
            (None, named(Role::Button, "Save")),
            (Some(0), named(Role::StaticText, "Save ")),
            (Some(0), named(Role::StaticText, "Ctrl+S")),
            (Some(0), status),
        ]);
        let filter = Filter { without_echoes: true, ..Filter::default() };
        assert_eq!(Filtered::new(&tree, filter).kept(), [0, 2, 3]);
    }

    #[test]
    fn a_budget_cut_marks_every_ancestor() {
        let mut cut = node(Role::Group);
        cut.cut = Some(Cut::Budget);
        let tree = tree(vec![
            (None, node(Role::Window)),
            (Some(0), node(Role::Group)),
            (Some(1), cut),
            (Some(0), node(Role::Group)),
        ]);
        let view = Filtered::all(&tree);
        assert_eq!([0, 1, 2, 3].map(|id| view.is_truncated(id)), [true, true, true, false]);
    }

    proptest! {
        #[test]
        fn nothing_is_reordered_moved_or_shown_twice(
            tree in trees(), interactive_only: bool, compact: bool, include_bounds: bool, without_echoes: bool,
        ) {
            let view = Filtered::new(&tree, Filter { interactive_only, compact, include_bounds, without_echoes });
            let walked: Vec<NodeId> = view.walk().map(|(id, _)| id).collect();
            prop_assert_eq!(&walked[..], view.kept());
            prop_assert!(walked.is_sorted_by(|one, other| one < other));
            prop_assert_eq!(view.root(), Some(0));
            for &id in view.kept() {
                for &child in view.children(id) {
                    prop_assert!(tree.ancestors(child).any(|ancestor| ancestor == id));
                }
            }
            for (id, node) in tree.iter() {
                // What has a ref, and what tells that something is missing, is never left out.
                let matters = node.is_operable() || view.anchors().contains(&id) || node.cut.is_some();
                prop_assert!(!matters || view.contains(id), "{}", id);
            }
        }

        #[test]
        fn without_a_filter_everything_is_kept(tree in trees()) {
            let view = Filtered::all(&tree);
            prop_assert_eq!(view.kept().len(), tree.len());
            for (id, node) in tree.iter() {
                prop_assert_eq!(view.children(id), &node.children[..]);
            }
        }
    }
}
