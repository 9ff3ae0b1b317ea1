//! Trees as JSON, written straight from the arena.

use agent_desktop_core::action::Capability;
use agent_desktop_core::filter::{self, Filtered};
use agent_desktop_core::refs::{Issued, RefTarget};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Cut, NativeId, NodeId, Tree};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::wire::Bounds;

/// A node and everything below it in a view.
#[derive(Clone, Copy, Debug)]
pub struct NodeData<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// What of it is shown.
    pub view: &'a Filtered,
    /// Which nodes have refs.
    pub issued: &'a Issued,
    /// The snapshot they belong to.
    pub snapshot_id: &'a str,
    /// Whether bounds are shown.
    pub include_bounds: bool,
    /// The node.
    pub id: NodeId,
}

/// An identifier of the platform.
#[derive(Debug, Serialize)]
pub struct NativeIdData<'a> {
    kind: &'static str,
    value: &'a str,
}

impl<'a> From<&'a NativeId> for NativeIdData<'a> {
    fn from(id: &'a NativeId) -> NativeIdData<'a> {
        NativeIdData { kind: id.kind.as_str(), value: &id.value }
    }
}

fn filled(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.is_empty())
}

impl Serialize for NodeData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let node = self.tree.node(self.id);
        let mut map = serializer.serialize_map(None)?;
        if let Some(number) = self.issued.number(self.id) {
            map.serialize_entry("ref_id", &RefTarget::new(self.snapshot_id, number).to_string())?;
        }
        map.serialize_entry("role", node.role.as_str())?;
        if let Some(native_role) = node.native_role.as_ref().filter(|_| node.role == Role::Unknown) {
            map.serialize_entry("native_role", native_role)?;
        }
        let texts = [("name", &node.name), ("value", &node.value), ("description", &node.description)];
        for (key, text) in texts {
            if let Some(text) = filled(text.as_ref()) {
                map.serialize_entry(key, text)?;
            }
        }
        if let Some(length) = node.text_length.filter(|_| node.is_value_cut()) {
            map.serialize_entry("value_length", &length)?;
        }
        if let Some(id) = &node.native_id {
            map.serialize_entry("native_id", &NativeIdData::from(id))?;
        }
        if let Some(hint) = filter::hint(self.tree, self.id) {
            map.serialize_entry("hint", &hint)?;
        }
        if !node.states.is_empty() {
            map.serialize_entry("states", &node.states.iter().map(State::as_str).collect::<Vec<_>>())?;
        }
        if !node.capabilities.is_empty() {
            let actions: Vec<&str> = node.capabilities.iter().map(Capability::as_str).collect();
            map.serialize_entry("available_actions", &actions)?;
        }
        if let Some(bounds) = node.bounds.filter(|_| self.include_bounds) {
            map.serialize_entry("bounds", &Bounds::from(bounds))?;
        }
        if let Some(count) = node.children_count {
            map.serialize_entry("children_count", &count)?;
        }
        if node.cut == Some(Cut::Virtual) {
            map.serialize_entry("only_visible_children", &true)?;
        }
        if self.view.is_truncated(self.id) {
            map.serialize_entry("subtree_truncated", &true)?;
        }
        let children = self.view.children(self.id);
        if !children.is_empty() {
            map.serialize_entry("children", &Children(*self))?;
        }
        map.end()
    }
}

struct Children<'a>(NodeData<'a>);

impl Serialize for Children<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let children = self.0.view.children(self.0.id);
        serializer.collect_seq(children.iter().map(|&id| NodeData { id, ..self.0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_desktop_core::action::Capabilities;
    use agent_desktop_core::geometry::Rect;
    use agent_desktop_core::state::States;
    use agent_desktop_core::tree::{Handle, Node};

    #[test]
    fn absent_leaves_are_left_out_and_the_rest_is_in_the_contracts_order() {
        let mut tree = Tree::default();
        let root = tree.push(
            None,
            Node {
                name: Some("Inbox".to_owned()),
                cut: Some(Cut::Depth),
                children_count: Some(4),
                ..Node::new(Role::Window, Handle::new("1"))
            },
        );
        tree.push(
            Some(root),
            Node {
                name: Some(String::new()),
                value: Some("1".to_owned()),
                native_role: Some("odd".to_owned()),
                states: States::NONE.with(State::Checked),
                capabilities: Capabilities::NONE.with(Capability::Click),
                bounds: Some(Rect::from_pixels(1, 2, 3, 4)),
                ..Node::new(Role::Unknown, Handle::new("2"))
            },
        );
        let view = Filtered::all(&tree);
        let issued = Issued::default();
        let data = NodeData {
            tree: &tree,
            view: &view,
            issued: &issued,
            snapshot_id: "sabc",
            include_bounds: true,
            id: root,
        };
        assert_eq!(
            serde_json::to_string(&data).unwrap(),
            concat!(
                r#"{"role":"window","name":"Inbox","children_count":4,"children":[{"role":"unknown","native_role":"odd","#,
                r#""value":"1","states":["checked"],"available_actions":["Click"],"#,
                r#""bounds":{"x":1.0,"y":2.0,"width":3.0,"height":4.0}}]}"#
            )
        );
    }
}
