//! Refs: how a caller names an element it has seen.
//!
//! Decided here: the grammar of refs, which nodes get one, and what is remembered of them. Not decided here: where maps are
//! stored; and how that very element is found again, which is [`crate::identity`], whose names are also offered here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::action::Capabilities;
use crate::error::{Error, Result};
use crate::filter::Filtered;
use crate::geometry::Rect;
use crate::identity::filled;
use crate::outline;
use crate::platform::SurfaceKind;
use crate::role::Role;
use crate::state::States;
use crate::tree::{Cut, Handle, NativeId, NativeIdKind, Node, NodeId, Tree};

pub use crate::identity::{
    Change, Evidence, Fast, How, Match, Resolution, Stale, candidate, identify, resolve_fast, search, subject,
};

/// Bytes that one text of an entry may have.
pub const MAX_TEXT: usize = 65_536;
/// Child indexes that the path of an entry may have.
pub const MAX_PATH: usize = 256;
/// Bytes that a stored map may have.
pub const MAX_MAP_BYTES: usize = 1024 * 1024;
/// Candidates that an ambiguity lists.
pub const MAX_CANDIDATES: usize = 10;

// ---------------------------------------------------------------------------------------------------------------------
// Grammar

/// A ref as a caller writes it: `@sq4m2:e14`.
///
/// ```
/// use agent_desktop_core::refs::RefTarget;
///
/// let target = RefTarget::parse("@sq4m2:e14", None)?;
/// assert_eq!((target.snapshot_id.as_str(), target.number), ("sq4m2", 14));
/// assert_eq!(RefTarget::parse("@e14", Some("sq4m2"))?, target);
/// assert!(RefTarget::parse("@e14", None).is_err()); // there is no implicit latest snapshot
/// # Ok::<(), agent_desktop_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RefTarget {
    /// The snapshot it belongs to.
    pub snapshot_id: String,
    /// Its number there, at least 1.
    pub number: u32,
}

impl RefTarget {
    /// A ref of this snapshot.
    pub fn new(snapshot_id: impl Into<String>, number: u32) -> RefTarget {
        RefTarget { snapshot_id: snapshot_id.into(), number }
    }

    /// Parses `@<snapshot>:e<N>`, or `@e<N>` together with an explicit snapshot id.
    ///
    /// # Errors
    /// `INVALID_ARGS`. Messages never repeat the text: it may be anything, and traces keep messages.
    pub fn parse(text: &str, explicit_snapshot: Option<&str>) -> Result<RefTarget> {
        if let Some(id) = explicit_snapshot {
            check_snapshot_id(id)?;
        }
        let body = text.strip_prefix('@').ok_or_else(|| wrong("a ref starts with @"))?;
        match (body.split_once(':'), explicit_snapshot) {
            (Some((snapshot_id, number)), explicit) => {
                check_snapshot_id(snapshot_id)?;
                let number = parse_number(number)?;
                match explicit {
                    Some(explicit) if explicit != snapshot_id => Err(Error::invalid(
                        "the ref belongs to another snapshot than the one given with --snapshot",
                    )
                    .hint("leave --snapshot out: a ref such as @sq4m2:e14 names its snapshot itself")),
                    _ => Ok(RefTarget::new(snapshot_id, number)),
                }
            }
            (None, Some(explicit)) => Ok(RefTarget::new(explicit, parse_number(body)?)),
            (None, None) => {
                let number = parse_number(body)?;
                Err(Error::invalid(format!("@e{number} does not say which snapshot it belongs to")).hint(format!(
                    "write the whole ref as the snapshot printed it, such as @sq4m2:e{number}, or add --snapshot ID"
                )))
            }
        }
    }

    /// The part that is unique within its snapshot: `@e14`, the key of a stored map.
    pub fn bare(&self) -> String {
        bare(self.number)
    }
}

impl fmt::Display for RefTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "@{}:e{}", self.snapshot_id, self.number)
    }
}

/// `@e14`: the key of a stored map, and the form of [`RefEntry::root_ref`].
pub fn bare(number: u32) -> String {
    format!("@e{number}")
}

/// The number in `@e14`, if that is what the text is.
pub fn parse_bare(text: &str) -> Option<u32> {
    text.strip_prefix('@').and_then(|body| parse_number(body).ok())
}

fn wrong(cause: &str) -> Error {
    Error::invalid(format!("not a ref: {cause}"))
        .hint("write it as the snapshot printed it, such as @sq4m2:e14")
}

fn parse_number(text: &str) -> Result<u32> {
    let digits = text.strip_prefix('e').ok_or_else(|| wrong("the number starts with e"))?;
    if digits.is_empty() || digits.len() > 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("after e come 1 to 10 digits"));
    }
    match digits.parse() {
        Ok(0) | Err(_) => Err(wrong("the number is between 1 and 4294967295")),
        Ok(number) => Ok(number),
    }
}

/// Whether this can be the id of a snapshot: 3 to 64 letters, digits, `_` or `-`.
///
/// Safe as a file name: no dot, no separator.
pub fn is_snapshot_id(text: &str) -> bool {
    (3..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Refuses what cannot be the id of a snapshot.
///
/// # Errors
/// `INVALID_ARGS`.
pub fn check_snapshot_id(text: &str) -> Result<()> {
    if is_snapshot_id(text) {
        Ok(())
    } else {
        Err(Error::invalid("not a snapshot id: it has 3 to 64 letters, digits, _ or -")
            .hint("take the id from the snapshot's reply, such as sq4m2"))
    }
}

/// Digits of a generated id. Every ref an agent reads carries the id, so it is short; 60 million are enough to tell the
/// 128 stored ones apart, and a taken one is made longer.
const ID_DIGITS: usize = 5;

/// Makes an id: `s` and base-36 digits of a 64-bit hash of what is handed in.
///
/// `is_taken` is asked whether an id is in use; then more digits are taken.
pub fn generate_snapshot_id(
    unix_nanos: u64,
    pid: u32,
    counter: u64,
    mut is_taken: impl FnMut(&str) -> bool,
) -> String {
    let mut round = 0;
    loop {
        let mut hash = [unix_nanos, u64::from(pid), counter, round].into_iter().fold(0, mix);
        let mut id = String::from("s");
        for digits in 1..=13 {
            let digit = (hash % 36) as u8;
            hash /= 36;
            id.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
            if digits >= ID_DIGITS && !is_taken(&id) {
                return id;
            }
        }
        round += 1;
    }
}

/// One round of splitmix64: every input bit reaches every output bit.
fn mix(state: u64, input: u64) -> u64 {
    let mut word = (state ^ input).wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

// ---------------------------------------------------------------------------------------------------------------------
// Entries

/// Everything remembered of an element when it got its ref; one entry of a stored map.
#[derive(Clone, Debug, PartialEq)]
pub struct RefEntry {
    /// Process of its application.
    pub pid: u32,
    /// Proof that it is the same process later.
    pub process_instance: String,
    /// What it is.
    pub role: Role,
    /// The platform's word for it, when `role` is `unknown`.
    pub native_role: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its value.
    pub value: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its identifier.
    pub native_id: Option<NativeId>,
    /// Where it was, if bounds were asked for.
    pub bounds: Option<Rect>,
    /// [`Rect::stable_hash`] of where it was; known even if `bounds` is not kept.
    pub bounds_hash: Option<u64>,
    /// Its states.
    pub states: States,
    /// What it offered.
    pub capabilities: Capabilities,
    /// Name of its application.
    pub source_app: String,
    /// Its window.
    pub source_window_id: String,
    /// Title of its window.
    pub source_window_title: String,
    /// [`Rect::stable_hash`] of the window's bounds.
    pub source_window_bounds_hash: Option<u64>,
    /// The kind of surface it was seen in.
    pub source_surface: SurfaceKind,
    /// The ref that was drilled into when this one was found (`@e3`).
    pub root_ref: Option<String>,
    /// Whether `path` starts at the window's root, rather than at `root_ref`'s element.
    pub path_is_absolute: bool,
    /// Child indexes in the application's tree.
    pub path: Vec<u32>,
    /// Where it was in the accessibility interface: the fast way back.
    pub handle: Handle,
}

impl RefEntry {
    /// Whether it keeps the contract's limits; an entry that does not gets no ref.
    pub fn is_within_limits(&self) -> bool {
        self.pid > 0
            && !self.process_instance.is_empty()
            && self.path.len() <= MAX_PATH
            && self.texts().all(|text| text.len() <= MAX_TEXT)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        [
            self.native_role.as_deref(),
            self.name.as_deref(),
            self.value.as_deref(),
            self.description.as_deref(),
            self.native_id.as_ref().map(|id| id.value.as_str()),
            self.root_ref.as_deref(),
        ]
        .into_iter()
        .flatten()
        .chain([
            self.process_instance.as_str(),
            self.source_app.as_str(),
            self.source_window_id.as_str(),
            self.source_window_title.as_str(),
            self.handle.as_str(),
        ])
    }

    /// Bytes it takes in a stored map: its compact JSON with absent members left out, rounded up a little.
    pub fn estimated_bytes(&self) -> usize {
        // Key, quotes, colon and comma of each member; the word or number behind it where it is not a text.
        const FIXED: usize = 340;
        const PER_OPTIONAL_TEXT: usize = 18;
        FIXED
            + self.texts().map(|text| json_len(text) + PER_OPTIONAL_TEXT).sum::<usize>()
            + self.native_id.as_ref().map_or(0, |_| 48)
            + self.bounds.map_or(0, |_| 130)
            + self.states.iter().map(|state| state.as_str().len() + 3).sum::<usize>()
            + self.capabilities.iter().map(|capability| capability.as_str().len() + 3).sum::<usize>()
            + self.path.iter().map(|index| index.checked_ilog10().unwrap_or(0) as usize + 2).sum::<usize>()
    }

    /// What it is called in messages: `button "Save"`.
    pub fn description_for_people(&self) -> String {
        outline::describe(self.role, self.name.as_deref())
    }
}

/// Length of a text inside JSON quotes.
fn json_len(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
            0..=0x1f | 0x7f => 6,
            _ => 1,
        })
        .sum()
}

/// Which nodes get a ref only so that a caller can drill into what was cut below them.
///
/// Every branch that was cut gets an anchor: the cut node itself, or else its nearest ancestor that can be found again,
/// unless that node has a ref anyway. The contract has no anchors inside a drill-down; here they are, because some
/// trees are deeper than two drills.
pub fn anchors(tree: &Tree) -> BTreeSet<NodeId> {
    let mut anchors = BTreeSet::new();
    for (id, cut) in tree.iter().filter_map(|(id, node)| node.cut.map(|cut| (id, cut))) {
        // What a table makes on demand is reached by scrolling it, not by drilling into what is around it.
        let steps = if cut == Cut::Virtual { 1 } else { usize::MAX };
        let anchor = std::iter::once(id)
            .chain(tree.ancestors(id))
            .take(steps)
            .find(|&id| tree.node(id).is_operable() || can_be_found_again(tree.node(id)));
        if let Some(anchor) = anchor.filter(|&id| !tree.node(id).is_operable()) {
            anchors.insert(anchor);
        }
    }
    anchors
}

fn can_be_found_again(node: &Node) -> bool {
    filled(node.name.as_deref()).is_some()
        || filled(node.description.as_deref()).is_some()
        || node.native_id.as_ref().is_some_and(NativeId::is_author_given)
        || node.bounds.is_some()
}

impl NativeId {
    /// Whether the author of the application chose it, so that it outlives restarts and says which element this is.
    ///
    /// An AT-SPI object path or a UIA runtime id is a toolkit's serial number: another element may carry it tomorrow,
    /// so it never outweighs text.
    pub const fn is_author_given(&self) -> bool {
        matches!(
            self.kind,
            NativeIdKind::AxIdentifier | NativeIdKind::AxDomIdentifier | NativeIdKind::AutomationId
        )
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Maps

/// What entries need to know and a tree does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocationContext {
    /// Process of the application.
    pub pid: u32,
    /// Proof that it is the same process later.
    pub process_instance: String,
    /// Name of the application.
    pub source_app: String,
    /// The window.
    pub source_window_id: String,
    /// Its title.
    pub source_window_title: String,
    /// [`Rect::stable_hash`] of its bounds.
    pub source_window_bounds_hash: Option<u64>,
    /// The kind of surface that was observed.
    pub source_surface: SurfaceKind,
    /// Whether entries keep the bounds themselves, and not only their hash.
    pub include_bounds: bool,
    /// Bytes the whole map may take; [`MAX_MAP_BYTES`] less what the store adds.
    pub byte_budget: usize,
}

/// Refs of one snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RefMap {
    /// The entries by number.
    pub entries: BTreeMap<u32, RefEntry>,
    /// The highest number ever given out in this snapshot; numbers are never used twice.
    pub counter: u32,
}

/// Which node got which number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issued {
    numbers: BTreeMap<NodeId, u32>,
    /// Nodes that should have a ref and have none, because the map is full.
    pub left_out: u32,
}

impl Issued {
    /// The number of a node, if it has one.
    pub fn number(&self, id: NodeId) -> Option<u32> {
        self.numbers.get(&id).copied()
    }

    /// Nodes and their numbers, in document order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, u32)> {
        self.numbers.iter().map(|(&id, &number)| (id, number))
    }

    /// Whether the map was cut; the reply then says so.
    pub fn is_cut(&self) -> bool {
        self.left_out > 0
    }
}

impl RefMap {
    /// A map for a new snapshot, with a ref for every operable node and every drill anchor of the view.
    ///
    /// A map that would become too large is cut: nodes whose entry does not fit get no ref.
    pub fn allocate(tree: &Tree, view: &Filtered, context: &AllocationContext) -> (RefMap, Issued) {
        let mut map = RefMap::default();
        let issued = map.issue(tree, view.kept().iter().copied(), view.anchors(), None, context);
        (map, issued)
    }

    /// A map for the chosen nodes only, as `find` makes it: operable ones get a ref, in the order given.
    pub fn allocate_for(tree: &Tree, nodes: &[NodeId], context: &AllocationContext) -> (RefMap, Issued) {
        let mut map = RefMap::default();
        let issued = map.issue(tree, nodes.iter().copied(), &BTreeSet::new(), None, context);
        (map, issued)
    }

    /// Replaces what was found by drilling into `root` before with what is there now.
    ///
    /// `tree` is what was observed below that element; its root keeps the ref it has. Entries found by other drills, and
    /// those of the first observation, stay. Returns `None`, with nothing changed, if there is no such ref.
    pub fn drill(
        &mut self,
        root: u32,
        tree: &Tree,
        view: &Filtered,
        context: &AllocationContext,
    ) -> Option<Issued> {
        if !self.entries.contains_key(&root) {
            return None;
        }
        let root_ref = bare(root);
        self.entries.retain(|_, entry| entry.root_ref.as_deref() != Some(&root_ref));
        Some(self.issue(tree, view.kept().iter().copied(), view.anchors(), Some(root), context))
    }

    fn issue(
        &mut self,
        tree: &Tree,
        nodes: impl Iterator<Item = NodeId>,
        anchors: &BTreeSet<NodeId>,
        drilled: Option<u32>,
        context: &AllocationContext,
    ) -> Issued {
        let mut issued = Issued::default();
        let mut bytes = self.estimated_bytes();
        let base = drilled.and_then(|number| self.entries.get(&number)).cloned();
        for id in nodes {
            if let Some(number) = drilled.filter(|_| tree.root() == Some(id)) {
                issued.numbers.insert(id, number);
                continue;
            }
            if issued.numbers.contains_key(&id) {
                continue;
            }
            let node = tree.node(id);
            if !node.is_operable() && !anchors.contains(&id) {
                continue;
            }
            let entry = entry_for(tree, id, drilled, base.as_ref(), context);
            if !entry.is_within_limits() {
                continue;
            }
            let size = entry.estimated_bytes();
            let Some(number) = self.counter.checked_add(1).filter(|_| bytes + size <= context.byte_budget)
            else {
                issued.left_out += 1;
                continue;
            };
            bytes += size;
            self.counter = number;
            self.entries.insert(number, entry);
            issued.numbers.insert(id, number);
        }
        issued
    }

    /// Bytes the stored map takes, rounded up a little.
    pub fn estimated_bytes(&self) -> usize {
        64 + self.entries.values().map(RefEntry::estimated_bytes).sum::<usize>()
    }

    /// Whether a node is the element of another ref than `number`.
    ///
    /// Of two equal buttons one may vanish; the other is then the only match for both refs. It must not be taken for
    /// the one that is gone.
    pub fn is_claimed(&self, node: &Node, number: u32) -> bool {
        self.entries.iter().any(|(&other, entry)| {
            other != number && entry.handle == node.handle && identify(entry, node).is_same()
        })
    }
}

fn entry_for(
    tree: &Tree,
    id: NodeId,
    drilled: Option<u32>,
    base: Option<&RefEntry>,
    context: &AllocationContext,
) -> RefEntry {
    let node = tree.node(id);
    let mut path = base.map(|base| base.path.clone()).unwrap_or_default();
    path.extend(tree.path(id));
    RefEntry {
        pid: context.pid,
        process_instance: context.process_instance.clone(),
        role: node.role,
        native_role: node.native_role.clone(),
        name: node.name.clone(),
        value: node.value.clone(),
        description: node.description.clone(),
        native_id: node.native_id.clone(),
        bounds: node.bounds.filter(|_| context.include_bounds),
        bounds_hash: node.bounds.map(|bounds| bounds.stable_hash()),
        states: node.states,
        // An anchor is there to be drilled into, not to be acted on.
        capabilities: if node.is_operable() { node.capabilities } else { Capabilities::NONE },
        source_app: context.source_app.clone(),
        source_window_id: context.source_window_id.clone(),
        source_window_title: context.source_window_title.clone(),
        source_window_bounds_hash: context.source_window_bounds_hash,
        source_surface: context.source_surface,
        root_ref: drilled.map(bare),
        path_is_absolute: base.is_none_or(|base| base.path_is_absolute),
        path,
        handle: node.handle.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::filter::Filter;
    use crate::sample::{context, named, trees};
    use proptest::prelude::*;

    fn at(handle: &str, node: Node) -> Node {
        Node { handle: Handle::new(handle), ..node }
    }

    fn placed(x: i32, node: Node) -> Node {
        Node { bounds: Some(Rect::from_pixels(x, 0, 10, 10)), ..node }
    }

    /// A window with these children.
    fn window(children: Vec<Node>) -> Tree {
        let mut tree = Tree::default();
        let root = tree.push(None, at("root", named(Role::Window, "Inbox")));
        for (index, child) in children.into_iter().enumerate() {
            tree.push(Some(root), Node { index_in_parent: index as u32, ..child });
        }
        tree
    }

    fn map_of(tree: &Tree) -> RefMap {
        RefMap::allocate(tree, &Filtered::all(tree), &context()).0
    }

    /// The entry that the first child got.
    fn entry_of(node: Node) -> RefEntry {
        map_of(&window(vec![node])).entries.remove(&1).expect("the node gets a ref")
    }

    // --- Grammar

    #[test]
    fn refs_that_are_none_say_why_and_do_not_repeat_the_text() {
        for (text, snapshot) in [
            ("", None),
            ("e1", None),
            ("@", None),
            ("@e", Some("sq4m2")),
            ("@e0", Some("sq4m2")),
            ("@e4294967296", Some("sq4m2")),
            ("@e00000000001", Some("sq4m2")),
            ("@e+1", Some("sq4m2")),
            ("@e1", None),
            ("@e1", Some("../../etc")),
            ("@sq4m2:e1", Some("other")),
            ("@sq:e1", None),
            ("@sq4m2:1", None),
            ("@sq4m2:e1:e2", None),
            ("@sq4.m2:e1", None),
            ("@sq4m2:e1 ", None),
            ("@sq4m2:e\u{661}", None),
        ] {
            let error = RefTarget::parse(text, snapshot).expect_err(text);
            assert_eq!(error.code(), ErrorCode::InvalidArgs, "{text:?}");
            assert!(error.get_hint().is_some(), "{text:?}");
        }
        let secret = "@hunter2".repeat(1000);
        assert!(!RefTarget::parse(&secret, None).unwrap_err().to_string().contains("hunter2"));
    }

    #[test]
    fn leading_zeros_and_an_equal_explicit_snapshot_are_fine() {
        assert_eq!(RefTarget::parse("@sq4m2:e007", Some("sq4m2")).unwrap().to_string(), "@sq4m2:e7");
        assert_eq!(RefTarget::parse("@e4294967295", Some("abc")).unwrap().number, u32::MAX);
    }

    #[test]
    fn generated_ids_are_short_valid_and_never_taken() {
        let first = generate_snapshot_id(1, 2, 3, |_| false);
        assert_eq!(first.len(), 1 + ID_DIGITS);
        let second = generate_snapshot_id(1, 2, 3, |id| id == first);
        assert_ne!(second, first);
        assert!(second.starts_with(&first));
        assert!(is_snapshot_id(&second));
        let mut asked = 0;
        generate_snapshot_id(1, 2, 3, |_| {
            asked += 1;
            asked < 40 // more than one hash has digits for
        });
    }

    proptest! {
        #[test]
        fn what_is_printed_parses(id in "[A-Za-z0-9_-]{3,64}", number in 1..=u32::MAX) {
            let target = RefTarget::new(id, number);
            prop_assert_eq!(RefTarget::parse(&target.to_string(), None).unwrap(), target.clone());
            prop_assert_eq!(RefTarget::parse(&target.bare(), Some(&target.snapshot_id)).unwrap(), target);
        }

        #[test]
        fn parsing_never_panics(text in "@?[a-z0-9:@e]{0,9}|\\PC{0,20}") {
            if let Ok(target) = RefTarget::parse(&text, None) {
                prop_assert!(is_snapshot_id(&target.snapshot_id) && target.number > 0);
            }
        }

        #[test]
        fn generated_ids_are_valid(nanos: u64, pid: u32, counter: u64) {
            prop_assert!(is_snapshot_id(&generate_snapshot_id(nanos, pid, counter, |_| false)));
        }
    }

    // --- Allocation

    #[test]
    fn numbers_follow_the_document_and_anchors_offer_nothing() {
        let mut list = named(Role::List, "Mail");
        list.cut = Some(Cut::Depth);
        list.capabilities.insert(crate::action::Capability::SetFocus);
        let tree = window(vec![named(Role::Button, "New"), named(Role::StaticText, "Hello"), list]);
        let map = map_of(&tree);
        assert_eq!(map.counter, 2);
        assert_eq!(map.entries[&1].name.as_deref(), Some("New"));
        assert_eq!(map.entries[&2].name.as_deref(), Some("Mail"));
        assert!(map.entries[&2].capabilities.is_empty());
        assert_eq!(map.entries[&2].path, [2]);
    }

    #[test]
    fn a_full_map_is_cut_and_says_so() {
        let mut big = named(Role::Button, "Big");
        big.description = Some("x".repeat(3000));
        let tree = window(vec![named(Role::Button, "New"), big, named(Role::Button, "Save")]);
        let context = AllocationContext { byte_budget: 2000, ..context() };
        let (map, issued) = RefMap::allocate(&tree, &Filtered::all(&tree), &context);
        assert_eq!((map.entries.len(), issued.left_out), (2, 1));
        assert_eq!(map.entries[&2].name.as_deref(), Some("Save"));
        assert!(map.estimated_bytes() <= 2000);
    }

    #[test]
    fn entries_over_the_limits_get_no_ref() {
        let tree = window(vec![named(Role::Button, &"x".repeat(MAX_TEXT + 1)), named(Role::Button, "Save")]);
        let map = map_of(&tree);
        assert_eq!(map.entries.len(), 1);
        let (map, _) =
            RefMap::allocate(&tree, &Filtered::all(&tree), &AllocationContext { pid: 0, ..context() });
        assert!(map.entries.is_empty());
    }

    #[test]
    fn a_drill_replaces_its_own_refs_and_no_others() {
        let mut list = named(Role::List, "Mail");
        list.cut = Some(Cut::Depth);
        let tree = window(vec![named(Role::Button, "New"), list.clone()]);
        let mut map = map_of(&tree);
        let mut below = Tree::default();
        list.cut = None;
        let root = below.push(None, list);
        below.push(Some(root), Node { index_in_parent: 3, ..named(Role::Option, "Letter") });
        let view = Filtered::all(&below);
        assert_eq!(map.drill(9, &below, &view, &context()), None);
        let issued = map.drill(2, &below, &view, &context()).unwrap();
        assert_eq!(issued.iter().collect::<Vec<_>>(), [(0, 2), (1, 3)]);
        assert_eq!(map.entries[&3].path, [1, 3]);
        assert_eq!(map.entries[&3].root_ref.as_deref(), Some("@e2"));
        map.drill(2, &below, &view, &context()).unwrap();
        assert_eq!(map.entries.keys().copied().collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn estimates_are_a_little_above_the_json() {
        // The longest form of an entry as the store writes it, with every member present.
        let entry = entry_of(placed(1, named(Role::Button, "Save \"as\"\n")));
        let json = concat!(
            r#""@e1":{"pid":42,"process_instance":"p:42:7","role":"button","name":"Save \"as\"\n","#,
            r#""bounds_hash":18446744073709551615,"states":[],"available_actions":[],"source_app":"Notes","#,
            r#""source_window_id":"w-1","source_window_title":"Inbox","path_is_absolute":true,"path":[0],"handle":""},"#
        );
        assert!(entry.estimated_bytes() >= json.len());
        assert!(entry.estimated_bytes() < json.len() + 300);
    }

    proptest! {
        #[test]
        fn every_cut_branch_can_be_drilled(tree in trees(), interactive_only: bool, compact: bool) {
            let view = Filtered::new(&tree, Filter { interactive_only, compact, ..Filter::default() });
            let (map, issued) = RefMap::allocate(&tree, &view, &context());
            let numbers: Vec<u32> = issued.iter().map(|(_, number)| number).collect();
            prop_assert_eq!(&numbers, &(1..=map.counter).collect::<Vec<_>>());
            for (id, node) in tree.iter().filter(|(_, node)| matches!(node.cut, Some(Cut::Depth | Cut::Budget))) {
                let line: Vec<NodeId> = std::iter::once(id).chain(tree.ancestors(id)).collect();
                let expects = line.iter().any(|&id| tree.node(id).is_operable() || can_be_found_again(tree.node(id)));
                prop_assert_eq!(line.iter().any(|&id| issued.number(id).is_some()), expects, "{:?}", node);
            }
        }

        /// A ref found in an unchanged tree is the same node.
        #[test]
        fn an_unchanged_tree_gives_the_same_nodes(tree in trees()) {
            let (map, issued) = RefMap::allocate(&tree, &Filtered::all(&tree), &context());
            for (id, number) in issued.iter() {
                let found = search(&map.entries[&number], &tree, true, true, |node| map.is_claimed(node, number));
                let can_be_told = identify(&map.entries[&number], tree.node(id)).is_same();
                match found {
                    Resolution::Found(found, _) => prop_assert_eq!(found, id),
                    other => prop_assert!(!can_be_told, "{:?}", other),
                }
            }
        }

        /// When a branch vanishes, no ref resolves to the element of another ref.
        ///
        /// An element that never had a ref may still be taken for one that is gone and looks the same: nothing tells.
        #[test]
        fn two_refs_never_become_one(tree in trees(), gone in 1..40_u32) {
            let (map, _) = RefMap::allocate(&tree, &Filtered::all(&tree), &context());
            // The tree without one branch.
            let removed = if gone < tree.len() as u32 { tree.subtree(gone) } else { 0..0 };
            let mut after = Tree::default();
            let mut new_ids = vec![0; tree.len()];
            for (id, node) in tree.iter().filter(|(id, _)| !removed.contains(id)) {
                let parent = node.parent.map(|parent| new_ids[parent as usize]);
                new_ids[id as usize] = after.push(parent, node.clone());
            }
            let mut owners = BTreeMap::new();
            for (&number, entry) in &map.entries {
                if let Resolution::Found(id, _) =
                    search(entry, &after, true, true, |node| map.is_claimed(node, number))
                    && after.node(id).is_operable()
                    && after.node(id).gaps.is_empty()
                {
                    prop_assert_eq!(owners.insert(id, number), None, "two refs for {:?}", after.node(id));
                }
            }
        }
    }
}
