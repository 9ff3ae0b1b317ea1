//! `select`: choosing an item of a combo box, a list, a table, a tab bar or a menu by its text.
//!
//! The item is looked for among what the container has, shown or not. Containers that make their list only when they
//! are open are opened for it, and closed again when the item is not there.

use std::time::Duration;

use agent_desktop_core::action::MouseButton;
use agent_desktop_core::actionability::Route;
use agent_desktop_core::delivery::{Delivery, Step, StepOutcome};
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result};
use agent_desktop_core::geometry::Point;
use agent_desktop_core::outline;
use agent_desktop_core::platform::{Hit, Limits, Operation, Scope};
use agent_desktop_core::query::fold;
use agent_desktop_core::refs::{MAX_CANDIDATES, candidate};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Handle, Node, NodeId, Tree};

use super::Done;
use super::dispatch::{Performer, done, failed, has_open_surface};
use super::evidence::STATE_LIMIT;
use super::read;
use crate::resolve::Resolved;

/// Nodes looked through for an item.
const MOST_NODES: u32 = 10_000;
/// Items named in an error.
const NAMED_ITEMS: usize = 20;
/// Pause between two looks at a list that is opening.
const POLL: Duration = Duration::from_millis(30);

fn is_item(node: &Node) -> bool {
    matches!(
        node.role,
        Role::Option
            | Role::MenuItem
            | Role::Tab
            | Role::Cell
            | Role::TreeItem
            | Role::RadioButton
            | Role::CheckBox
            | Role::Row
            | Role::Link
    )
}

/// Where the item of this text is.
enum Found {
    One(Box<Node>),
    None(Vec<String>),
}

impl Performer<'_, '_> {
    pub(super) fn select(&self, value: &str) -> Result<Done> {
        let is_combo = matches!(self.node().role, Role::ComboBox | Role::MenuButton);
        if is_combo && self.shows(value)? {
            let step = Step::semantic("select", StepOutcome::Skipped).verified(true);
            return Ok(done(vec![step], read(self.context, self.resolved, self.context.deadline)?));
        }
        if self.by(Route::Pointer) {
            return self.choose_with_pointer(value);
        }
        let inside = self.look(Some(self.resolved.handle.clone()), true)?;
        match self.find(&inside, value, &[])? {
            Found::One(item) => {
                if item.states.has(State::Selected) && !is_combo {
                    let step = Step::semantic("select", StepOutcome::Skipped).verified(true);
                    return Ok(done(vec![step], Some(self.node().clone())));
                }
                let step = self.choose(&item)?;
                self.judge(vec![step], &item, value)
            }
            Found::None(names) if is_combo => self.open_and_choose(value, names),
            Found::None(names) => Err(self.no_such_item(&names).delivery(Delivery::NotDelivered)),
        }
    }

    fn look(&self, root: Option<Handle>, include_hidden: bool) -> Result<Tree> {
        let scope = Scope { window: self.resolved.window.clone(), root };
        let limits = Limits { max_depth: 50, nodes: MOST_NODES, include_hidden, ..Limits::default() };
        Ok(self.context.platform.observe(&scope, &limits, self.context.deadline)?.tree)
    }

    /// The one item of this text; several are an error that lists them.
    fn find(&self, tree: &Tree, value: &str, but: &[Handle]) -> Result<Found> {
        let wanted = fold(value);
        let items: Vec<(NodeId, &Node)> =
            tree.iter().skip(1).filter(|(_, node)| is_item(node) && !but.contains(&node.handle)).collect();
        let matching: Vec<NodeId> = items
            .iter()
            .filter(|(_, node)| {
                node.name.as_deref().or(node.value.as_deref()).is_some_and(|name| fold(name) == wanted)
            })
            .map(|(id, _)| *id)
            .collect();
        // An item that contains another of the same name is the one that is meant: a row and its only cell.
        let outermost: Vec<NodeId> = matching
            .iter()
            .copied()
            .filter(|&id| !tree.ancestors(id).any(|ancestor| matching.contains(&ancestor)))
            .collect();
        match outermost.as_slice() {
            [] => Ok(Found::None(items.iter().take(NAMED_ITEMS).map(|(_, node)| node.label()).collect())),
            [one] => Ok(Found::One(Box::new(tree.node(*one).clone()))),
            several => Err(Error::new(
                ErrorCode::AmbiguousTarget,
                format!("{} has {} items of that text", self.subject(), several.len()),
            )
            .detail("candidate_count", several.len())
            .detail(
                "candidates",
                Fact::List(several.iter().take(MAX_CANDIDATES).map(|&id| candidate(tree, id)).collect()),
            )
            .hint("click the one that is meant by its own ref")
            .delivery(Delivery::NotDelivered)),
        }
    }

    fn choose(&self, item: &Node) -> Result<Step> {
        if let Some(step) = self.send(&item.handle, &Operation::Select)? {
            return Ok(step);
        }
        self.send(&item.handle, &Operation::Activate)?.ok_or_else(|| {
            Error::new(
                ErrorCode::PolicyDenied,
                format!("an item of {} can be chosen only with the mouse pointer", self.subject()),
            )
            .hint("add --headed if the mouse and the keyboard of this desktop may be used")
            .delivery(Delivery::NotDelivered)
        })
    }

    /// What could be taken for an item of the list, and is there while it is still closed.
    fn items_in_window(&self) -> Result<Vec<Handle>> {
        let tree = self.look(None, false)?;
        Ok(tree.iter().filter(|(_, node)| is_item(node)).map(|(_, node)| node.handle.clone()).collect())
    }

    /// Looks for the item in the open list: part of the box, or, where the box has no items, anywhere in the window, but
    /// not among what was there `before`.
    fn find_in_open_list(&self, value: &str, before: &[Handle]) -> Result<Found> {
        let own = self.look(Some(self.resolved.handle.clone()), false)?;
        if own.iter().skip(1).any(|(_, node)| is_item(node)) {
            return self.find(&own, value, &[]);
        }
        let found = self.find(&self.look(None, false)?, value, before)?;
        let Found::None(names) = found else { return Ok(found) };
        // A menu may have a window of its own.
        for surface in self.surfaces(None) {
            match self.find(&self.look(Some(surface.handle), false)?, value, before)? {
                Found::None(inside) if inside.is_empty() => {}
                found => return Ok(found),
            }
        }
        Ok(Found::None(names))
    }

    /// For containers whose items exist only while they are open.
    fn open_and_choose(&self, value: &str, mut names: Vec<String>) -> Result<Done> {
        let before = self.items_in_window()?;
        let opened = self.send(&self.resolved.handle, &Operation::SetExpanded(true))?;
        let opened = match opened {
            Some(step) => Some(step),
            None => self.send(&self.resolved.handle, &Operation::Activate)?,
        };
        let Some(opened) = opened else {
            return Err(self.no_such_item(&names).delivery(Delivery::NotDelivered));
        };
        let until = self.context.deadline.within(self.context.now(), STATE_LIMIT);
        loop {
            match self.find_in_open_list(value, &before)? {
                Found::One(item) => {
                    let outcome = self
                        .choose(&item)
                        .and_then(|step| self.judge(vec![opened.verified(true), step], &item, value));
                    // The list is not left standing open; one that closed by itself would be opened again by this.
                    if outcome.is_err() {
                        self.close_list();
                    }
                    return outcome;
                }
                Found::None(seen) if !seen.is_empty() => names = seen,
                Found::None(_) => {}
            }
            if !self.context.pause_until(until, POLL) {
                break;
            }
        }
        // Leave it as it was found.
        let error =
            self.no_such_item(&names).kind("select_menu_item_not_found").delivery(Delivery::Unverified);
        Err(if self.close_list() { error } else { error.detail("left_open", true) })
    }

    /// Closes the list again; whether it is closed then.
    fn close_list(&self) -> bool {
        if !self.is_open() {
            return true;
        }
        // What cannot be collapsed is pressed once more.
        if !matches!(self.send(&self.resolved.handle, &Operation::SetExpanded(false)), Ok(Some(_))) {
            self.send(&self.resolved.handle, &Operation::Activate).unwrap_or_default();
        }
        let until = self.context.deadline.within(self.context.now(), STATE_LIMIT);
        while self.is_open() {
            if !self.context.pause_until(until, POLL) {
                return false;
            }
        }
        true
    }

    fn choose_with_pointer(&self, value: &str) -> Result<Done> {
        let before = self.items_in_window()?;
        let mut steps = vec![self.pointer_click("pointer_open", self.point(), MouseButton::Left, 1)?];
        let until = self.context.deadline.within(self.context.now(), STATE_LIMIT * 2);
        let mut names = Vec::new();
        let mut is_covered = false;
        loop {
            // A closed box may show its choice only; the list may be part of it or stand elsewhere.
            for root in [Some(self.resolved.handle.clone()), None] {
                let but = if root.is_some() { &[][..] } else { &before };
                let tree = self.look(root, false)?;
                match self.find(&tree, value, but)? {
                    Found::One(item) => {
                        if let Some(bounds) = item.bounds.filter(|bounds| !bounds.is_empty())
                            && self.is_hit(&item, bounds.center())?
                        {
                            steps[0].verified = Some(true);
                            steps.push(self.pointer_click(
                                "pointer_choose",
                                bounds.center(),
                                MouseButton::Left,
                                1,
                            )?);
                            return self.judge(steps, &item, value);
                        }
                        is_covered = true;
                    }
                    Found::None(seen) if seen.len() > names.len() => names = seen,
                    Found::None(_) => {}
                }
            }
            if !self.context.pause_until(until, POLL) {
                break;
            }
        }
        let closed = self.chord("key_close", &[], agent_desktop_core::key::Key::Escape);
        let error = if is_covered {
            failed(format!("the item of {} is there and cannot be reached by the pointer", self.subject()))
        } else {
            self.no_such_item(&names).kind("select_menu_item_not_found").delivery(Delivery::Unverified)
        };
        Err(if closed.is_ok() { error } else { error.detail("left_open", true) })
    }

    /// Whether its list is open.
    fn is_open(&self) -> bool {
        let live = read(self.context, self.resolved, self.context.deadline);
        matches!(live, Ok(Some(node)) if node.states.has(State::Expanded))
            || has_open_surface(self.context, &self.resolved.handle, &self.loaded.app()).unwrap_or(true)
    }

    /// Whether a pointer would reach the item. An opening list has its items before it stands where they can be clicked.
    fn is_hit(&self, item: &Node, at: Point) -> Result<bool> {
        let hit =
            self.context.platform.hit_test(&item.handle, &self.resolved.window, at, self.context.deadline)?;
        Ok(!matches!(hit, Hit::Other { .. }))
    }

    /// Whether the container shows this text as its choice.
    fn shows(&self, value: &str) -> Result<bool> {
        Ok(self.shown()?.is_some_and(|shown| fold(&shown) == fold(value)))
    }

    /// The text a combo box shows: its value, else the text inside it.
    fn shown(&self) -> Result<Option<String>> {
        let tree = self.look(Some(self.resolved.handle.clone()), false)?;
        let Some(root) = tree.root() else { return Ok(None) };
        let own = tree.node(root).value.clone();
        Ok(own.or_else(|| {
            tree.iter()
                .skip(1)
                .find(|(_, node)| node.role == Role::StaticText && node.name.is_some())
                .and_then(|(_, node)| node.name.clone())
        }))
    }

    /// Sees whether the choice was made.
    fn judge(&self, steps: Vec<Step>, item: &Node, value: &str) -> Result<Done> {
        let is_combo = matches!(self.node().role, Role::ComboBox | Role::MenuButton);
        let until = self.context.deadline.within(self.context.now(), STATE_LIMIT);
        let chosen = Resolved { handle: item.handle.clone(), node: item.clone(), ..self.resolved.clone() };
        let was_seen = loop {
            let is_chosen = if is_combo {
                self.shows(value)?
            } else {
                let item = read(self.context, &chosen, self.context.deadline)?;
                item.is_some_and(|item| item.states.has(State::Selected) || item.states.has(State::Checked))
            };
            if is_chosen || !self.context.pause_until(until, POLL) {
                break is_chosen;
            }
        };
        let after = read(self.context, self.resolved, self.context.deadline)?;
        if !was_seen && self.node().role == Role::ComboBox {
            let shown = self.shown()?;
            let what = format!(
                "{} still shows {}",
                self.subject(),
                shown.as_deref().map_or("nothing".to_owned(), |shown| outline::quote(shown, 60))
            );
            let error = self.not_seen(what);
            return Err(if error.code() == ErrorCode::Timeout {
                error
            } else {
                error
                    .kind("select_value_not_observed")
                    .hint("its list obeys only the mouse or the keyboard; add --headed")
            });
        }
        let mut steps = steps;
        if let Some(last) = steps.last_mut() {
            last.verified = Some(was_seen);
        }
        Ok(Done { steps, after, surfaces: self.surfaces(None) })
    }

    fn no_such_item(&self, names: &[String]) -> Error {
        let error =
            Error::new(ErrorCode::ElementNotFound, format!("{} has no item of that text", self.subject()));
        if names.is_empty() {
            error.hint("it shows no items; open it with expand or click and take a snapshot")
        } else {
            error
                .detail("items", names.iter().map(|name| outline::cut(name, 80)).collect::<Vec<_>>())
                .hint("use one of the items listed in the details")
        }
    }
}
