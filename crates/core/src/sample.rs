//! Trees for the tests of this crate.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::action::Capability;
use crate::geometry::Rect;
use crate::platform::SurfaceKind;
use crate::refs::{AllocationContext, MAX_MAP_BYTES};
use crate::role::Role;
use crate::state::State;
use crate::tree::{Cut, Gaps, Handle, NativeId, NativeIdKind, Node, NodeId, Tree};

pub(crate) fn node(role: Role) -> Node {
    Node::new(role, Handle::new(""))
}

pub(crate) fn named(role: Role, name: &str) -> Node {
    Node { name: Some(name.to_owned()), ..node(role) }
}

pub(crate) fn context() -> AllocationContext {
    AllocationContext {
        pid: 42,
        process_instance: "p:42:7".to_owned(),
        source_app: "Notes".to_owned(),
        source_window_id: "w-1".to_owned(),
        source_window_title: "Inbox".to_owned(),
        source_window_bounds_hash: None,
        source_surface: SurfaceKind::Window,
        include_bounds: false,
        byte_budget: MAX_MAP_BYTES,
    }
}

fn text() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        3 => Just(None),
        3 => prop_oneof![Just("Save"), Just("Twin"), Just("Open"), Just(" "), Just("50")].prop_map(|text| Some(text.to_owned())),
        1 => "\\PC{0,12}|[\\x00-\\x1f\u{2028}\"\\\\]{0,6}".prop_map(Some),
    ]
}

fn nodes() -> impl Strategy<Value = Node> {
    let role = prop_oneof![
        Just(Role::Group),
        Just(Role::Button),
        Just(Role::StaticText),
        Just(Role::TextField),
        Just(Role::Row),
        Just(Role::Splitter),
        Just(Role::Unknown),
    ];
    let bounds = prop_oneof![
        Just(None),
        (0..9_i32, 0..9_i32).prop_map(|(x, y)| Some(Rect::from_pixels(x * 10, y * 10, 10, 10)))
    ];
    let cut = prop_oneof![
        9 => Just(None),
        1 => prop_oneof![Just(Cut::Depth), Just(Cut::Budget), Just(Cut::Virtual)].prop_map(Some)
    ];
    let id = prop_oneof![
        4 => Just(None),
        1 => Just(Some(NativeId { kind: NativeIdKind::AutomationId, value: "id".to_owned() })),
        1 => (0..5).prop_map(|n| Some(NativeId { kind: NativeIdKind::AtspiObjectPath, value: format!("/{n}") })),
    ];
    let gaps = prop_oneof![
        9 => Just(Gaps::default()),
        1 => any::<[bool; 5]>().prop_map(|[basics, value, bounds, native_id, actions]| Gaps { basics, value, bounds, native_id, actions })
    ];
    (role, text(), text(), text(), bounds, cut, id, gaps, any::<u8>()).prop_map(
        |(role, name, value, description, bounds, cut, native_id, gaps, bits)| {
            let mut node = Node { name, value, description, native_id, bounds, cut, gaps, ..node(role) };
            node.states.set(State::Disabled, bits & 7 == 1);
            node.states.set(State::Checked, bits & 7 == 2);
            if bits & 0x18 == 0x18 {
                node.capabilities.insert(Capability::Click);
            }
            if bits & 0x20 != 0 {
                node.capabilities.insert(Capability::ScrollTo);
            }
            node
        },
    )
}

/// Any tree of up to 40 nodes, with a handle of its own for each.
pub(crate) fn trees() -> impl Strategy<Value = Tree> {
    // A node goes below the last one, or so many levels up: this gives every shape, in document order.
    vec((nodes(), 0..4_usize), 1..40).prop_map(|nodes| {
        let mut tree = Tree::default();
        for (index, (mut node, up)) in nodes.into_iter().enumerate() {
            node.handle = Handle::new(format!(":1.1/{index}"));
            if index == 0 {
                tree.push(None, node);
                continue;
            }
            let last = index as NodeId - 1;
            let parent = std::iter::once(last).chain(tree.ancestors(last)).take(up + 1).last().unwrap_or(0);
            node.index_in_parent = tree.node(parent).children.len() as u32;
            tree.push(Some(parent), node);
        }
        tree
    })
}
