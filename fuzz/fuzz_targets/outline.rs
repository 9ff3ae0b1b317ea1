//! Text from the screen in an outline: it stays in its quotes, on its line.
#![no_main]

use agent_desktop_core::filter::Filtered;
use agent_desktop_core::outline::{Header, Style, cut, quote, render};
use agent_desktop_core::refs::Issued;
use agent_desktop_core::role::Role;
use agent_desktop_core::tree::{Handle, Node, Tree};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, u8)| {
    let (text, limit) = input;
    let limit = usize::from(limit);
    assert!(cut(text, limit).chars().count() <= limit.max(1));
    let quoted = quote(text, limit);
    assert!(!quoted.chars().any(char::is_control));
    let mut tree = Tree::default();
    let mut node = Node::new(Role::Window, Handle::new("0"));
    node.name = Some(text.to_owned());
    node.value = Some(text.chars().rev().collect());
    node.description = Some(text.to_owned());
    tree.push(None, node);
    let header = Header { app: text, window: text, snapshot_id: None, stopped: None, refs_cut: false };
    let outline = render(&header, &tree, &Filtered::all(&tree), &Issued::default(), Style::default());
    assert_eq!(outline.lines().count(), 2);
});
