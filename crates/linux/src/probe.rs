//! Temporary look at a survey.
use crate::bus::{Bus, Object};
use crate::map::Toolkit;
use crate::tree::{Manner, Survey};
use agent_desktop_core::Deadline;
use agent_desktop_core::platform::Limits;
use std::time::{Duration, Instant};

/// Prints a tree.
pub fn probe(app: &str, hidden: bool, prefetch: bool, p2p: bool) {
    let start = Instant::now();
    let deadline = Deadline::after(start, Duration::from_secs(10));
    let mut bus = Bus::connect(deadline).unwrap();
    bus.listen();
    let apps = bus.applications(deadline).unwrap();
    let t_apps = start.elapsed();
    let found = apps.iter().find(|a| a.name.eq_ignore_ascii_case(app)).expect("app");
    let root = found.windows[0].clone();
    let manner = Manner { toolkit: found.toolkit(), owner: found.root.bus.clone(), origin: (0, 0), has_safe_actions: true };
    let limits = Limits { include_hidden: hidden, max_depth: 50, ..Limits::default() };
    let mut direct = None;
    if p2p && found.toolkit().has_atk_bridge() {
        let obj = Object::new(&found.root.bus, crate::bus::ROOT);
        let s = crate::bus::send_plain(&mut bus.connection, &obj, crate::bus::APPLICATION, "GetApplicationBusAddress");
        if let Ok(m) = bus.connection.wait(s, deadline.at()) {
            let a = m.body("s").unwrap().string().unwrap().into_owned();
            direct = crate::dbus::Connection::open(&a, false).ok();
        }
    }
    let calls0 = bus.connection.calls;
    let c = direct.as_mut().unwrap_or(&mut bus.connection);
    let mut survey = Survey::new(c, &manner, limits, deadline.at());
    if prefetch { survey.prefetch(); }
    let t_pre = start.elapsed();
    let result = survey.tree(root, false);
    let t_all = start.elapsed();
    for (id, node) in result.tree.iter() {
        let depth = result.tree.ancestors(id).count();
        println!("{:depth$}{} {:?} v={:?} d={:?} {:?} {:?} {:?} cut={:?}", "", node.role, node.name, node.value.as_ref().map(|v| v.chars().take(60).collect::<String>()), node.description, node.states, node.capabilities, node.bounds.map(|b| (b.x, b.y, b.width, b.height)), node.cut);
    }
    eprintln!("toolkit {:?} nodes {} visited {} stopped {:?} calls {} apps {:?} prefetch {:?} all {:?}", manner.toolkit, result.tree.len(), result.visited, result.stopped, direct.as_ref().map_or(bus.connection.calls - calls0, |d| d.calls), t_apps, t_pre, t_all);
}
