//! The tree: what was read of a window.
//!
//! A flat arena in document order (depth-first, pre-order): the index is the id, children come after their parent, the
//! root is 0. A platform builds it, the rules of this crate look at it.

use serde::{Deserialize, Serialize};

use crate::action::Capabilities;
use crate::geometry::Rect;
use crate::role::Role;
use crate::state::States;

/// Where a living element is found again without searching. Plain data; opaque above the platform.
///
/// On Linux: unique bus name, then object path, in one string (`:1.42/org/a11y/atspi/accessible/7`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Handle(Box<str>);

impl Handle {
    /// Wraps the platform's own spelling.
    pub fn new(text: impl Into<Box<str>>) -> Handle {
        Handle(text.into())
    }

    /// The platform's own spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What kind of identifier a platform gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NativeIdKind {
    /// `AXIdentifier`.
    AxIdentifier,
    /// The id of an element in a web page.
    AxDomIdentifier,
    /// UIA `AutomationId`, or the toolkit's own id for the widget (`accessible-id` on AT-SPI).
    AutomationId,
    /// UIA `RuntimeId`.
    RuntimeId,
    /// The AT-SPI object path.
    AtspiObjectPath,
    /// Something else.
    Unknown,
}

impl NativeIdKind {
    /// The word used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            NativeIdKind::AxIdentifier => "ax_identifier",
            NativeIdKind::AxDomIdentifier => "ax_dom_identifier",
            NativeIdKind::AutomationId => "automation_id",
            NativeIdKind::RuntimeId => "runtime_id",
            NativeIdKind::AtspiObjectPath => "atspi_object_path",
            NativeIdKind::Unknown => "unknown",
        }
    }

    /// The kind of exactly this word.
    pub fn parse(text: &str) -> Option<NativeIdKind> {
        [
            NativeIdKind::AxIdentifier,
            NativeIdKind::AxDomIdentifier,
            NativeIdKind::AutomationId,
            NativeIdKind::RuntimeId,
            NativeIdKind::AtspiObjectPath,
            NativeIdKind::Unknown,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
    }
}

/// An identifier that the application's author or toolkit gave to an element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NativeId {
    /// What kind of identifier it is.
    pub kind: NativeIdKind,
    /// The identifier.
    pub value: String,
}

/// Numbers of a slider, a spin button, a progress or scroll bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumericValue {
    /// Where it stands.
    pub current: f64,
    /// Its smallest value.
    pub minimum: f64,
    /// Its largest value.
    pub maximum: f64,
    /// The smallest step; 0 when the application does not say.
    pub step: f64,
}

/// Which facts of a node were asked for and could not be read.
///
/// Identity and locators must tell "absent" from "could not be read".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Role, name, states or children.
    pub basics: bool,
    /// Value or text.
    pub value: bool,
    /// Bounds.
    pub bounds: bool,
    /// Identifiers of the platform.
    pub native_id: bool,
    /// What it offers.
    pub actions: bool,
}

impl Gaps {
    /// Whether everything asked for was read.
    pub const fn is_empty(self) -> bool {
        !(self.basics || self.value || self.bounds || self.native_id || self.actions)
    }
}

/// Why the children of a node are not in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The depth limit; the tree still counts as complete.
    Depth,
    /// A budget (nodes, children, text) or the deadline.
    Budget,
    /// A table or list that makes its items on demand: only those in view were read.
    Virtual,
}

/// Index of a node in its [`Tree`].
pub type NodeId = u32;

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub role: Role,
    /// The platform's word for it; kept only when `role` is `unknown`.
    pub native_role: Option<String>,
    /// The accessible name, computed by [`crate::name`].
    pub name: Option<String>,
    /// Its value or text content; never that of a secure field.
    pub value: Option<String>,
    /// A description, only when something else supplied the name.
    pub description: Option<String>,
    /// Identifier from the platform.
    pub native_id: Option<NativeId>,
    /// Position among siblings where that helps (`column 1 of 3`).
    pub hint: Option<String>,
    /// What is true of it now.
    pub states: States,
    /// What it offers.
    pub capabilities: Capabilities,
    /// Where it is. `None`: not known or nowhere.
    pub bounds: Option<Rect>,
    /// Its numbers, if it has any.
    pub number: Option<NumericValue>,
    /// How many characters its text has, if it has text. Known for secure fields too.
    pub text_length: Option<u32>,
    /// Whether it is part of a web page.
    pub is_web: bool,
    /// Where to find it again.
    pub handle: Handle,
    /// Its parent in this tree.
    pub parent: Option<NodeId>,
    /// Its children in this tree, in the application's order.
    pub children: Vec<NodeId>,
    /// Its index among all children of its parent, those not in this tree included.
    pub index_in_parent: u32,
    /// How many children it has in the application, when not all of them are in this tree.
    pub children_count: Option<u32>,
    /// Why some of its children are not in this tree.
    pub cut: Option<Cut>,
    /// What could not be read.
    pub gaps: Gaps,
}

impl Node {
    /// Whether its value is only the beginning of a text, as trees hold it.
    pub fn is_value_cut(&self) -> bool {
        self.value.is_some() && self.text_length.is_some_and(|length| length > crate::platform::TEXT_READ)
    }

    /// A node of this role at this place, with nothing else known.
    pub fn new(role: Role, handle: Handle) -> Node {
        Node {
            role,
            native_role: None,
            name: None,
            value: None,
            description: None,
            native_id: None,
            hint: None,
            states: States::NONE,
            capabilities: Capabilities::NONE,
            bounds: None,
            number: None,
            text_length: None,
            is_web: false,
            handle,
            parent: None,
            children: Vec::new(),
            index_in_parent: 0,
            children_count: None,
            cut: None,
            gaps: Gaps::default(),
        }
    }

    /// Whether an agent can do something with it, so that it gets a ref.
    ///
    /// A node of unknown role gets one when it offers an action.
    pub fn is_operable(&self) -> bool {
        self.role.is_interactive() || self.capabilities.makes_operable()
    }

    /// Its name, else value, else description, else `(unnamed <role>)`.
    pub fn label(&self) -> String {
        self.name
            .as_ref()
            .or(self.value.as_ref())
            .or(self.description.as_ref())
            .cloned()
            .unwrap_or_else(|| format!("(unnamed {})", self.role))
    }
}

/// A tree in document order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// An empty tree with room for `capacity` nodes.
    pub fn with_capacity(capacity: usize) -> Tree {
        Tree { nodes: Vec::with_capacity(capacity) }
    }

    /// Appends a node below `parent` and returns its id. Call in document order; the root first, without a parent.
    ///
    /// # Panics
    /// If `parent` is not in the tree, or a second root is given.
    pub fn push(&mut self, parent: Option<NodeId>, mut node: Node) -> NodeId {
        let id = self.nodes.len() as NodeId;
        assert!(parent.is_some() || id == 0, "a tree has one root");
        node.parent = parent;
        node.children.clear();
        if let Some(parent) = parent {
            self.nodes[parent as usize].children.push(id);
        }
        self.nodes.push(node);
        id
    }

    /// The root's id, unless the tree is empty.
    pub fn root(&self) -> Option<NodeId> {
        (!self.nodes.is_empty()).then_some(0)
    }

    /// The node with this id.
    ///
    /// # Panics
    /// If there is none.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// The node with this id, to change its facts.
    ///
    /// # Panics
    /// If there is none.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// Every node in document order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (index as NodeId, node))
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The ancestors of a node, nearest first.
    pub fn ancestors(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.node(id).parent, |&parent| self.node(parent).parent)
    }

    /// The node and everything below it, in document order: one run of ids.
    pub fn subtree(&self, id: NodeId) -> std::ops::Range<NodeId> {
        let mut end = id + 1;
        let mut last = id;
        while let Some(&child) = self.node(last).children.last() {
            last = child;
            end = child + 1;
        }
        id..end
    }

    /// Child indexes from the root to this node, as the application counts them.
    pub fn path(&self, id: NodeId) -> Vec<u32> {
        let mut path: Vec<u32> = std::iter::once(id)
            .chain(self.ancestors(id))
            .map(|step| self.node(step).index_in_parent)
            .collect();
        path.pop(); // the root has no index of its own
        path.reverse();
        path
    }

    /// The node at the end of a path of application child indexes, if it is in this tree.
    pub fn at_path(&self, path: &[u32]) -> Option<NodeId> {
        let mut id = self.root()?;
        for &index in path {
            id = *self.node(id).children.iter().find(|&&child| self.node(child).index_in_parent == index)?;
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: u32) -> Node {
        Node { index_in_parent: index, ..Node::new(Role::Group, Handle::new("x")) }
    }

    #[test]
    fn paths_use_the_applications_indexes() {
        let mut tree = Tree::default();
        let root = tree.push(None, node(7));
        let first = tree.push(Some(root), node(2));
        let leaf = tree.push(Some(first), node(5));
        let second = tree.push(Some(root), node(3));
        assert_eq!(tree.path(leaf), [2, 5]);
        assert_eq!(tree.at_path(&[2, 5]), Some(leaf));
        assert_eq!(tree.at_path(&[0]), None);
        assert_eq!(tree.subtree(first), first..second);
        assert_eq!(tree.subtree(root), 0..4);
        assert_eq!(tree.path(root), [0_u32; 0]);
    }
}
