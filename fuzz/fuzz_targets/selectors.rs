//! Selectors, roles and states as callers write them; what is accepted is evaluated on a tree made of the same text.
#![no_main]

use agent_desktop_core::query::{StateTest, evaluate, explain, fold, parse_role, parse_selector};
use agent_desktop_core::role::Role;
use agent_desktop_core::tree::{Handle, Node, Tree};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let folded = fold(text);
    assert_eq!(fold(&folded), folded);
    if let Ok(test) = StateTest::parse(text) {
        let spelled = format!("{}={}", test.state.as_str(), test.expected);
        assert_eq!(StateTest::parse(&spelled), Ok(test));
    }
    if let Ok(role) = parse_role(text) {
        assert_eq!(parse_role(role.as_str()), Ok(role));
    }
    let Ok(query) = parse_selector(text) else { return };
    let mut tree = Tree::default();
    tree.push(None, Node::new(Role::Window, Handle::new("0")));
    let role = query.role.unwrap_or(Role::Button);
    let node = Node { name: query.has_text.clone(), ..Node::new(role, Handle::new("1")) };
    tree.push(Some(0), node);
    // Whatever is asked for is found where it is.
    assert!(evaluate(&query, &tree).ids.contains(&1));
    tree.node_mut(1).name = None;
    let _ = explain(&query, &tree);
});
