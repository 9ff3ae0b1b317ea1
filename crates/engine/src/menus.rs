//! Menus by path: what is in them, and the way to an item.
//!
//! Toolkits keep closed menus in four ways: the items are there all the time (GTK 3, Qt, `LibreOffice`), they come when the
//! menu opens (Firefox, GTK 4), the open menu is a window of its own (Chromium), or it is in no tree (menus of Qt buttons).
//! So a path is walked as a person does: open one, look what it holds, go on. What is known of a closed menu is used to
//! refuse a wrong path before anything is opened.

use std::time::Duration;

use agent_desktop_core::action::{Action, Capability};
use agent_desktop_core::delivery::{Delivery, Step, StepOutcome};
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::key::{Chord, Key};
use agent_desktop_core::menu_path::{self, Fit};
use agent_desktop_core::outline::{self, MESSAGE_TEXT};
use agent_desktop_core::platform::{
    App, Hit, Input, Limits, Operation, Performed, Reading, Scope, Surface, SurfaceKind, Window,
};
use agent_desktop_core::refs::{Issued, MAX_CANDIDATES, RefMap, RefTarget};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Handle, NodeId, Tree};

use crate::act::{self, Request};
use crate::action_reply::{ActionReply, StepData};
use crate::context::Context;
use crate::observe;
use crate::resolve;

/// How long a menu may take to open, and an item to appear.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long the pointer rests on an item to see whether that opens its menu.
const DWELL: Duration = Duration::from_millis(400);
/// Time between two looks.
const POLL: Duration = Duration::from_millis(50);
/// How deep menus are read.
const DEPTH: u32 = 50;

/// Items that are side by side, with the tree they stand in.
pub(crate) struct Level {
    pub(crate) tree: Tree,
    pub(crate) items: Vec<NodeId>,
    pub(crate) is_complete: bool,
    window: Window,
    surface: SurfaceKind,
}

impl Level {
    /// Makes refs for some of its nodes.
    pub(crate) fn issue(&self, context: &Context<'_>, nodes: &[NodeId]) -> Result<(String, Issued)> {
        let allocation = observe::allocation(&self.window, self.surface, true);
        let (map, issued) = RefMap::allocate_for(&self.tree, nodes, &allocation);
        Ok((context.store.save(&map)?, issued))
    }

    /// The items that a part of a path means best.
    fn matches(&self, part: &str) -> Vec<NodeId> {
        best(&self.tree, &self.items, part)
    }

    fn names(&self) -> Vec<String> {
        self.items.iter().map(|&id| self.tree.node(id).label()).collect()
    }
}

fn best(tree: &Tree, items: &[NodeId], part: &str) -> Vec<NodeId> {
    let fits: Vec<(Fit, NodeId)> = items
        .iter()
        .filter_map(|&id| menu_path::fit(tree.node(id).name.as_deref()?, part).map(|fit| (fit, id)))
        .collect();
    let best = fits.iter().map(|(fit, _)| *fit).min();
    fits.iter().filter(|(fit, _)| Some(*fit) == best).map(|(_, id)| *id).collect()
}

/// Whether a node is something that one chooses in a menu.
fn is_item(tree: &Tree, id: NodeId, is_in_menu: bool) -> bool {
    let node = tree.node(id);
    match node.role {
        Role::MenuItem
        | Role::MenuButton
        | Role::CheckBox
        | Role::RadioButton
        | Role::Switch
        | Role::Option => true,
        Role::Button => is_in_menu,
        // A menu in a menu goes by its own role in some toolkits; one without a name is only what holds the items.
        Role::Menu => node.name.is_some() && node.capabilities.has(Capability::Click),
        _ => false,
    }
}

/// The items of a menu: the nearest below `id`, not those of their own menus.
pub(crate) fn items_below(tree: &Tree, id: NodeId) -> Vec<NodeId> {
    // The button that a menu button is made of is nothing to choose.
    let is_in_menu = !matches!(tree.node(id).role, Role::MenuButton | Role::Button);
    let mut items = Vec::new();
    gather(tree, id, is_in_menu, &mut items);
    items
}

fn gather(tree: &Tree, id: NodeId, is_in_menu: bool, items: &mut Vec<NodeId>) {
    for &child in &tree.node(id).children {
        if is_item(tree, child, is_in_menu) {
            items.push(child);
        } else {
            gather(tree, child, is_in_menu, items);
        }
    }
}

/// Whether `window` holds a surface. A window without a tree cannot tell.
fn is_in(context: &Context<'_>, window: &Window, surface: &Surface) -> Result<bool> {
    let Some(root) = &window.handle else { return Ok(true) };
    Ok(surface.handle == *root
        || context.platform.ancestors(&surface.handle, context.deadline)?.contains(root))
}

fn read_surface(
    context: &Context<'_>,
    window: &Window,
    surface: &Surface,
    kind: SurfaceKind,
    include_hidden: bool,
) -> Result<Level> {
    let scope = Scope { window: window.clone(), root: Some(surface.handle.clone()) };
    let limits = Limits { max_depth: DEPTH, include_hidden, ..Limits::default() };
    let observation = context.platform.observe(&scope, &limits, context.deadline)?;
    let tree = observation.tree;
    let items = tree.root().map(|root| items_below(&tree, root)).unwrap_or_default();
    let is_complete = observation.stopped.is_none();
    Ok(Level { tree, items, is_complete, window: window.clone(), surface: kind })
}

/// The menu bars of a window with all that is known of their closed menus.
pub(crate) fn bars(context: &Context<'_>, app: &App, window: &Window) -> Result<Vec<Level>> {
    let mut levels = Vec::new();
    for surface in context.platform.surfaces(app, Some(SurfaceKind::MenuBar), context.deadline)? {
        if is_in(context, window, &surface)? {
            levels.push(read_surface(context, window, &surface, SurfaceKind::MenuBar, true)?);
        }
    }
    Ok(levels)
}

/// The buttons of a window that open menus.
///
/// `closed`: read the menus of buttons that are closed as well. Some toolkits show only by these that a button has one.
pub(crate) fn buttons(context: &Context<'_>, window: &Window, closed: bool) -> Result<Level> {
    let scope = Scope { window: window.clone(), root: None };
    let limits = Limits { max_depth: DEPTH, include_hidden: closed, ..Limits::default() };
    let observation = observe::observe(context, &scope, &limits)?;
    let tree = observation.tree;
    let has_menu = |id: NodeId| tree.subtree(id).any(|below| tree.node(below).role == Role::MenuItem);
    let is_button = |id: &NodeId| match tree.node(*id) {
        node if node.states.has(State::Hidden) => false,
        node => node.role == Role::MenuButton || (node.role == Role::Button && has_menu(*id)),
    };
    let items = tree.root().map(|root| tree.subtree(root).filter(is_button).collect()).unwrap_or_default();
    let is_complete = observation.stopped.is_none();
    Ok(Level { tree, items, is_complete, window: window.clone(), surface: SurfaceKind::Window })
}

/// As [`buttons`], with closed menus where that is worth while: pages keep nothing of a menu that is closed, and much
/// else that does not show.
pub(crate) fn all_buttons(context: &Context<'_>, window: &Window) -> Result<Level> {
    let level = buttons(context, window, false)?;
    if level.tree.iter().any(|(_, node)| node.is_web) { Ok(level) } else { buttons(context, window, true) }
}

fn is_menu(surface: &Surface) -> bool {
    matches!(surface.kind, "menu" | "context_menu" | "popover")
}

/// The menus of an application that are open and hang at nothing that is known.
pub(crate) fn context_menus(context: &Context<'_>, app: &App, window: &Window) -> Result<Vec<Level>> {
    let surfaces = context.platform.surfaces(app, Some(SurfaceKind::Menu), context.deadline)?;
    let free = surfaces.iter().filter(|surface| surface.kind == "context_menu");
    free.map(|surface| read_surface(context, window, surface, SurfaceKind::Menu, false)).collect()
}

/// Where the first part of a path may be: open context menus, menu bars.
pub(crate) fn first_levels(context: &Context<'_>, app: &App, window: &Window) -> Result<Vec<Level>> {
    let mut levels = context_menus(context, app, window)?;
    levels.extend(bars(context, app, window)?);
    Ok(levels)
}

/// The one item that a part means, in the first level that has it.
pub(crate) fn find(levels: &[Level], part: &str) -> Result<Option<(usize, NodeId)>> {
    for (index, level) in levels.iter().enumerate() {
        match level.matches(part)[..] {
            [] => {}
            [only] => return Ok(Some((index, only))),
            [..] => return Err(ambiguous(level, part)),
        }
    }
    Ok(None)
}

fn ambiguous(level: &Level, part: &str) -> Error {
    let matches = level.matches(part);
    let candidate = |&id: &NodeId| {
        let node = level.tree.node(id);
        facts([("role", node.role.as_str().into()), ("name", node.label().into())])
    };
    let candidates = matches.iter().take(MAX_CANDIDATES).map(candidate).collect();
    Error::new(ErrorCode::AmbiguousTarget, format!("{} items are called {}", matches.len(), quote(part)))
        .detail("candidate_count", matches.len())
        .detail("candidates", Fact::List(candidates))
        .hint("menu list gives each a ref: click the one that is meant")
}

/// The error for a part that no item has. `found`: the parts before it.
pub(crate) fn missing(levels: &[Level], part: &str, found: &[String]) -> Error {
    let mut names: Vec<String> = levels.iter().flat_map(Level::names).collect();
    names.sort_unstable();
    names.dedup();
    let place = match found.last() {
        Some(menu) => format!("the menu {}", quote(menu)),
        None if levels.iter().all(|level| level.items.is_empty()) => {
            return Error::new(ErrorCode::ElementNotFound, "the window has no menu bar and no menu button")
                .hint("list-surfaces shows what is open; another window may have one: --window-id")
                .delivery(Delivery::NotDelivered);
        }
        None => "the window".to_owned(),
    };
    let near: Vec<&String> = names.iter().filter(|name| is_near(name, part)).take(3).collect();
    let hint = if near.is_empty() {
        "details.items lists what there is".to_owned()
    } else {
        let near: Vec<String> = near.into_iter().map(|name| quote(name)).collect();
        format!("there is {}", near.join(", "))
    };
    let items = names.into_iter().take(64).map(Fact::from).collect();
    Error::new(ErrorCode::ElementNotFound, format!("{place} has no item called {}", quote(part)))
        .kind("menu_item_not_found")
        .detail("found", Fact::List(found.iter().cloned().map(Fact::from).collect()))
        .detail("items", Fact::List(items))
        .hint(hint)
        .delivery(Delivery::NotDelivered)
}

fn is_near(name: &str, part: &str) -> bool {
    let (name, part) = (name.to_lowercase(), part.to_lowercase());
    name.contains(&part) || part.contains(&name)
}

fn quote(text: &str) -> String {
    outline::quote(text, MESSAGE_TEXT)
}

/// What became of a walk.
pub(crate) struct Walked {
    /// The names of the items on the way, as they stand in the menus.
    pub(crate) path: Vec<String>,
    /// What was done, all clicks together.
    pub(crate) reply: ActionReply,
}

/// Walks to the item at the end of a path and chooses it; a menu there is opened and stays open.
pub(crate) fn walk(context: &Context<'_>, app: &App, window: &Window, path: &[String]) -> Result<Walked> {
    let mut walker = Walker { context, app, window, path: Vec::new(), opened: Vec::new(), steps: Vec::new() };
    walker.walk(path).map_err(|error| walker.failed(error))
}

struct Walker<'a> {
    context: &'a Context<'a>,
    app: &'a App,
    window: &'a Window,
    path: Vec<String>,
    /// What was opened: names and places.
    opened: Vec<(String, Handle)>,
    steps: Vec<StepData>,
}

impl Walker<'_> {
    fn walk(&mut self, path: &[String]) -> Result<Walked> {
        let (mut level, mut item) = self.first(&path[0])?;
        for (index, rest) in (1..=path.len()).map(|index| (index, &path[index..])) {
            let name = level.tree.node(item).label();
            if let Some(wrong) = self.wrong_beyond(&level, item, &name, rest) {
                return Err(wrong);
            }
            self.path.push(name);
            let Some(next) = rest.first() else { break };
            debug_assert_eq!(index, self.path.len());
            if let Some(below) = showing_below(&level, item, next) {
                // It is open already.
                item = below;
                continue;
            }
            let menu = self.open(&level, item, next)?;
            (level, item) = menu;
        }
        self.choose(&level, item)
    }

    /// The item at the beginning of the path.
    fn first(&self, part: &str) -> Result<(Level, NodeId)> {
        let patience = self.context.deadline.within(self.context.now(), PATIENCE);
        loop {
            let mut levels = first_levels(self.context, self.app, self.window)?;
            let mut found = find(&levels, part)?;
            if found.is_none() {
                levels.push(all_buttons(self.context, self.window)?);
                found = find(&levels, part)?;
            }
            if let Some((index, item)) = found {
                return Ok((levels.swap_remove(index), item));
            }
            if self.context.is_single_attempt || !self.context.pause_until(patience, POLL * 4) {
                return Err(missing(&levels, part, &[]));
            }
        }
    }

    /// What is wrong with the rest of the path, as far as the closed menus are known.
    fn wrong_beyond(&self, level: &Level, item: NodeId, name: &str, rest: &[String]) -> Option<Error> {
        let mut found = [self.path.as_slice(), &[name.to_owned()]].concat();
        let mut at = item;
        for part in rest {
            let items = items_below(&level.tree, at);
            if items.is_empty() || !level.is_complete {
                return None;
            }
            match best(&level.tree, &items, part)[..] {
                [only] => at = only,
                [] => {
                    let here = Level { tree: level.tree.clone(), items, is_complete: true, ..level.like() };
                    return Some(missing(&[here], part, &found));
                }
                _ => return None,
            }
            found.push(level.tree.node(at).label());
        }
        None
    }

    /// Opens the menu of an item and finds `next` in it.
    fn open(&mut self, level: &Level, item: NodeId, next: &str) -> Result<(Level, NodeId)> {
        let target = level.tree.node(item).handle.clone();
        let (before, reply) = self.bring_up(level, item)?;
        self.steps.extend(reply.map(|reply| reply.steps).unwrap_or_default());
        let patience = self.context.deadline.within(self.context.now(), PATIENCE);
        let mut seen: Vec<Level> = Vec::new();
        loop {
            for surface in self.opened_by(&target, &before)? {
                let level = read_surface(self.context, self.window, &surface, SurfaceKind::Menu, false)?;
                if let Some((_, item)) = find(std::slice::from_ref(&level), next)? {
                    return Ok((level, item));
                }
                if !level.items.is_empty() {
                    seen = vec![level];
                }
            }
            if self.context.is_single_attempt || !self.context.pause_until(patience, POLL) {
                return Err(if seen.is_empty() {
                    self.not_opened()
                } else {
                    missing(&seen, next, &self.path)
                });
            }
        }
    }

    /// Opens the menu of an item and waits until it is there. Answers what was open before, and what was done if anything
    /// was.
    fn bring_up(&mut self, level: &Level, item: NodeId) -> Result<(Vec<Surface>, Option<ActionReply>)> {
        let node = level.tree.node(item);
        let before = self.menus()?;
        if self.is_open(&node.handle)? {
            return Ok((before, None));
        }
        let mut reply = match self.hover(level, item, &before)? {
            Some(step) => ActionReply::new("menu_open", &[step]),
            None => self.click(level, item)?,
        };
        self.opened.push((node.label(), node.handle.clone()));
        let settled = self.context.deadline.within(self.context.now(), DWELL);
        let patience = self.context.deadline.within(self.context.now(), PATIENCE);
        let mut is_repeated = false;
        loop {
            let opened = self.opened_by(&node.handle, &before)?;
            if !opened.is_empty() {
                reply.surfaces = opened.iter().map(Into::into).collect();
                if let Some(step) = reply.steps.last_mut() {
                    step.verified = Some(true);
                }
                return Ok((before, Some(reply.delivered(Delivery::Verified))));
            }
            // Where another menu was open, the first click may only have closed that.
            let may_repeat = !is_repeated && !before.is_empty() && self.context.now() > settled.at();
            if may_repeat && self.menus()?.is_empty() {
                is_repeated = true;
                let steps = std::mem::take(&mut reply.steps);
                reply = self.click(level, item)?;
                reply.steps.splice(0..0, steps);
            }
            if self.context.is_single_attempt || !self.context.pause_until(patience, POLL) {
                return Err(self.not_opened());
            }
        }
    }

    fn not_opened(&self) -> Error {
        let name = self.path.last().map_or("", String::as_str);
        Error::new(ErrorCode::ActionFailed, format!("no menu of {} came up", quote(name)))
            .kind("menu_not_opened")
            .hint("it may be an item without a menu; menu list and list-surfaces show what is there")
    }

    /// Rests the pointer on an item of a menu that shows, and says whether its menu came up.
    ///
    /// Many toolkits open a menu as soon as the pointer is on its item. The click that follows would close it again.
    fn hover(&self, level: &Level, item: NodeId, before: &[Surface]) -> Result<Option<Step>> {
        if !self.context.options.headed || level.surface != SurfaceKind::Menu {
            return Ok(None);
        }
        let reference = self.reference(level, item)?;
        let aim = act::aim(self.context, &reference, None, Action::Hover, true)?;
        self.context.dispatch(Some(&aim.reference), "hover", &Input::Move(aim.point))?;
        aim.end(self.context)?;
        let patience = self.context.deadline.within(self.context.now(), DWELL);
        loop {
            if !self.opened_by(&level.tree.node(item).handle, before)?.is_empty() {
                let step = Step::physical("hover", StepOutcome::Succeeded).verified(true);
                return Ok(Some(step));
            }
            if !self.context.pause_until(patience, POLL) {
                return Ok(None);
            }
        }
    }

    fn menus(&self) -> Result<Vec<Surface>> {
        let mut surfaces = self.context.platform.surfaces(self.app, None, self.context.deadline)?;
        surfaces.retain(is_menu);
        Ok(surfaces)
    }

    /// The open menu of an item.
    fn menu_of(&self, item: &Handle) -> Result<Option<Surface>> {
        for surface in self.menus()? {
            if self.context.platform.is_opened_by(&surface.handle, item, self.context.deadline)? {
                return Ok(Some(surface));
            }
        }
        Ok(None)
    }

    fn is_open(&self, item: &Handle) -> Result<bool> {
        Ok(self.menu_of(item)?.is_some() || self.is_expanded(item)?)
    }

    /// Whether an item says itself that its menu is open.
    fn is_expanded(&self, item: &Handle) -> Result<bool> {
        let readings =
            self.context.platform.read(std::slice::from_ref(item), self.window, self.context.deadline)?;
        Ok(readings.iter().any(|reading| match reading {
            Reading::Live(node) => node.states.has(State::Expanded),
            _ => false,
        }))
    }

    /// The menus that an item has opened, innermost first: those that hang at it, else those that are new.
    fn opened_by(&self, target: &Handle, before: &[Surface]) -> Result<Vec<Surface>> {
        let now = self.menus()?;
        let mut opened = Vec::new();
        for surface in now.iter().rev() {
            if self.context.platform.is_opened_by(&surface.handle, target, self.context.deadline)? {
                opened.push(surface.clone());
            }
        }
        if opened.is_empty() {
            let is_new = |surface: &&Surface| !before.iter().any(|old| old.handle == surface.handle);
            opened.extend(now.iter().rev().filter(is_new).cloned());
        }
        // It was open before, and nothing but its own word connects it with its menu.
        if opened.is_empty() && self.is_expanded(target)? {
            opened.extend(now.into_iter().rev());
        }
        Ok(opened)
    }

    /// The end of the path.
    fn choose(&mut self, level: &Level, item: NodeId) -> Result<Walked> {
        let node = level.tree.node(item);
        let may_open = matches!(node.role, Role::MenuButton | Role::Menu)
            || node.states.has(State::HasPopup)
            || !items_below(&level.tree, item).is_empty();
        if may_open {
            let (_, reply) = self.bring_up(level, item)?;
            let is_new = reply.is_some();
            let mut reply = reply.unwrap_or_else(|| {
                let step = Step::semantic("press", StepOutcome::Skipped).verified(true);
                ActionReply::new("menu_open", &[step])
            });
            if !is_new {
                reply.surfaces = self.menu_of(&node.handle)?.iter().map(Into::into).collect();
            }
            return Ok(self.walked(reply));
        }
        let reply = self.click(level, item)?;
        Ok(self.walked(reply))
    }

    fn walked(&mut self, mut reply: ActionReply) -> Walked {
        reply.action = "menu_open";
        let mut steps = std::mem::take(&mut self.steps);
        steps.append(&mut reply.steps);
        reply.steps = steps;
        Walked { path: std::mem::take(&mut self.path), reply }
    }

    fn reference(&self, level: &Level, item: NodeId) -> Result<String> {
        let (snapshot, issued) = level.issue(self.context, &[item])?;
        let number = issued.number(item).ok_or_else(|| Error::internal("a menu item got no ref"))?;
        Ok(RefTarget::new(&snapshot, number).to_string())
    }

    fn click(&self, level: &Level, item: NodeId) -> Result<ActionReply> {
        let reference = self.reference(level, item)?;
        let is_hidden_bar = level.surface == SurfaceKind::MenuBar
            && self.path.len() == 1
            && level.items.iter().all(|&id| level.tree.node(id).states.has(State::Hidden));
        if is_hidden_bar {
            return self.click_hidden(&reference);
        }
        act::run(self.context, &reference, None, Request::Plain(Action::Click))
    }

    /// Opens a menu of a bar that is not shown: its menus come up all the same.
    fn click_hidden(&self, reference: &str) -> Result<ActionReply> {
        let loaded = resolve::load(self.context, reference, None)?;
        resolve::resolve(self.context, &loaded)?;
        let _lease = self.context.take_lease()?;
        let resolved = resolve::resolve(self.context, &loaded)?;
        if resolved.node.states.has(State::Disabled) {
            return Err(Error::new(ErrorCode::ActionFailed, format!("{} is disabled", loaded.subject()))
                .delivery(Delivery::NotDelivered));
        }
        if let Some(Hit::Other { role, name, .. }) = act::modal_cover(self.context, &resolved, Action::Click)?
        {
            let cover = outline::describe(role, name.as_deref());
            return Err(Error::new(
                ErrorCode::ActionFailed,
                format!("{} is covered by {cover}", loaded.subject()),
            )
            .hint("answer or close it first, then retry")
            .delivery(Delivery::NotDelivered));
        }
        self.context.trace("action.dispatch.start", &[])?;
        self.context.begin_delivery();
        match self.context.platform.perform(&resolved.handle, &Operation::Activate, self.context.deadline)? {
            Performed::Done { label, .. } => {
                let step = Step::semantic(label, StepOutcome::Succeeded);
                Ok(ActionReply::new("menu_open", &[step]))
            }
            Performed::NotOffered => Err(Error::new(
                ErrorCode::ActionNotSupported,
                format!(
                    "{} is in a menu bar that is not shown, and cannot be opened there",
                    loaded.subject()
                ),
            )
            .delivery(Delivery::NotDelivered)),
            Performed::Refused { native, .. } => {
                Err(Error::new(ErrorCode::ActionFailed, format!("{} did not open", loaded.subject()))
                    .platform_detail(native))
            }
        }
    }

    /// Whether a menu is still there after the time one takes to close.
    fn is_open_still(&self) -> bool {
        let patience = self.context.deadline.within(self.context.now(), PATIENCE / 3);
        loop {
            match self.menus() {
                Ok(menus) if menus.is_empty() => return false,
                Ok(_) if self.context.pause_until(patience, POLL) => {}
                _ => return true,
            }
        }
    }

    fn escape(&self) -> Result<()> {
        let chord = Chord { modifiers: Vec::new(), key: Key::Escape };
        let _lease = self.context.take_lease()?;
        self.context.dispatch(None, "escape", &Input::Chord(chord))
    }

    /// Closes what was opened for nothing, as far as the toolkit can, and says what is open still.
    fn failed(&self, error: Error) -> Error {
        if self.opened.is_empty() {
            return error;
        }
        // What cannot be closed is told below.
        if self.context.options.headed {
            // Whoever has the pointer in a menu closes it by the keyboard: one menu a key.
            for _ in 0..=self.opened.len() {
                if !self.is_open_still() || self.escape().is_err() {
                    break;
                }
            }
        } else {
            for (_, handle) in self.opened.iter().rev() {
                // To some toolkits closing is the same as opening.
                if self.is_open(handle).unwrap_or(false) {
                    let close = Operation::SetExpanded(false);
                    let _ = self.context.platform.perform(handle, &close, self.context.deadline);
                }
            }
        }
        let is_open = self.is_open_still();
        let names = self.opened.iter().map(|(name, _)| Fact::from(name.clone())).collect();
        let mut error = error.detail("opened", Fact::List(names)).detail("is_open", is_open);
        error = error.redelivered(Delivery::Unverified);
        if is_open && error.code() == ErrorCode::ElementNotFound {
            let hint = error.get_hint().unwrap_or_default().to_owned();
            error = error.hint(format!("{hint}; the menu is still open: press escape --headed closes it"));
        }
        error
    }
}

impl Level {
    /// The same place, for other items.
    fn like(&self) -> Level {
        Level {
            tree: Tree::default(),
            items: Vec::new(),
            is_complete: self.is_complete,
            window: self.window.clone(),
            surface: self.surface,
        }
    }
}

/// The one item called `part` that shows below an item: its menu is open.
fn showing_below(level: &Level, item: NodeId, part: &str) -> Option<NodeId> {
    let shows = |id: &NodeId| {
        let states = level.tree.node(*id).states;
        !states.has(State::Hidden) && !states.has(State::Offscreen)
    };
    let items: Vec<NodeId> = items_below(&level.tree, item).into_iter().filter(shows).collect();
    match best(&level.tree, &items, part)[..] {
        [only] => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use agent_desktop_core::tree::Node;

    use super::*;

    fn add(tree: &mut Tree, parent: Option<NodeId>, role: Role, name: &str) -> NodeId {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        let handle = Handle::new(format!("n{}", tree.len()));
        tree.push(parent, Node { name, ..Node::new(role, handle) })
    }

    /// A bar with two menus, and a menu button as GTK 4 makes them: a button and what it opens side by side.
    fn level() -> Level {
        let mut tree = Tree::default();
        let bar = add(&mut tree, None, Role::Group, "");
        let file = add(&mut tree, Some(bar), Role::MenuItem, "File");
        let list = add(&mut tree, Some(file), Role::Menu, "");
        for name in ["Save", "Save…", "Print", "Print"] {
            add(&mut tree, Some(list), Role::MenuItem, name);
        }
        let more = add(&mut tree, Some(bar), Role::MenuButton, "More");
        add(&mut tree, Some(more), Role::Button, "More");
        let list = add(&mut tree, Some(more), Role::Menu, "");
        add(&mut tree, Some(list), Role::MenuItem, "Alpha");
        let items = items_below(&tree, bar);
        let scope = crate::fake::window("w", "Mail", &crate::fake::app("Mail", 1));
        Level { tree, items, is_complete: true, window: scope, surface: SurfaceKind::MenuBar }
    }

    fn inside(level: &Level, item: usize) -> Level {
        let items = items_below(&level.tree, level.items[item]);
        Level { tree: level.tree.clone(), items, ..level.like() }
    }

    #[test]
    fn the_button_inside_a_menu_button_is_no_item_of_its_menu() {
        let level = level();
        assert_eq!(level.names(), ["File", "More"]);
        assert_eq!(inside(&level, 0).names(), ["Save", "Save…", "Print", "Print"]);
        assert_eq!(inside(&level, 1).names(), ["Alpha"]);
    }

    #[test]
    fn the_best_fit_is_meant_and_two_of_it_are_ambiguous() {
        let file = inside(&level(), 0);
        let found = |part: &str| find(std::slice::from_ref(&file), part);
        assert_eq!(found("save").unwrap(), Some((0, file.items[0])));
        assert_eq!(found("Save...").unwrap(), Some((0, file.items[1])));
        assert_eq!(found("Save…").unwrap(), Some((0, file.items[1])));
        assert_eq!(found("Load").unwrap(), None);
        let error = found("print").unwrap_err();
        assert_eq!(error.code(), ErrorCode::AmbiguousTarget);
        assert!(error.message().contains("2 items"), "{}", error.message());
    }

    #[test]
    fn a_part_that_nothing_is_called_is_answered_with_what_there_is() {
        let level = level();
        let error = missing(&[inside(&level, 0)], "Sav", &["File".to_owned()]);
        assert_eq!(error.get_hint(), Some(r#"there is "Save", "Save…""#));
        let empty = Level { items: Vec::new(), ..level.like() };
        assert!(missing(&[empty], "File", &[]).message().contains("no menu bar"));
    }
}
