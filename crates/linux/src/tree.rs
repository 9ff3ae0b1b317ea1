//! Reading many objects at once.
//!
//! A survey keeps up to [`IN_FLIGHT`] calls on the way and asks the next question about an object as soon as the answer
//! that decides it is there: siblings and cousins travel together, and the cost of a tree is its calls, not its depth.
//! What is hidden is not descended into, and details are asked only of what will be shown. Where the toolkit fills its
//! cache one `GetItems` replaces four calls for each object; both routes give the same tree.
//!
//! Calls for each shown object: state, role, name, interfaces, children, and as it applies bounds, actions, text (2),
//! number, description, attributes, relations. For each hidden one: state.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use agent_desktop_core::action::Capability;
use agent_desktop_core::geometry::Rect;
use agent_desktop_core::name::{self, NameCandidates};
use agent_desktop_core::platform::{Limits, Stop};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Cut, Gaps, NativeId, NativeIdKind, Node, NodeId, NumericValue, Tree};

use crate::bus::{
    ACCESSIBLE, ACTION, CACHE, COMPONENT, Object, PROPERTIES, SELECTION, TABLE, TEXT, VALUE, object, objects,
    owned_by, send_get, send_number, send_plain, states, variant_number, variant_string,
};
use crate::dbus::{Call, Connection, Failure, Malformed, Message};
use crate::map::{self, Interfaces, NativeFacts, Toolkit, role, state};

/// Calls on the way at any time. More gains nothing and makes applications answer "no such interface" by mistake.
const IN_FLIGHT: usize = 160;
/// A container that makes its children on demand and has more than this many is read where it shows, not listed.
const LISTED_CHILDREN: u32 = 1000;
/// The most cells of a table that are read: a 4K screen of the smallest usual cells.
const MOST_CELLS: u32 = 20_000;
/// Actions looked at on one object.
const MOST_ACTIONS: i32 = 24;
/// Direction of coordinates in `Component`: the desktop, or the window.
const SCREEN: u32 = 0;

/// What is wanted of each object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What a tree shows.
    Tree,
    /// Everything, range of numbers included; for single objects.
    Everything,
}

/// How the application has to be asked.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    pub(crate) toolkit: Toolkit,
    /// Bus name of the application.
    pub(crate) owner: Box<str>,
    /// Added to every position: where the window is, for toolkits that answer relative to it.
    pub(crate) origin: (i32, i32),
    /// Whether `GetActions` is safe to call; bridges before 2.46 end the application on it, and Firefox ends itself.
    pub(crate) has_safe_actions: bool,
}

/// A question about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    States,
    Role,
    Name,
    /// All properties of `Accessible`: name, description, number of children.
    All,
    Interfaces,
    Children,
    ChildCount,
    Extents,
    Actions,
    ActionCount,
    ActionName(u8),
    CharacterCount,
    Text,
    Current,
    Minimum,
    Maximum,
    Increment,
    Description,
    Attributes,
    Relations,
    /// The name of another object, kept in `others`.
    OtherName(u32),
    SelectedChild,
    Popup,
    /// The menu that a combo box of GTK 3 opens.
    Menu,
    MenuStates,
    Parent,
    ParentInterfaces,
    /// The item at a corner of what shows of a virtual container: 0 top left, 1 bottom right.
    Corner(u8),
    CornerName(u8),
    CornerIndex(u8),
    /// A cell by row and column.
    CellAt(u32, u32),
    /// A child by index.
    ChildAt(u32),
}

/// What is known of an object.
#[derive(Debug)]
struct Item {
    object: Object,
    parent: Option<u32>,
    index: u32,
    depth: u32,
    raw_depth: u32,
    role: Option<u32>,
    states: Option<u64>,
    interfaces: Option<Interfaces>,
    name: Option<String>,
    description: Option<String>,
    extents: Option<(i32, i32, i32, i32)>,
    actions: Vec<String>,
    text: Option<String>,
    text_length: Option<u32>,
    number: [Option<f64>; 4],
    attributes: Vec<(String, String)>,
    labelled_by: Vec<u32>,
    selected: Option<u32>,
    /// The list of a combo box, where that has the selection.
    popup: Option<Object>,
    /// The menu of a combo box of GTK 3, and whether it shows.
    menu: Option<Object>,
    menu_shows: bool,
    children: Vec<u32>,
    child_count: Option<u32>,
    cut: Option<Cut>,
    gaps: Gaps,
    is_web: bool,
    is_gone: bool,
    parent_selects: bool,
    basics_done: bool,
    children_asked: bool,
    /// Its parent, where that was asked for.
    parent_object: Option<Object>,
    /// Whether it said that it has none: it was taken out of its window and is kept alive by somebody.
    is_orphan: bool,
    /// Whether its description is known, if it has one.
    has_properties: bool,
}

/// The visible part of a container that makes its children on demand.
#[derive(Debug, Default)]
struct Virtual {
    corners: [Option<Object>; 2],
    /// Column and row of the corners, for spreadsheets.
    addresses: [Option<(u32, u32)>; 2],
    indexes: [Option<u32>; 2],
    /// Answers about the corners that are still to come.
    open: u8,
}

/// One entry of `Cache.GetItems`.
#[derive(Debug)]
struct Cached {
    parent: Box<str>,
    index: i32,
    child_count: i32,
    interfaces: Interfaces,
    name: String,
    role: u32,
    description: String,
    states: u64,
}

/// A reading in progress.
pub(crate) struct Survey<'a> {
    connection: &'a mut Connection,
    manner: &'a Manner,
    limits: Limits,
    detail: Detail,
    descends: bool,
    deadline: Instant,
    items: Vec<Item>,
    index: HashMap<Object, u32>,
    others: Vec<(Object, Option<String>)>,
    other_index: HashMap<Object, u32>,
    virtuals: HashMap<u32, Virtual>,
    cache: HashMap<Box<str>, Cached>,
    cached_children: HashMap<Box<str>, Vec<(i32, Box<str>)>>,
    queue: VecDeque<(u32, Ask, bool)>,
    pending: HashMap<u32, (u32, Ask, bool)>,
    text_bytes: u64,
    stopped: Option<Stop>,
    failure: Option<Failure>,
}

/// What came of a survey.
pub(crate) struct Surveyed {
    pub(crate) tree: Tree,
    pub(crate) stopped: Option<Stop>,
    pub(crate) visited: u32,
    /// What ended it, when it was not the deadline.
    pub(crate) failure: Option<Failure>,
    /// Whether the root itself could not be read.
    pub(crate) root_failed: bool,
    /// The native role of each node.
    pub(crate) natives: Vec<u32>,
    /// The nodes that are popovers.
    pub(crate) popovers: Vec<NodeId>,
}

/// What came of reading single objects.
pub(crate) enum Single {
    Live(Box<Node>),
    Gone,
    Unanswered,
}

impl<'a> Survey<'a> {
    pub(crate) fn new(
        connection: &'a mut Connection,
        manner: &'a Manner,
        limits: Limits,
        deadline: Instant,
    ) -> Survey<'a> {
        Survey {
            connection,
            manner,
            limits,
            detail: Detail::Tree,
            descends: true,
            deadline,
            items: Vec::new(),
            index: HashMap::new(),
            others: Vec::new(),
            other_index: HashMap::new(),
            virtuals: HashMap::new(),
            cache: HashMap::new(),
            cached_children: HashMap::new(),
            queue: VecDeque::new(),
            pending: HashMap::new(),
            text_bytes: 0,
            stopped: None,
            failure: None,
        }
    }

    /// Fills the cache by one call, if the application serves it. Worth it when most of the tree is wanted.
    pub(crate) fn prefetch(&mut self) {
        let cache = Object::new(&self.manner.owner, "/org/a11y/atspi/cache");
        let serial = send_plain(self.connection, &cache, CACHE, "GetItems");
        // One that takes long leaves time to read a part without it.
        let now = Instant::now();
        let patience = self.deadline.saturating_duration_since(now) / 2;
        let answer = self.connection.wait(serial, now + patience);
        if let Ok(message) = answer
            && let Ok(entries) = cache_items(&message)
        {
            for (path, entry) in entries {
                let child = (entry.index, path.clone());
                self.cached_children.entry(entry.parent.clone()).or_default().push(child);
                self.cache.insert(path, entry);
            }
            if self.manner.toolkit == Toolkit::Gtk4 {
                self.skip_stack_pages();
            }
            for children in self.cached_children.values_mut() {
                children.sort_by_key(|child| child.0);
            }
        }
    }

    /// Puts the content of each page of a stack in the place of the page.
    ///
    /// GTK 4 lists the content when a stack is asked for its children, and the page, an object without a place, when the
    /// content is asked for its parent or the cache is read. Both routes have to give the same tree.
    fn skip_stack_pages(&mut self) {
        let is_page =
            |entry: &&Cached| entry.role == role::PANEL && !entry.interfaces.has(Interfaces::COMPONENT);
        let pages: Vec<(Box<str>, Box<str>, i32)> = self
            .cache
            .iter()
            .filter(|(_, entry)| is_page(entry))
            .map(|(path, entry)| (path.clone(), entry.parent.clone(), entry.index))
            .collect();
        for (page, stack, index) in pages {
            let content = self.cached_children.remove(&page).unwrap_or_default();
            if let Some(siblings) = self.cached_children.get_mut(&stack) {
                siblings.retain(|(_, path)| *path != page);
                siblings.extend(content.into_iter().map(|(_, path)| (index, path)));
            }
        }
    }

    /// Reads the tree below `root`.
    pub(crate) fn tree(mut self, root: Object, in_web: bool) -> Surveyed {
        let root = self.add(root, None, 0);
        self.items[root as usize].is_web = in_web;
        self.ask(root, Ask::Parent);
        self.begin(root);
        self.run();
        if self.manner.toolkit == Toolkit::Gtk4 && self.failure.is_none() {
            self.uncover();
        }
        let root_failed = !self.items[0].basics_done && self.items[0].states.is_none();
        let visited = self.items.len() as u32;
        let (stopped, failure) = (self.stopped, self.failure.take());
        let (tree, natives, popovers) = if root_failed { Default::default() } else { self.finish() };
        Surveyed { tree, stopped, visited, failure, root_failed, natives, popovers }
    }

    /// Takes the pages of GTK 4 stacks out of sight that were shown once and lie below another one now: all of them say
    /// that they are visible, and keep their place. What a pointer would find there tells them apart.
    ///
    /// One wave where several children of one parent have the same place, none otherwise.
    fn uncover(&mut self) {
        let place = |id: u32| self.items[id as usize].extents;
        let mut asked = Vec::new();
        for id in 0..self.items.len() as u32 {
            let shown: Vec<u32> = self.items[id as usize]
                .children
                .iter()
                .copied()
                .filter(|&child| self.is_shown(child))
                .collect();
            let mut seen: Vec<u32> = Vec::new();
            for &child in &shown {
                let Some(area @ (x, y, width, height)) = place(child) else { continue };
                if seen.contains(&child) || width < 2 || height < 2 {
                    continue;
                }
                let pages: Vec<u32> =
                    shown.iter().copied().filter(|&other| place(other) == Some(area)).collect();
                if pages.len() > 1 {
                    seen.extend(&pages);
                    asked.push((id, pages, (x + width / 2, y + height / 2)));
                }
            }
        }
        let serials: Vec<u32> = asked
            .iter()
            .take(IN_FLIGHT)
            .map(|(stack, _, (x, y))| {
                let object = &self.items[*stack as usize].object;
                self.connection.send(&Call {
                    signature: "iiu",
                    body: &|writer| {
                        writer.i32(*x);
                        writer.i32(*y);
                        writer.u32(SCREEN);
                    },
                    ..Call::new(&object.bus, &object.path, COMPONENT, "GetAccessibleAtPoint")
                })
            })
            .collect();
        let owner = self.manner.owner.clone();
        for (answer, (stack, pages, _)) in
            self.connection.call_all(&serials, self.deadline).into_iter().zip(&asked)
        {
            let Ok(found) = answer.and_then(|message| object(&message, &owner)) else { continue };
            // What was found is somewhere below the page that shows.
            let mut here = self.index.get(&found).copied();
            while let Some(id) = here {
                let parent = self.items[id as usize].parent;
                if parent == Some(*stack) {
                    break;
                }
                here = parent;
            }
            if let Some(top) = here.filter(|top| pages.contains(top)) {
                for &page in pages.iter().filter(|&&page| page != top) {
                    if let Some(place) = &mut self.items[page as usize].extents {
                        (place.2, place.3) = (0, 0);
                    }
                }
            }
        }
    }

    /// Reads each of these objects, and nothing below them.
    pub(crate) fn singles(mut self, targets: &[Object]) -> Vec<Single> {
        self.descends = false;
        self.detail = Detail::Everything;
        self.limits.include_hidden = true;
        let ids: Vec<u32> = targets
            .iter()
            .map(|target| {
                let id = self.add(target.clone(), None, 0);
                self.ask(id, Ask::Parent);
                self.begin(id);
                id
            })
            .collect();
        self.run();
        ids.into_iter()
            .map(|id| {
                let item = &self.items[id as usize];
                let is_defunct = item.states.is_some_and(|states| states & state::DEFUNCT != 0);
                if item.is_gone || is_defunct || item.is_orphan {
                    return Single::Gone;
                }
                if item.role.is_none() || item.states.is_none() || item.gaps.basics {
                    return if matches!(self.failure, Some(Failure::Disconnected(_))) {
                        Single::Gone
                    } else {
                        Single::Unanswered
                    };
                }
                Single::Live(Box::new(self.node(id)))
            })
            .collect()
    }

    fn add(&mut self, object: Object, parent: Option<u32>, index: u32) -> u32 {
        let id = self.items.len() as u32;
        let (depth, raw_depth, is_web) = match parent {
            None => (0, 0, false),
            Some(parent) => {
                let parent = &self.items[parent as usize];
                let counts = u32::from(!is_wrapper(parent, self.manner.toolkit));
                (
                    parent.depth + counts,
                    parent.raw_depth + 1,
                    parent.is_web || parent.role == Some(role::DOCUMENT_WEB),
                )
            }
        };
        self.index.insert(object.clone(), id);
        self.items.push(Item {
            object,
            parent,
            index,
            depth,
            raw_depth,
            role: None,
            states: None,
            interfaces: None,
            name: None,
            description: None,
            extents: None,
            actions: Vec::new(),
            text: None,
            text_length: None,
            number: [None; 4],
            attributes: Vec::new(),
            labelled_by: Vec::new(),
            selected: None,
            popup: None,
            menu: None,
            menu_shows: false,
            children: Vec::new(),
            child_count: None,
            cut: None,
            gaps: Gaps::default(),
            is_web,
            is_gone: false,
            parent_selects: false,
            basics_done: false,
            children_asked: false,
            parent_object: None,
            is_orphan: false,
            has_properties: false,
        });
        id
    }

    fn ask(&mut self, id: u32, ask: Ask) {
        self.queue.push_back((id, ask, false));
    }

    /// First questions about an object, or none if the cache has the answers.
    fn begin(&mut self, id: u32) {
        let item = &mut self.items[id as usize];
        if *item.object.bus == *self.manner.owner
            && let Some(cached) = self.cache.get(&item.object.path)
        {
            item.role = Some(cached.role);
            item.states = Some(cached.states);
            item.interfaces = Some(cached.interfaces);
            item.name = Some(cached.name.clone());
            // Without the cache only controls are asked for it; both routes tell the same.
            item.description =
                Some(cached.description.clone()).filter(|text| !text.is_empty() && is_control(cached.role));
            item.child_count = u32::try_from(cached.child_count).ok();
            item.basics_done = true;
            if !self.is_shown(id) {
                return;
            }
            if self.manner.toolkit == Toolkit::Gtk4 {
                // Details wait for the size, which tells whether it shows.
                self.ask(id, Ask::Extents);
            } else {
                self.details(id);
            }
            self.descend(id);
            return;
        }
        self.ask(id, Ask::States);
        // Where most of what exists shows, asking for the state first only costs a round trip.
        if !self.asks_state_first() {
            // One answer with name, description and number of children spares most objects two calls, and costs a level a
            // round trip: it pays where everything is read.
            let name =
                if self.descends && self.manner.toolkit.has_atk_bridge() { Ask::All } else { Ask::Name };
            self.ask(id, Ask::Role);
            self.ask(id, name);
            // In browsers the role tells whether it is worth asking.
            if !self.is_browser() {
                self.ask(id, Ask::Interfaces);
            }
        }
        // An application that draws an animation answers once a frame: everything at once then saves frames. GTK 4 has no
        // containers whose children must not be asked for.
        if self.manner.toolkit == Toolkit::Gtk4 {
            self.ask(id, Ask::Extents);
            if self.descends {
                self.items[id as usize].children_asked = true;
                self.ask(id, Ask::Children);
            }
        }
    }

    fn is_browser(&self) -> bool {
        matches!(self.manner.toolkit, Toolkit::Chromium | Toolkit::Gecko)
    }

    fn asks_state_first(&self) -> bool {
        self.descends && !self.limits.include_hidden && self.manner.toolkit.showing_is_reliable()
    }

    fn is_shown(&self, id: u32) -> bool {
        let item = &self.items[id as usize];
        if self.limits.include_hidden || item.parent.is_none() {
            return true;
        }
        let Some(native) = item.states else { return false };
        if map::is_hidden(native, self.manner.toolkit) || self.is_in_closed_menu(item) {
            return false;
        }
        // GTK 4 leaves pages and popovers that are not on screen without a size. A negative one is no size at all: the page
        // of a stack has no place of its own.
        self.manner.toolkit.showing_is_reliable()
            || item.extents.is_none_or(|(_, _, width, height)| width != 0 && height != 0)
    }

    /// Items of Firefox go on saying that they show when their menu has closed.
    fn is_in_closed_menu(&self, item: &Item) -> bool {
        let Some(menu) = item.parent.map(|parent| &self.items[parent as usize]) else { return false };
        let is_open = menu
            .states
            .is_some_and(|states| states & state::EXPANDABLE == 0 || states & state::EXPANDED != 0);
        self.manner.toolkit == Toolkit::Gecko && menu.role == Some(role::MENU) && !is_open
    }

    fn states_arrived(&mut self, id: u32) {
        if !self.asks_state_first() {
            return;
        }
        if self.is_shown(id) {
            self.ask(id, Ask::Role);
            self.ask(id, Ask::Name);
            if !self.is_browser() {
                self.ask(id, Ask::Interfaces);
            }
            // The depth limit may turn on role and name only at the edge.
            let item = &self.items[id as usize];
            if item.depth < self.limits.max_depth {
                self.descend(id);
            }
        }
    }

    /// All of state, role, name, interfaces are there.
    fn basics(&mut self, id: u32) {
        let item = &mut self.items[id as usize];
        if item.basics_done {
            return;
        }
        item.basics_done = true;
        if !self.is_shown(id) {
            return;
        }
        self.details(id);
        self.descend(id);
    }

    fn descend(&mut self, id: u32) {
        if !self.descends {
            return;
        }
        let item = &self.items[id as usize];
        if item.children_asked || item.is_gone {
            return;
        }
        let is_deep = self.is_at_depth(id);
        let manages = item.states.unwrap_or(0) & state::MANAGES_DESCENDANTS != 0;
        let known = item.child_count;
        self.items[id as usize].children_asked = true;
        if is_deep {
            self.items[id as usize].cut = Some(Cut::Depth);
            if known.is_none() {
                self.ask(id, Ask::ChildCount);
            }
            return;
        }
        if manages && known.is_none() {
            self.ask(id, Ask::ChildCount);
            return;
        }
        self.list_children(id);
    }

    /// Whether what is below is too deep to be shown. Wrappers do not count.
    fn is_at_depth(&self, id: u32) -> bool {
        let item = &self.items[id as usize];
        let is_deep = item.depth >= self.limits.max_depth
            && !(item.basics_done && is_wrapper(item, self.manner.toolkit));
        is_deep || item.raw_depth >= self.limits.max_raw_depth
    }

    /// The number of children is known, or does not matter: ask for them.
    fn list_children(&mut self, id: u32) {
        let item = &self.items[id as usize];
        let manages = item.states.unwrap_or(0) & state::MANAGES_DESCENDANTS != 0;
        if manages && item.child_count.unwrap_or(0) > LISTED_CHILDREN {
            self.items[id as usize].cut = Some(Cut::Virtual);
            self.virtuals.insert(id, Virtual { open: 2, ..Virtual::default() });
            // The corners come from the extents, which are on their way.
            if self.items[id as usize].extents.is_some() {
                self.ask_corners(id);
            } else if !self.items[id as usize].basics_done {
                self.ask(id, Ask::Extents);
            }
            return;
        }
        if item.child_count == Some(0) {
            return;
        }
        if let Some(children) = self.cached_children.get(&item.object.path)
            && *item.object.bus == *self.manner.owner
        {
            // The whole tree is built from the cache at once. Its order is only a guess where there is something to put in
            // order: the ATK bridge numbers children otherwise than it lists them (header bars, scrolled windows).
            let is_complete = item.child_count == Some(children.len() as u32);
            let is_numbered =
                children.iter().enumerate().all(|(at, child)| usize::try_from(child.0) == Ok(at));
            let is_certain = is_complete
                && match self.manner.toolkit {
                    Toolkit::Gtk4 => is_numbered,
                    _ => children.len() == 1,
                };
            let owner = self.manner.owner.clone();
            let children: Vec<Object> = children.iter().map(|(_, path)| Object::new(&owner, path)).collect();
            if !is_certain {
                self.ask(id, Ask::Children);
            }
            if is_complete {
                self.children_arrived(id, children);
            }
            return;
        }
        self.ask(id, Ask::Children);
    }

    /// Takes in the children, in order; those that are known already keep what was read of them.
    fn children_arrived(&mut self, id: u32, children: Vec<Object>) {
        let total = children.len() as u32;
        self.items[id as usize].child_count = Some(total);
        if !self.is_shown(id) {
            return;
        }
        if total > 0 && self.is_at_depth(id) {
            self.items[id as usize].cut = Some(Cut::Depth);
            return;
        }
        let mut ordered = Vec::with_capacity(children.len());
        for (index, child) in children.into_iter().enumerate() {
            let known = self.index.get(&child).copied();
            if known.is_none()
                && (index as u32 >= self.limits.children || self.items.len() as u32 >= self.limits.nodes)
            {
                let what = if index as u32 >= self.limits.children { "children" } else { "nodes" };
                self.items[id as usize].cut = Some(Cut::Budget);
                self.stopped.get_or_insert(Stop::Limit(what));
                break;
            }
            match known {
                _ if child.is_null() => {}
                Some(known) if self.items[known as usize].parent == Some(id) && !ordered.contains(&known) => {
                    self.items[known as usize].index = index as u32;
                    ordered.push(known);
                }
                // An object that was met elsewhere is a cycle, or listed twice: once is enough.
                Some(_) => {}
                None => {
                    let child = self.add(child, Some(id), index as u32);
                    ordered.push(child);
                    self.begin(child);
                }
            }
        }
        self.items[id as usize].children = ordered;
    }

    fn details(&mut self, id: u32) {
        let toolkit = self.manner.toolkit;
        let everything = self.detail == Detail::Everything;
        let item = &self.items[id as usize];
        let (Some(number), Some(interfaces), Some(native)) = (item.role, item.interfaces, item.states) else {
            return;
        };
        let has_name = self.own_name(item).is_some();
        let mut asks = Vec::with_capacity(8);
        // Where a piece of a page's text would be that does not show is nobody's question.
        let is_hidden_text = toolkit == Toolkit::Chromium
            && number == role::STATIC
            && !everything
            && map::is_hidden(native, toolkit);
        if interfaces.has(Interfaces::COMPONENT)
            && item.extents.is_none()
            && toolkit != Toolkit::Gtk4
            && !is_hidden_text
        {
            asks.push(Ask::Extents);
        }
        let wants_actions = map::wants_actions(number, interfaces, toolkit);
        if wants_actions && matches!(toolkit, Toolkit::Chromium | Toolkit::Gecko) {
            // Chromium answers `GetActions` with nameless ones, Firefox may end on it. The first is what the object is for.
            asks.push(Ask::ActionName(0));
        } else if wants_actions {
            asks.push(if self.manner.has_safe_actions { Ask::Actions } else { Ask::ActionCount });
        }
        if interfaces.has(Interfaces::TEXT)
            && (wants_text(number, native, toolkit, has_name) || (everything && is_textual(number)))
        {
            asks.push(Ask::CharacterCount);
        }
        if interfaces.has(Interfaces::VALUE) && (is_numeric(number) || everything) {
            asks.push(Ask::Current);
            if everything {
                asks.extend([Ask::Minimum, Ask::Maximum, Ask::Increment]);
            }
        }
        let is_control = is_control(number);
        if item.description.is_none()
            && !item.has_properties
            && !self.cache.contains_key(&item.object.path)
            && (is_control || everything)
        {
            asks.push(Ask::Description);
        }
        if is_control
            && (matches!(toolkit, Toolkit::Gecko | Toolkit::Chromium) || (is_textual(number) && !has_name))
        {
            asks.push(Ask::Attributes);
        }
        // The questions of Firefox are panels in a frame beside the page.
        let may_be_dialog = toolkit == Toolkit::Gecko
            && number == role::PANEL
            && (everything || item.parent.is_none_or(|parent| self.is_internal_frame(parent)));
        if may_be_dialog {
            asks.push(Ask::Attributes);
        }
        if is_control && !has_name && toolkit != Toolkit::Gtk4 {
            asks.push(Ask::Relations);
        }
        if number == role::COMBO_BOX && matches!(toolkit, Toolkit::Gecko | Toolkit::Chromium) {
            // The menu inside has the selection. A combo box with text of its own has nothing selected there.
            asks.push(Ask::Popup);
        } else if number == role::COMBO_BOX && interfaces.has(Interfaces::SELECTION) {
            asks.push(Ask::SelectedChild);
        }
        // In a tree the menu is among the children.
        if number == role::COMBO_BOX && toolkit == Toolkit::Gtk3 && everything {
            asks.push(Ask::Menu);
        }
        match toolkit {
            // Every object ends with this one.
            Toolkit::Chromium if wants_actions => {
                self.items[id as usize].actions = vec![String::new(), "showContextMenu".to_owned()];
            }
            Toolkit::Gecko if wants_actions => self.items[id as usize].actions = vec![String::new()],
            _ => {}
        }
        for ask in asks {
            self.ask(id, ask);
        }
    }

    fn run(&mut self) {
        loop {
            while self.pending.len() < IN_FLIGHT {
                let Some((id, ask, retried)) = self.queue.pop_front() else { break };
                let serial = self.send(id, ask);
                self.pending.insert(serial, (id, ask, retried));
            }
            if self.pending.is_empty() {
                return;
            }
            match self.connection.next_reply(self.deadline) {
                Ok(message) => {
                    let Some((id, ask, retried)) = self.pending.remove(&message.reply_to) else { continue };
                    self.answered(id, ask, retried, message);
                }
                Err(failure) => {
                    self.give_up(failure);
                    return;
                }
            }
        }
    }

    /// The deadline, or the connection is lost: what has no answer is marked.
    fn give_up(&mut self, failure: Failure) {
        let stop = if failure == Failure::Timeout { Stop::Deadline } else { Stop::Gone };
        self.stopped.get_or_insert(stop);
        self.failure = Some(failure);
        for (id, ask, _) in self.pending.drain().map(|(_, open)| open).chain(self.queue.drain(..)) {
            let item = &mut self.items[id as usize];
            match ask {
                Ask::Extents => item.gaps.bounds = true,
                Ask::Children
                | Ask::ChildCount
                | Ask::CellAt(..)
                | Ask::ChildAt(_)
                | Ask::Corner(_)
                | Ask::CornerName(_)
                | Ask::CornerIndex(_) => item.cut = Some(Cut::Budget),
                Ask::States | Ask::Role | Ask::Name | Ask::All | Ask::Interfaces => {
                    item.gaps.basics = true;
                    if let Some(parent) = item.parent {
                        self.items[parent as usize].cut = Some(Cut::Budget);
                    }
                }
                Ask::Attributes => item.gaps.native_id = true,
                Ask::Actions | Ask::ActionCount | Ask::ActionName(_) => item.gaps.actions = true,
                _ => item.gaps.value = true,
            }
        }
    }

    fn ask_corners(&mut self, id: u32) {
        self.ask(id, Ask::Corner(0));
        self.ask(id, Ask::Corner(1));
    }

    /// A point inside the first or the last item that shows.
    fn corner_point(&self, id: u32, corner: u8) -> (i32, i32) {
        let (x, y, width, height) = self.items[id as usize].extents.unwrap_or_default();
        match corner {
            0 => (x + 2, y + 2),
            _ => (x + width - 3, y + height - 3),
        }
    }

    fn send(&mut self, id: u32, ask: Ask) -> u32 {
        let point = match ask {
            Ask::Corner(corner) => self.corner_point(id, corner),
            _ => (0, 0),
        };
        let item = &self.items[id as usize];
        let object = &item.object;
        let corner = |which: u8| {
            self.virtuals
                .get(&id)
                .and_then(|shown| shown.corners[usize::from(which)].as_ref())
                .unwrap_or(object)
        };
        let connection = &mut *self.connection;
        match ask {
            Ask::States => send_plain(connection, object, ACCESSIBLE, "GetState"),
            Ask::Role => send_plain(connection, object, ACCESSIBLE, "GetRole"),
            Ask::Name => send_get(connection, object, ACCESSIBLE, "Name"),
            Ask::All => connection.send(&Call {
                signature: "s",
                body: &|writer| writer.string(ACCESSIBLE),
                ..Call::new(&object.bus, &object.path, PROPERTIES, "GetAll")
            }),
            Ask::Interfaces => send_plain(connection, object, ACCESSIBLE, "GetInterfaces"),
            Ask::Children => send_plain(connection, object, ACCESSIBLE, "GetChildren"),
            Ask::ChildCount => send_get(connection, object, ACCESSIBLE, "ChildCount"),
            Ask::Extents => connection.send(&Call {
                signature: "u",
                body: &|writer| writer.u32(SCREEN),
                ..Call::new(&object.bus, &object.path, COMPONENT, "GetExtents")
            }),
            Ask::Actions => send_plain(connection, object, ACTION, "GetActions"),
            Ask::ActionCount => send_get(connection, object, ACTION, "NActions"),
            Ask::ActionName(index) => send_number(connection, object, ACTION, "GetName", i32::from(index)),
            Ask::CharacterCount => send_get(connection, object, TEXT, "CharacterCount"),
            Ask::Text => {
                let end = item.text_length.unwrap_or(0).min(self.limits.text_bytes).cast_signed();
                connection.send(&Call {
                    signature: "ii",
                    body: &|writer| {
                        writer.i32(0);
                        writer.i32(end);
                    },
                    ..Call::new(&object.bus, &object.path, TEXT, "GetText")
                })
            }
            Ask::Current => send_get(connection, object, VALUE, "CurrentValue"),
            Ask::Minimum => send_get(connection, object, VALUE, "MinimumValue"),
            Ask::Maximum => send_get(connection, object, VALUE, "MaximumValue"),
            Ask::Increment => send_get(connection, object, VALUE, "MinimumIncrement"),
            Ask::Description => send_get(connection, object, ACCESSIBLE, "Description"),
            Ask::Attributes => send_plain(connection, object, ACCESSIBLE, "GetAttributes"),
            Ask::Relations => send_plain(connection, object, ACCESSIBLE, "GetRelationSet"),
            Ask::OtherName(other) => send_get(connection, &self.others[other as usize].0, ACCESSIBLE, "Name"),
            Ask::SelectedChild => {
                let holder = item.popup.as_ref().unwrap_or(object);
                send_number(connection, holder, SELECTION, "GetSelectedChild", 0)
            }
            Ask::Popup | Ask::Menu => send_number(connection, object, ACCESSIBLE, "GetChildAtIndex", 0),
            Ask::MenuStates => {
                send_plain(connection, item.menu.as_ref().unwrap_or(object), ACCESSIBLE, "GetState")
            }
            Ask::Parent => send_get(connection, object, ACCESSIBLE, "Parent"),
            Ask::ParentInterfaces => {
                let parent = item.parent_object.as_ref().unwrap_or(object);
                send_plain(connection, parent, ACCESSIBLE, "GetInterfaces")
            }
            Ask::Corner(_) => connection.send(&Call {
                signature: "iiu",
                body: &|writer| {
                    writer.i32(point.0);
                    writer.i32(point.1);
                    writer.u32(SCREEN);
                },
                ..Call::new(&object.bus, &object.path, COMPONENT, "GetAccessibleAtPoint")
            }),
            Ask::CornerName(which) => send_get(connection, corner(which), ACCESSIBLE, "Name"),
            Ask::CornerIndex(which) => send_plain(connection, corner(which), ACCESSIBLE, "GetIndexInParent"),
            Ask::CellAt(row, column) => connection.send(&Call {
                signature: "ii",
                body: &|writer| {
                    writer.i32(row.cast_signed());
                    writer.i32(column.cast_signed());
                },
                ..Call::new(&object.bus, &object.path, TABLE, "GetAccessibleAt")
            }),
            Ask::ChildAt(index) => {
                send_number(connection, object, ACCESSIBLE, "GetChildAtIndex", index.cast_signed())
            }
        }
    }

    fn answered(&mut self, id: u32, ask: Ask, retried: bool, message: Message) {
        match self.take_answer(id, ask, crate::dbus::checked(message)) {
            Ok(()) => {}
            Err(failure) => self.refused(id, ask, retried, &failure),
        }
        let item = &self.items[id as usize];
        if !item.basics_done
            && item.states.is_some()
            && item.role.is_some()
            && item.name.is_some()
            && item.interfaces.is_some()
            && (self.manner.toolkit != Toolkit::Gtk4 || item.extents.is_some())
        {
            self.basics(id);
        }
    }

    fn take_answer(&mut self, id: u32, ask: Ask, answer: Result<Message, Failure>) -> Result<(), Failure> {
        let message = answer?;
        let owner = self.manner.owner.clone();
        let at = id as usize;
        match ask {
            Ask::States => {
                self.items[at].states = Some(states(&message)?);
                self.states_arrived(id);
            }
            Ask::Role => {
                let number = message.body("u")?.u32()?;
                self.items[at].role = Some(number);
                if self.is_browser() && self.items[at].interfaces.is_none() {
                    // Text leaves, half of a page, have a place and nothing else that matters.
                    if number == role::STATIC && self.descends {
                        self.items[at].interfaces = Some(Interfaces::COMPONENT);
                    } else {
                        self.ask(id, Ask::Interfaces);
                    }
                }
            }
            Ask::Name => self.items[at].name = Some(bounded(variant_string(&message)?)),
            Ask::All => self.properties_arrived(id, &message)?,
            Ask::Interfaces => self.items[at].interfaces = Some(interfaces(&message)?),
            Ask::Children => {
                let children = objects(&message, &owner)?;
                self.children_arrived(id, children);
            }
            Ask::ChildCount => {
                let count = variant_number(&message)?;
                self.items[at].child_count = Some(if count > 0.0 { count as u32 } else { 0 });
                if self.items[at].cut != Some(Cut::Depth) {
                    self.list_children(id);
                }
            }
            Ask::Extents => {
                let mut body = message.body("(iiii)")?;
                body.structure()?;
                self.items[at].extents = Some((body.i32()?, body.i32()?, body.i32()?, body.i32()?));
                if self.manner.toolkit == Toolkit::Gtk4 && self.items[at].basics_done && self.is_shown(id) {
                    self.details(id);
                }
                if self.virtuals.get(&id).is_some_and(|shown| shown.open == 2 && shown.corners[0].is_none()) {
                    self.ask_corners(id);
                }
            }
            Ask::Actions => {
                let mut body = message.body("a(sss)")?;
                let end = body.array(8)?;
                let mut names = Vec::new();
                while body.more(end) && names.len() < MOST_ACTIONS as usize {
                    body.structure()?;
                    names.push(body.string()?.into_owned());
                    body.string()?;
                    body.string()?;
                }
                // These are the translated names. Words we know are the same in every language; others are asked for.
                for (index, name) in names.iter().enumerate() {
                    if !map::is_familiar_action(name) {
                        self.ask(id, Ask::ActionName(index as u8));
                    }
                }
                self.items[at].actions = names;
            }
            Ask::ActionCount => {
                let count = (variant_number(&message)? as i32).clamp(0, MOST_ACTIONS);
                self.items[at].actions = vec![String::new(); count as usize];
                for index in 0..count {
                    self.ask(id, Ask::ActionName(index as u8));
                }
            }
            Ask::ActionName(index) => {
                let name = message.body("s")?.string()?.into_owned();
                if let Some(slot) = self.items[at].actions.get_mut(usize::from(index)) {
                    *slot = name;
                }
            }
            Ask::CharacterCount => {
                let count = variant_number(&message)?.max(0.0) as u32;
                self.items[at].text_length = Some(count);
                let is_secret = self.items[at].role == Some(role::PASSWORD_TEXT);
                if count > 0 && !is_secret {
                    if self.text_bytes >= self.limits.total_text_bytes {
                        self.stopped.get_or_insert(Stop::Limit("text"));
                        self.items[at].gaps.value = true;
                    } else {
                        self.ask(id, Ask::Text);
                    }
                }
            }
            Ask::Text => {
                let mut text = message.body("s")?.string()?.into_owned();
                self.text_bytes += text.len() as u64;
                if self.manner.toolkit == Toolkit::Gecko {
                    let padding = unpad(&mut text);
                    let length = self.items[at].text_length.unwrap_or(0);
                    self.items[at].text_length = Some(length.saturating_sub(padding));
                }
                self.items[at].text = Some(text);
            }
            Ask::Current => self.items[at].number[0] = Some(variant_number(&message)?),
            Ask::Minimum => self.items[at].number[1] = Some(variant_number(&message)?),
            Ask::Maximum => self.items[at].number[2] = Some(variant_number(&message)?),
            Ask::Increment => self.items[at].number[3] = Some(variant_number(&message)?),
            Ask::Description => {
                self.items[at].description =
                    Some(bounded(variant_string(&message)?)).filter(|text| !text.is_empty());
            }
            Ask::Attributes => {
                let mut body = message.body("a{ss}")?;
                let end = body.array(8)?;
                while body.more(end) {
                    body.structure()?;
                    let (name, value) = (body.string()?, body.string()?);
                    if matches!(
                        name.as_ref(),
                        "id" | "placeholder-text" | "placeholder" | "level" | "xml-roles"
                    ) {
                        self.items[at].attributes.push((name.into_owned(), bounded(value.into_owned())));
                    }
                }
            }
            Ask::Relations => self.relations_arrived(id, &message)?,
            Ask::OtherName(other) => {
                self.others[other as usize].1 = Some(bounded(variant_string(&message)?));
            }
            Ask::Popup => {
                let popup = object(&message, &owner)?;
                if !popup.is_null() {
                    self.items[at].popup = Some(popup);
                    self.ask(id, Ask::SelectedChild);
                }
            }
            Ask::Menu => {
                let menu = object(&message, &owner)?;
                if !menu.is_null() {
                    self.items[at].menu = Some(menu);
                    self.ask(id, Ask::MenuStates);
                }
            }
            Ask::MenuStates => self.items[at].menu_shows = states(&message)? & state::SHOWING != 0,
            Ask::SelectedChild => {
                let selected = object(&message, &owner)?;
                if !selected.is_null() {
                    let other = self.other(selected, id);
                    self.items[at].selected = Some(other);
                }
            }
            Ask::Parent => {
                let mut body = message.body("v")?;
                if body.signature()? != "(so)" {
                    return Err(Failure::Malformed("variant"));
                }
                let (bus, path) = body.reference()?;
                let parent = owned_by(&bus, &path, &owner);
                if parent.is_null() {
                    self.items[at].is_orphan = true;
                } else {
                    self.items[at].parent_object = Some(parent);
                    self.ask(id, Ask::ParentInterfaces);
                }
            }
            Ask::ParentInterfaces => {
                self.items[at].parent_selects = interfaces(&message)?.has(Interfaces::SELECTION);
            }
            Ask::Corner(which) => {
                let found = object(&message, &owner)?;
                let is_item = !found.is_null() && found != self.items[at].object;
                let shown = self.virtuals.entry(id).or_default();
                shown.open -= 1;
                if is_item {
                    shown.corners[usize::from(which)] = Some(found);
                    shown.open += 2;
                    self.ask(id, Ask::CornerName(which));
                    self.ask(id, Ask::CornerIndex(which));
                }
            }
            Ask::CornerName(which) => {
                let address = map::cell_address(&variant_string(&message)?);
                let shown = self.virtuals.entry(id).or_default();
                shown.addresses[usize::from(which)] = address;
                self.corner_answered(id);
            }
            Ask::CornerIndex(which) => {
                let index = u32::try_from(message.body("i")?.i32()?).ok();
                let shown = self.virtuals.entry(id).or_default();
                shown.indexes[usize::from(which)] = index;
                self.corner_answered(id);
            }
            Ask::CellAt(row, column) => {
                let cell = object(&message, &owner)?;
                if !cell.is_null() && !self.index.contains_key(&cell) {
                    // What a cell of a sheet is called and what it can do is known; what is in it is not.
                    let child = self.add(cell, Some(id), row.wrapping_mul(16_384).wrapping_add(column));
                    self.items[at].children.push(child);
                    let item = &mut self.items[child as usize];
                    item.role = Some(role::TABLE_CELL);
                    item.name = Some(map::address_of(column, row));
                    let mut has = Interfaces::TEXT;
                    has.insert(Interfaces::COMPONENT);
                    item.interfaces = Some(has);
                    item.child_count = Some(0);
                    item.basics_done = true;
                    item.children_asked = true;
                    for ask in [Ask::States, Ask::Extents, Ask::CharacterCount] {
                        self.ask(child, ask);
                    }
                }
            }
            Ask::ChildAt(index) => {
                let child = object(&message, &owner)?;
                if !child.is_null() && !self.index.contains_key(&child) {
                    let child = self.add(child, Some(id), index);
                    self.items[at].children.push(child);
                    self.begin(child);
                }
            }
        }
        Ok(())
    }

    /// An answer about a corner has come; with the last one, ask for what lies between.
    fn corner_answered(&mut self, id: u32) {
        let shown = self.virtuals.entry(id).or_default();
        shown.open = shown.open.saturating_sub(1);
        if shown.open > 0 {
            return;
        }
        if let [Some(first), Some(last)] = shown.addresses {
            let (columns, rows) =
                (first.0.min(last.0)..=first.0.max(last.0), first.1.min(last.1)..=first.1.max(last.1));
            let mut count = 0;
            for row in rows {
                for column in columns.clone() {
                    count += 1;
                    if count > MOST_CELLS {
                        self.stopped.get_or_insert(Stop::Limit("children"));
                        return;
                    }
                    self.ask(id, Ask::CellAt(row, column));
                }
            }
        } else if let [Some(first), last] = shown.indexes {
            // Nothing at the far corner: the list ends before it.
            let end = self.items[id as usize].child_count.unwrap_or(0).saturating_sub(1);
            let last = last.unwrap_or(end).min(end).min(first.saturating_add(self.limits.children));
            for index in first..=last {
                self.ask(id, Ask::ChildAt(index));
            }
        }
    }

    fn properties_arrived(&mut self, id: u32, message: &Message) -> Result<(), Failure> {
        let mut body = message.body("a{sv}")?;
        let end = body.array(8)?;
        let item = &mut self.items[id as usize];
        let mut name = String::new();
        while body.more(end) {
            body.structure()?;
            let property = body.string()?;
            let signature = body.signature()?.into_owned();
            match (property.as_ref(), signature.as_str()) {
                ("Name", "s") => name = bounded(body.string()?.into_owned()),
                ("Description", "s") => {
                    let description = bounded(body.string()?.into_owned());
                    // All routes tell the same: elsewhere only controls are asked for it.
                    let is_wanted = item.role.is_none_or(is_control);
                    item.description = Some(description).filter(|text| !text.is_empty() && is_wanted);
                }
                ("ChildCount", "i") => item.child_count = Some(body.i32()?.max(0).cast_unsigned()),
                (_, other) => body.skip(other)?,
            }
        }
        item.name = Some(name);
        item.has_properties = true;
        Ok(())
    }

    fn relations_arrived(&mut self, id: u32, message: &Message) -> Result<(), Failure> {
        const LABELLED_BY: u32 = 2;
        let owner = self.manner.owner.clone();
        let mut body = message.body("a(ua(so))")?;
        let end = body.array(8)?;
        while body.more(end) {
            body.structure()?;
            let kind = body.u32()?;
            let targets = body.array(8)?;
            while body.more(targets) {
                let (bus, path) = body.reference()?;
                if kind == LABELLED_BY && self.items[id as usize].labelled_by.len() < 8 {
                    let label = owned_by(&bus, &path, &owner);
                    let other = self.other(label, id);
                    self.items[id as usize].labelled_by.push(other);
                }
            }
        }
        Ok(())
    }

    /// Remembers an object outside the tree whose name is needed, and asks for it once.
    fn other(&mut self, object: Object, for_item: u32) -> u32 {
        if let Some(&known) = self.other_index.get(&object) {
            return known;
        }
        let other = self.others.len() as u32;
        self.others.push((object.clone(), None));
        self.other_index.insert(object, other);
        self.ask(for_item, Ask::OtherName(other));
        other
    }

    fn refused(&mut self, id: u32, ask: Ask, retried: bool, failure: &Failure) {
        // Some applications deny an interface under load that they have; once more is enough.
        let is_spurious = matches!(failure, Failure::Remote { name, .. }
            if name == "org.freedesktop.DBus.Error.UnknownInterface" || name == "org.freedesktop.DBus.Error.UnknownMethod");
        if is_spurious && !retried && !matches!(ask, Ask::Extents | Ask::Parent | Ask::ParentInterfaces) {
            self.queue.push_back((id, ask, true));
            return;
        }
        let is_gone = matches!(failure, Failure::Remote { name, .. }
            if matches!(name.as_str(), "org.freedesktop.DBus.Error.NoReply" | "org.freedesktop.DBus.Error.ServiceUnknown"));
        if is_gone {
            self.stopped = Some(Stop::Gone);
            self.failure.get_or_insert(failure.clone());
        }
        let item = &mut self.items[id as usize];
        match ask {
            Ask::States | Ask::Role => item.is_gone = true,
            // An object without a name or interfaces is still an object.
            Ask::Name => item.name = Some(String::new()),
            Ask::All => self.queue.push_back((id, Ask::Name, false)),
            Ask::Interfaces => item.interfaces = Some(Interfaces::COMPONENT),
            Ask::Extents => item.extents = Some((i32::MIN, i32::MIN, -1, -1)),
            Ask::Children | Ask::ChildCount if matches!(failure, Failure::Malformed(_)) => {
                item.cut = Some(Cut::Budget);
                item.gaps.basics = true;
                self.stopped.get_or_insert(Stop::Unreadable);
            }
            Ask::CharacterCount | Ask::Text | Ask::Current if matches!(failure, Failure::Malformed(_)) => {
                item.gaps.value = true;
            }
            Ask::Corner(_) | Ask::CornerName(_) | Ask::CornerIndex(_) => self.corner_answered(id),
            _ => {}
        }
    }

    fn finish(self) -> (Tree, Vec<u32>, Vec<NodeId>) {
        let mut tree = Tree::with_capacity(self.items.len());
        let mut fallbacks: Vec<Option<String>> = Vec::with_capacity(self.items.len());
        let mut natives: Vec<u32> = Vec::with_capacity(self.items.len());
        let mut popovers = Vec::new();
        let mut insensitive: Vec<bool> = Vec::with_capacity(self.items.len());
        let mut stack: Vec<(u32, Option<NodeId>)> = vec![(0, None)];
        while let Some((id, parent)) = stack.pop() {
            let item = &self.items[id as usize];
            let is_read = item.states.is_some() && item.role.is_some();
            if item.is_gone || !is_read || !self.is_shown(id) {
                continue;
            }
            let mut node = self.node(id);
            fallbacks.push(self.fallback_name(id, &mut node));
            natives.push(item.role.unwrap_or(0));
            if self.manner.toolkit == Toolkit::Gtk4 {
                let is_inside = parent.is_some_and(|parent| insensitive[parent as usize]);
                insensitive.push(is_inside || map::is_insensitive(item.states.unwrap_or(0)));
                if is_inside && map::can_be_disabled(node.role) {
                    node.states.insert(State::Disabled);
                }
            }
            let node = tree.push(parent, node);
            // GTK 4 says what a popover is only by the name of its class, GTK 3 by a panel that is modal.
            let is_modal_panel = item.role == Some(role::PANEL)
                && item.states.is_some_and(|native| native & state::MODAL != 0);
            if matches!(item.name.as_deref(), Some("GtkPopover" | "GtkTreePopover")) || is_modal_panel {
                popovers.push(node);
            }
            stack.extend(item.children.iter().rev().map(|&child| (child, Some(node))));
        }
        if self.manner.toolkit == Toolkit::Gtk4 {
            lend_clicks(&mut tree, &natives);
            lend_labels(&mut tree);
            lend_openness(&mut tree, &natives);
        }
        name::name_from_children(&mut tree, |id| fallbacks[id as usize].clone());
        (tree, natives, popovers)
    }

    fn facts<'i>(&self, item: &'i Item) -> NativeFacts<'i> {
        let parent = item.parent.map(|parent| &self.items[parent as usize]);
        NativeFacts {
            role: item.role.unwrap_or(0),
            states: item.states.unwrap_or(0),
            interfaces: item.interfaces.unwrap_or_default(),
            toolkit: self.manner.toolkit,
            actions: &item.actions,
            parent_selects: parent.map_or(item.parent_selects, |parent| {
                parent.interfaces.is_some_and(|has| has.has(Interfaces::SELECTION))
            }),
        }
    }

    /// The node of an item, without name candidates that rank below a child's text.
    fn node(&self, id: u32) -> Node {
        let item = &self.items[id as usize];
        let facts = self.facts(item);
        let our_role = match map::dialog_role(facts.role, self.manner.toolkit, &item.attributes) {
            Some(dialog) => dialog,
            None => map::role_of(&facts),
        };
        let mut node = Node::new(our_role, item.object.handle());
        if our_role == Role::Unknown {
            node.native_role = Some(map::native_role_name(facts.role));
        }
        node.states = map::states_of(&facts, our_role);
        if facts.role == role::PANEL && our_role != Role::Group {
            node.states.insert(State::Modal);
        }
        if self.is_in_closed_menu(item) {
            node.states.insert(State::Hidden);
        }
        if facts.role == role::COMBO_BOX && self.shows_menu(item) {
            node.states.insert(State::Expanded);
        }
        node.capabilities = map::capabilities_of(&facts, our_role);
        node.bounds = self.bounds(item);
        // Of an object read alone nobody knows what is around it; Gecko's own controls are of the same making.
        node.is_web = item.is_web || (!self.descends && self.manner.toolkit == Toolkit::Gecko);
        node.index_in_parent = item.index;
        node.cut = item.cut;
        node.children_count = match item.cut {
            Some(_) => item.child_count,
            None => None,
        };
        node.gaps = item.gaps;
        node.text_length = item.text_length;
        if let Some(current) = item.number[0] {
            node.number = Some(NumericValue {
                current,
                minimum: item.number[1].unwrap_or(f64::NEG_INFINITY),
                maximum: item.number[2].unwrap_or(f64::INFINITY),
                step: item.number[3].unwrap_or(0.0),
            });
        }
        node.native_id = item
            .attributes
            .iter()
            .find(|(name, value)| name == "id" && !value.is_empty())
            .map(|(_, value)| NativeId { kind: NativeIdKind::AxDomIdentifier, value: value.clone() });
        let text = item.text.as_deref().map(shown_text).filter(|text| !text.trim().is_empty());
        let is_editable = facts.states & state::EDITABLE != 0;
        let own_name = self.own_name(item);
        node.value = self.value(item, our_role, text.clone(), own_name.as_deref());
        let (name, description) = name::choose(NameCandidates {
            label: own_name,
            labelled_by: self.label(item),
            static_text: text
                .filter(|_| !is_editable && our_role != Role::TextField && our_role != Role::Cell),
            ..NameCandidates::default()
        });
        node.name = name;
        node.description = description.or_else(|| {
            item.description.clone().filter(|text| node.name.is_some() && node.name.as_ref() != Some(text))
        });
        if node.name.is_none() && !self.descends {
            node.name = self.fallback_name(id, &mut node.clone());
        }
        node
    }

    fn is_internal_frame(&self, id: u32) -> bool {
        self.items[id as usize].role == Some(role::INTERNAL_FRAME)
    }

    /// Whether the menu of a combo box of GTK 3 is open. The box itself does not say.
    fn shows_menu(&self, item: &Item) -> bool {
        let is_open = |&child: &u32| {
            let child = &self.items[child as usize];
            child.role == Some(role::MENU) && child.states.unwrap_or(0) & state::SHOWING != 0
        };
        self.manner.toolkit == Toolkit::Gtk3 && (item.menu_shows || item.children.iter().any(is_open))
    }

    fn own_name(&self, item: &Item) -> Option<String> {
        let name = item.name.as_deref()?.trim();
        let name = if self.manner.toolkit == Toolkit::Gtk4 {
            if map::is_type_name(name, item.role.unwrap_or(0)) {
                return None;
            }
            map::undoubled(name)
        } else {
            name
        };
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn label(&self, item: &Item) -> Option<String> {
        let names: Vec<&str> = item
            .labelled_by
            .iter()
            .filter_map(|&other| self.others[other as usize].1.as_deref())
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        (!names.is_empty()).then(|| names.join(" "))
    }

    /// Placeholder or description: what the node is called by when neither it nor its children say.
    fn fallback_name(&self, id: u32, node: &mut Node) -> Option<String> {
        if node.name.is_some() {
            return None;
        }
        let item = &self.items[id as usize];
        let placeholder = item
            .attributes
            .iter()
            .find(|(name, _)| name.starts_with("placeholder"))
            .map(|(_, value)| value.clone());
        name::choose(NameCandidates {
            placeholder,
            description: item.description.clone(),
            ..NameCandidates::default()
        })
        .0
    }

    fn value(
        &self,
        item: &Item,
        our_role: Role,
        text: Option<String>,
        own_name: Option<&str>,
    ) -> Option<String> {
        let native = item.states.unwrap_or(0);
        if our_role.is_toggleable() {
            return Some(
                if native & state::INDETERMINATE != 0 {
                    "mixed"
                } else if native & state::CHECKED != 0 {
                    "1"
                } else {
                    "0"
                }
                .to_owned(),
            );
        }
        match our_role {
            Role::TextField if item.role == Some(role::PASSWORD_TEXT) => None,
            Role::ComboBox => {
                let selected = item.selected.and_then(|other| self.others[other as usize].1.clone());
                // Qt calls a combo box by its current item.
                selected
                    .filter(|name| !name.is_empty())
                    .or(text)
                    .or_else(|| own_name.filter(|_| self.manner.toolkit == Toolkit::Qt).map(str::to_owned))
            }
            _ if our_role.is_numeric() => item.number[0].map(number_text).or(text),
            Role::TextField | Role::Cell | Role::TreeItem => text,
            // Text that can be edited is content, whatever it is part of: a paragraph of a document.
            _ if native & state::EDITABLE != 0 => text,
            _ => None,
        }
    }

    fn bounds(&self, item: &Item) -> Option<Rect> {
        let (x, y, width, height) = item.extents?;
        if width < 0 || height < 0 || x == i32::MIN || y == i32::MIN {
            return None;
        }
        let (dx, dy) = self.manner.origin;
        Some(Rect::from_pixels(x.saturating_add(dx), y.saturating_add(dy), width, height))
    }
}

/// Whether the object only holds others: it does not count towards the depth.
fn is_wrapper(item: &Item, toolkit: Toolkit) -> bool {
    let is_group = item.role.is_some_and(|number| {
        matches!(
            number,
            role::FILLER
                | role::PANEL
                | role::SECTION
                | role::VIEWPORT
                | role::LAYERED_PANE
                | role::SCROLL_PANE
                | 99
        )
    });
    let is_unnamed = item.name.as_deref().is_none_or(|name| {
        name.trim().is_empty()
            || (toolkit == Toolkit::Gtk4 && map::is_type_name(name, item.role.unwrap_or(0)))
    });
    is_group && is_unnamed
}

/// Gives the click of a button inside to the control around it: menu buttons and combo boxes of GTK 4 consist of an
/// outer node without an action and an inner button that has it.
fn lend_clicks(tree: &mut Tree, natives: &[u32]) {
    for id in 0..tree.len() as NodeId {
        let is_outer = matches!(natives[id as usize], role::PUSH_BUTTON | role::COMBO_BOX)
            && !tree.node(id).capabilities.has(Capability::Click)
            && !tree.node(id).states.has(State::Disabled);
        if !is_outer {
            continue;
        }
        let is_button = |inner: NodeId| {
            matches!(natives[inner as usize], role::PUSH_BUTTON | role::TOGGLE_BUTTON)
                && tree.node(inner).capabilities.has(Capability::Click)
        };
        let mut inner = tree.subtree(id).skip(1).filter(|&inner| is_button(inner));
        if inner.next().is_some() {
            let is_combo = natives[id as usize] == role::COMBO_BOX;
            let node = tree.node_mut(id);
            node.capabilities.insert(Capability::Click);
            if is_combo {
                node.capabilities.insert(Capability::Select);
            } else {
                node.role = Role::MenuButton;
            }
        }
    }
}

/// Whether a control of GTK 4 tells only by the button inside that its list or menu is open.
pub(crate) fn opens_by_inner_button(node: &Node) -> bool {
    matches!(node.role, Role::ComboBox | Role::MenuButton)
}

/// Marks what is open: the button that opens it is down then.
fn lend_openness(tree: &mut Tree, natives: &[u32]) {
    for id in 0..tree.len() as NodeId {
        if !opens_by_inner_button(tree.node(id)) {
            continue;
        }
        let button = tree
            .subtree(id)
            .skip(1)
            .find(|&inner| matches!(natives[inner as usize], role::PUSH_BUTTON | role::TOGGLE_BUTTON));
        if button.is_some_and(|button| tree.node(button).states.has(State::Pressed)) {
            tree.node_mut(id).states.insert(State::Expanded);
        }
    }
}

/// Whether a control of GTK 4 says what it is called, or what it shows, only by the label deep inside it.
pub(crate) fn is_told_by_label(node: &Node) -> bool {
    match node.role {
        Role::ComboBox => node.value.is_none(),
        // The name of every tab is `Tab`, in the language of the application.
        Role::Tab => true,
        Role::MenuButton | Role::Disclosure | Role::Button => node.name.is_none(),
        _ => false,
    }
}

/// Takes the text of controls from the labels inside, between which and the control GTK 4 puts up to five boxes.
fn lend_labels(tree: &mut Tree) {
    for id in 0..tree.len() as NodeId {
        if !is_told_by_label(tree.node(id)) {
            continue;
        }
        let is_combo = tree.node(id).role == Role::ComboBox;
        let text = tree
            .subtree(id)
            .skip(1)
            .map(|inner| tree.node(inner))
            // What lies in an open menu or an expanded section is not the control's own.
            .take_while(|inner| {
                matches!(
                    inner.role,
                    Role::Group | Role::Image | Role::Button | Role::StaticText | Role::Unknown
                )
            })
            .find(|inner| inner.role == Role::StaticText && inner.name.is_some())
            .and_then(|inner| inner.name.clone());
        let Some(text) = text else { continue };
        let node = tree.node_mut(id);
        if is_combo {
            node.value = Some(text);
        } else {
            node.name = Some(text);
        }
    }
}

fn is_textual(number: u32) -> bool {
    matches!(number, role::TEXT | role::ENTRY | role::PASSWORD_TEXT | role::PARAGRAPH | 60 | 76 | 77)
}

fn is_numeric(number: u32) -> bool {
    matches!(number, 15 | 42 | 48 | role::SLIDER | role::SPIN_BUTTON | 53 | 103 | 114)
}

/// Whether people operate objects of this role, so that name, id and description are worth a call.
fn is_control(number: u32) -> bool {
    matches!(
        number,
        role::CHECK_BOX
            | role::COMBO_BOX
            | role::PASSWORD_TEXT
            | role::PUSH_BUTTON
            | role::RADIO_BUTTON
            | role::SLIDER
            | role::SPIN_BUTTON
            | role::TEXT
            | role::TOGGLE_BUTTON
            | role::ENTRY
            | role::LINK
            | role::LIST_BOX
            | role::PAGE_TAB
            | role::TREE_ITEM
            | 12
            | 15
            | 129
            | 130
    )
}

/// Whether the text of an object says something that its name does not.
fn wants_text(number: u32, native: u64, toolkit: Toolkit, has_name: bool) -> bool {
    if native & state::EDITABLE != 0 || is_textual(number) {
        return number != role::SPIN_BUTTON;
    }
    if has_name {
        return number == role::TABLE_CELL && toolkit == Toolkit::Gtk3;
    }
    match toolkit {
        // Text leaves of the page carry the text as their name.
        Toolkit::Chromium => number == role::COMBO_BOX,
        Toolkit::Gecko => matches!(
            number,
            role::SECTION
                | role::STATIC
                | role::LABEL
                | role::LIST_ITEM
                | role::TABLE_CELL
                | 81
                | 83
                | 105
                | 119
                | 120
        ),
        _ => true,
    }
}

fn interfaces(message: &Message) -> Result<Interfaces, Malformed> {
    let mut found = Interfaces::default();
    for name in message.body("as")?.strings()? {
        found.insert_name(&name);
    }
    Ok(found)
}

/// Takes out the marks that Gecko puts behind each character of more than 16 bits, so that its offsets, which count 16-bit
/// units, fit a text that counts characters. Says how many there were.
fn unpad(text: &mut String) -> u32 {
    let mut removed = 0;
    let mut follows_wide = false;
    text.retain(|character| {
        let is_padding = follows_wide && character == '\u{feff}';
        follows_wide = character.len_utf16() == 2;
        removed += u32::from(is_padding);
        !is_padding
    });
    removed
}

/// Text without the placeholders of embedded objects.
fn shown_text(text: &str) -> String {
    text.replace('\u{fffc}', "")
}

/// A name or description, cut to what a ref entry may hold.
fn bounded(mut text: String) -> String {
    const LONGEST: usize = 64 * 1024;
    if text.len() > LONGEST {
        let mut end = LONGEST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text.retain(|character| character != '\0');
    text
}

/// A number as a person writes it: no exponent, no trailing zeros.
fn number_text(number: f64) -> String {
    let rounded = (number * 1e6).round() / 1e6;
    if rounded.fract().abs() < f64::EPSILON && rounded.abs() < 1e15 {
        format!("{}", rounded as i64)
    } else {
        format!("{rounded}")
    }
}

fn cache_items(message: &Message) -> Result<Vec<(Box<str>, Cached)>, Malformed> {
    let is_legacy = match message.signature() {
        "a((so)(so)(so)iiassusau)" => false,
        "a((so)(so)(so)a(so)assusau)" => true,
        _ => return Err(Malformed("signature")),
    };
    let mut body = message.reader();
    let end = body.array(8)?;
    let mut entries = Vec::new();
    while body.more(end) {
        body.structure()?;
        let (_, path) = body.reference()?;
        body.reference()?;
        let (_, parent) = body.reference()?;
        let (index, child_count) = if is_legacy {
            let children = body.array(8)?;
            let mut count = 0;
            while body.more(children) {
                body.reference()?;
                count += 1;
            }
            (-1, count)
        } else {
            (body.i32()?, body.i32()?)
        };
        let mut found = Interfaces::default();
        for name in body.strings()? {
            found.insert_name(&name);
        }
        let name = bounded(body.string()?.into_owned());
        let role = body.u32()?;
        let description = bounded(body.string()?.into_owned());
        let words = body.array(4)?;
        let mut native = 0_u64;
        let mut shift = 0;
        while body.more(words) {
            let word = body.u32()?;
            if shift < 64 {
                native |= u64::from(word) << shift;
            }
            shift += 32;
        }
        entries.push((
            path.into(),
            Cached {
                parent: parent.into(),
                index,
                child_count,
                interfaces: found,
                name,
                role,
                description,
                states: native,
            },
        ));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(number_text(4.0), "4");
        assert_eq!(number_text(0.1 + 0.2), "0.3");
        assert_eq!(number_text(-2.5), "-2.5");
        assert_eq!(number_text(f64::NAN), "NaN");
    }

    #[test]
    fn placeholders_of_embedded_objects_are_no_text() {
        assert_eq!(shown_text("a\u{fffc}b"), "ab");
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let text = bounded("ä".repeat(40_000));
        assert!(text.len() <= 64 * 1024 && text.chars().all(|character| character == 'ä'));
        assert_eq!(bounded("a\0b".into()), "ab");
    }
}
