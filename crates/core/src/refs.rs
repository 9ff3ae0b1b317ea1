//! Refs: how a caller names an element it has seen, and how that very element is found again.
//!
//! Decided here: the grammar of refs, which nodes get one, what is remembered of them, when two observations are of
//! the same element, and what a search that does not end in exactly one element is called. Not decided here: where maps
//! are stored, and how a live element is read.
//!
//! The rule above all others: a ref resolves to the element it was given for, or to nothing. Where the contract leaves
//! room, the stricter reading is taken; each such place says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::action::Capabilities;
use crate::error::{Error, ErrorCode, Fact, Result, facts};
use crate::filter::Filtered;
use crate::geometry::Rect;
use crate::outline;
use crate::platform::{Reading, SurfaceKind};
use crate::role::Role;
use crate::state::States;
use crate::tree::{Cut, Handle, NativeId, NativeIdKind, Node, NodeId, Tree};

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

    /// Its name, if that says something about which element it is.
    fn stable_name(&self) -> Option<&str> {
        stable_name(self.role, self.name.as_deref(), self.value.as_deref())
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

// ---------------------------------------------------------------------------------------------------------------------
// Identity

/// What tells that a node is not the element remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its role is another one now.
    Role {
        /// The role it has now.
        now: Role,
    },
    /// The author's identifier is found on a node of another role.
    NativeIdOnOtherRole {
        /// The role of that node.
        now: Role,
    },
    /// The author's identifier is another one, or gone.
    NativeId,
    /// Its name is another one.
    Name {
        /// The name it has now.
        now: String,
    },
    /// Its value, which does not change in normal use, is another one.
    Value,
    /// Its description is another one.
    Description,
    /// It has no text to tell it by, and it is elsewhere.
    Bounds,
    /// It had no text and has some now, and it is not the same object.
    TextAppeared,
    /// Nothing identifies it: no identifier, no text, no bounds.
    Unidentifiable,
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Role { now } => write!(formatter, "it is a {now} now"),
            Change::NativeIdOnOtherRole { now } => write!(formatter, "its identifier belongs to a {now} now"),
            Change::NativeId => formatter.write_str("its identifier is another one now"),
            Change::Name { now } => {
                write!(formatter, "it is named {} now", outline::quote(now, outline::MESSAGE_TEXT))
            }
            Change::Value => formatter.write_str("its text is another one now"),
            Change::Description => formatter.write_str("its description is another one now"),
            Change::Bounds => formatter.write_str("it has no text to tell it by, and is not where it was"),
            Change::TextAppeared => formatter.write_str("it had no text and has some now"),
            Change::Unidentifiable => {
                formatter.write_str("it has neither text nor place by which to tell it")
            }
        }
    }
}

/// Which evidence an identity rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The author's identifier.
    NativeId,
    /// Name, stable value or description.
    Text,
    /// Nothing but role and place.
    Bounds,
}

/// Whether a node is the element remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// It is, by this evidence.
    Same(Evidence),
    /// It is not, for this reason.
    Different(Change),
    /// What would tell could not be read.
    Unknown,
}

impl Match {
    /// Whether it is the element, for certain.
    pub const fn is_same(&self) -> bool {
        matches!(self, Match::Same(_))
    }
}

fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

/// Whether two texts say the same number (`50` and `50.0`), or are equal.
fn says_the_same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    one.trim() == other.trim()
        || matches!((number(one), number(other)), (Some(one), Some(other)) if (one - other).abs() < 1e-9)
}

/// A name that merely repeats a value which changes in normal use does not identify anything.
fn stable_name<'a>(role: Role, name: Option<&'a str>, value: Option<&str>) -> Option<&'a str> {
    let name = filled(name)?;
    let repeats = role.has_mutable_value() && filled(value).is_some_and(|value| says_the_same(name, value));
    (!repeats).then_some(name)
}

/// Whether the value of such an element is part of what it is.
///
/// Stricter than the contract's list of roles: meters, live regions and everything one can type into change as well.
const fn has_stable_value(role: Role, capabilities: Capabilities) -> bool {
    use crate::action::Capability;
    !(role.has_mutable_value()
        || role.is_numeric()
        || matches!(role, Role::Timer | Role::Status | Role::Log | Role::Marquee)
        || capabilities.has(Capability::SetValue)
        || capabilities.has(Capability::TypeText))
}

/// Whether things of this role are made from a template, row by row, so that they share one identifier and toolkits
/// reuse the object for another row.
const fn is_templated(role: Role) -> bool {
    matches!(role, Role::Cell | Role::Row | Role::Option | Role::TreeItem)
}

/// Whether `candidate` is the element remembered in `entry`; the contract's identity table.
///
/// The author's identifier decides alone, except on rows and cells, whose text must agree as well: they come from one
/// template and are reused. Otherwise the first of name, stable value and description that both have decides. If there is
/// none, role and bounds must agree.
pub fn identify(entry: &RefEntry, candidate: &Node) -> Match {
    let same_role = entry.role == candidate.role
        && (entry.role != Role::Unknown || entry.native_role == candidate.native_role);
    let strong = entry.native_id.as_ref().filter(|id| id.is_author_given());
    if !same_role {
        if candidate.gaps.basics && candidate.role == Role::Unknown {
            return Match::Unknown;
        }
        let now = candidate.role;
        return Match::Different(if strong.is_some() && strong == candidate.native_id.as_ref() {
            Change::NativeIdOnOtherRole { now }
        } else {
            Change::Role { now }
        });
    }
    if let Some(strong) = strong {
        if candidate.native_id.as_ref() == Some(strong) {
            return match identify_by_text(entry, candidate) {
                Some(verdict @ (Match::Different(_) | Match::Unknown)) if is_templated(entry.role) => verdict,
                _ => Match::Same(Evidence::NativeId),
            };
        }
        return if candidate.gaps.native_id { Match::Unknown } else { Match::Different(Change::NativeId) };
    }
    identify_by_text(entry, candidate).unwrap_or_else(|| identify_by_bounds(entry, candidate))
}

/// `None`: there is no text that both have.
fn identify_by_text(entry: &RefEntry, candidate: &Node) -> Option<Match> {
    let compare = |stored: Option<&str>, live: Option<&str>, unreadable: bool, change: fn(&str) -> Change| {
        let stored = filled(stored)?;
        match filled(live) {
            Some(live) if live == stored => Some(Match::Same(Evidence::Text)),
            Some(live) => Some(Match::Different(change(live))),
            None if unreadable => Some(Match::Unknown),
            None => None, // an empty name counts as missing: the next field decides
        }
    };
    let live_name = stable_name(candidate.role, candidate.name.as_deref(), candidate.value.as_deref());
    compare(entry.stable_name(), live_name, candidate.gaps.basics, |now| Change::Name { now: now.to_owned() })
        .or_else(|| {
            let is_stable = has_stable_value(entry.role, entry.capabilities)
                && has_stable_value(candidate.role, candidate.capabilities);
            let stored = entry.value.as_deref().filter(|_| is_stable);
            compare(stored, candidate.value.as_deref(), candidate.gaps.value, |_| Change::Value)
        })
        .or_else(|| {
            let live = candidate.description.as_deref();
            compare(entry.description.as_deref(), live, candidate.gaps.basics, |_| Change::Description)
        })
}

fn identify_by_bounds(entry: &RefEntry, candidate: &Node) -> Match {
    let was_called = entry.stable_name().is_some() || filled(entry.description.as_deref()).is_some();
    let is_called = stable_name(candidate.role, candidate.name.as_deref(), candidate.value.as_deref())
        .is_some()
        || filled(candidate.description.as_deref()).is_some();
    match (entry.bounds_hash, candidate.bounds) {
        _ if candidate.gaps.basics => Match::Unknown,
        (Some(stored), Some(live)) if stored == live.stable_hash() => {
            // Place and role alone do not prove it when one of them is called something and the other is not.
            if is_called && !was_called && entry.handle != candidate.handle {
                Match::Different(Change::TextAppeared)
            } else {
                Match::Same(Evidence::Bounds)
            }
        }
        (Some(_), None) if candidate.gaps.bounds => Match::Unknown,
        (Some(_), _) => Match::Different(Change::Bounds),
        (None, _) => Match::Different(Change::Unidentifiable),
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Resolution

/// What the stored handle alone tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Fast {
    /// It is the element: no search is needed.
    Found,
    /// The window has to be searched. If a living node was found at the handle, this is how it differs; `None`: nothing
    /// lives there.
    Search(Option<Change>),
    /// The application did not answer.
    Unanswered,
}

/// The fast path: looks at what lives at the stored handle.
///
/// A handle whose node still has the same identity is the very element, even where a twin exists elsewhere. A node with
/// another identity is not: toolkits reuse handles. Then only a search can tell.
pub fn resolve_fast(entry: &RefEntry, live: &Reading) -> Fast {
    match live {
        Reading::Unanswered => Fast::Unanswered,
        Reading::Gone => Fast::Search(None),
        Reading::Live(node) => match identify(entry, node) {
            // An identifier alone is not enough here: a list row may have been reused for another item, and its
            // buttons with it. The search sees whether the identifier is unique.
            Match::Same(Evidence::NativeId) => match identify_by_text(entry, node) {
                Some(Match::Different(change)) => Fast::Search(Some(change)),
                Some(Match::Unknown) => Fast::Unanswered,
                Some(Match::Same(_)) | None => Fast::Found,
            },
            Match::Same(_) => Fast::Found,
            // An unnamed field or paragraph that moved, or whose text was edited, is still the same object. Rows and cells are
            // not so: toolkits put other content into the same object.
            Match::Different(Change::Bounds | Change::Unidentifiable) if !is_templated(entry.role) => {
                Fast::Found
            }
            Match::Different(change) => Fast::Search(Some(change)),
            Match::Unknown => Fast::Unanswered,
        },
    }
}

/// What an element was found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its handle, with the same identity.
    Handle,
    /// Its path, with the same identity and place, in a tree that was not read completely.
    Path,
    /// It is the only one with this identity.
    Identity,
    /// Of several with this identity, it is the only one at this place.
    Bounds,
}

/// Why a ref is stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// The application was restarted, or another process has its number.
    Restarted,
    /// The whole window was read, and it is not there.
    Removed,
    /// What lives at its handle is something else by now.
    Changed(Change),
    /// The only element like it has a ref of its own: this one's is gone.
    Claimed,
    /// The map of the snapshot has no such number.
    NotInSnapshot,
}

impl Stale {
    /// The word for `details.kind`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Stale::Restarted => "process_changed",
            Stale::Changed(Change::NativeIdOnOtherRole { .. }) => "native_identifier_role_reuse",
            Stale::Removed | Stale::Changed(_) | Stale::Claimed => "resolution_complete_absence",
            Stale::NotInSnapshot => "ref_not_in_snapshot",
        }
    }

    /// The word for `details.reason`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Stale::Restarted => "application_restarted",
            Stale::Removed | Stale::Claimed => "removed",
            Stale::Changed(Change::Role { .. } | Change::NativeIdOnOtherRole { .. }) => "role_changed",
            Stale::Changed(Change::Name { .. }) => "renamed",
            Stale::Changed(Change::Bounds | Change::Unidentifiable) => "moved_without_identity",
            Stale::Changed(_) => "changed",
            Stale::NotInSnapshot => "not_in_snapshot",
        }
    }

    /// The error to report, `entry` being what was remembered.
    pub fn error(&self, target: &RefTarget, entry: Option<&RefEntry>) -> Error {
        let subject = subject(target, entry);
        let message = match self {
            Stale::Restarted => format!("{subject} is stale: its application was restarted or ended"),
            Stale::Removed => format!("{subject} is stale: it is no longer in its window"),
            Stale::Changed(change) => format!("{subject} is stale: {change}"),
            Stale::Claimed => {
                format!("{subject} is stale: it is gone, and the one like it that is left has another ref")
            }
            Stale::NotInSnapshot => format!("snapshot {} has no ref e{}", target.snapshot_id, target.number),
        };
        Error::new(ErrorCode::StaleRef, message)
            .kind(self.kind())
            .detail("reason", self.reason())
            .retryable(false)
            .hint("take a new snapshot and use the ref it gives")
    }
}

/// `e12 (button "Save")`, or `e12`.
pub fn subject(target: &RefTarget, entry: Option<&RefEntry>) -> String {
    match entry {
        Some(entry) => format!("e{} ({})", target.number, entry.description_for_people()),
        None => format!("e{}", target.number),
    }
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// The element, and what it was found by.
    Found(NodeId, How),
    /// It is not there, for certain.
    Stale(Stale),
    /// Several elements are equally like it.
    Ambiguous {
        /// The first of them, in document order; at most [`MAX_CANDIDATES`].
        candidates: Vec<NodeId>,
        /// How many there are.
        count: usize,
    },
    /// Too little could be read to decide; passing.
    Unreadable {
        /// Whether facts of some nodes are missing, rather than nodes.
        identity: bool,
    },
}

impl Resolution {
    /// The error to report, unless the element was found.
    pub fn error(&self, target: &RefTarget, entry: &RefEntry, tree: &Tree) -> Option<Error> {
        match self {
            Resolution::Found(..) => None,
            Resolution::Stale(stale) => Some(stale.error(target, Some(entry))),
            Resolution::Ambiguous { candidates, count } => {
                let summaries: Vec<Fact> = candidates.iter().map(|&id| candidate(tree, id)).collect();
                Some(
                    Error::new(
                        ErrorCode::AmbiguousTarget,
                        format!(
                            "{} may be any of {count} elements that look the same",
                            subject(target, Some(entry))
                        ),
                    )
                    .detail("candidate_count", *count)
                    .detail("candidates", Fact::List(summaries))
                    .retryable(true)
                    .hint("take a new snapshot: it gives each of them a ref of its own"),
                )
            }
            Resolution::Unreadable { identity } => Some(
                Error::new(
                    ErrorCode::AppUnresponsive,
                    format!(
                        "{} could not be looked for: {}",
                        subject(target, Some(entry)),
                        if *identity {
                            "the application did not answer for some elements"
                        } else {
                            "the window could not be read completely"
                        }
                    ),
                )
                .kind(if *identity {
                    "resolution_identity_unknown"
                } else {
                    "resolution_traversal_incomplete"
                })
                .retryable(true)
                .hint("retry; if it stays so, allow more time with --timeout-ms"),
            ),
        }
    }
}

/// Summary of one candidate, for `details.candidates`.
pub fn candidate(tree: &Tree, id: NodeId) -> Fact {
    let node = tree.node(id);
    let mut entries = vec![
        ("document_order".to_owned(), Fact::from(id)),
        ("role".to_owned(), Fact::from(node.role.as_str())),
        ("name".to_owned(), Fact::from(outline::cut(&node.label(), outline::MESSAGE_TEXT))),
    ];
    if let Some(bounds) = node.bounds {
        entries.push((
            "bounds".to_owned(),
            facts([
                ("x", bounds.x.into()),
                ("y", bounds.y.into()),
                ("width", bounds.width.into()),
                ("height", bounds.height.into()),
            ]),
        ));
    }
    Fact::Map(entries)
}

/// Looks for the element in what was observed of its window; the contract's resolution table.
///
/// `complete`: the tree holds all of the window. `window_verified`: it is the very window the ref was given in.
/// `is_claimed`: whether a node is known to be the element of another ref (see [`RefMap::is_claimed`]).
///
/// One place is stricter than the contract: a path alone never picks one of several, because after the removal of the
/// first of two equal rows the second stands on its path.
pub fn search(
    entry: &RefEntry,
    tree: &Tree,
    complete: bool,
    window_verified: bool,
    is_claimed: impl Fn(&Node) -> bool,
) -> Resolution {
    let mut same = Vec::new();
    let mut unknown = 0_usize;
    let mut at_handle = None;
    let mut reused = None;
    for (id, node) in tree.iter() {
        let verdict = identify(entry, node);
        match &verdict {
            Match::Same(evidence) => {
                // Several elements may carry one identifier; text then tells them apart.
                let contradicted = matches!(identify_by_text(entry, node), Some(Match::Different(_)));
                same.push((id, *evidence, contradicted));
            }
            Match::Unknown => unknown += 1,
            Match::Different(change @ Change::NativeIdOnOtherRole { .. }) => reused = Some(change.clone()),
            Match::Different(_) => {}
        }
        if node.handle == entry.handle
            && let Match::Different(change) = verdict
        {
            at_handle = Some(change);
        }
    }
    let is_unique = same.len() == 1;
    let agrees = |&&(_, _, contradicted): &&(NodeId, Evidence, bool)| is_unique || !contradicted;
    if let Some(&(id, ..)) = same.iter().filter(agrees).find(|(id, ..)| tree.node(*id).handle == entry.handle)
    {
        return Resolution::Found(id, How::Handle);
    }
    let is_there = |id: NodeId| {
        tree.node(id).bounds.is_some_and(|bounds| Some(bounds.stable_hash()) == entry.bounds_hash)
    };
    let found = |id: NodeId, how: How| {
        if is_claimed(tree.node(id)) {
            Resolution::Stale(at_handle.clone().map_or(Stale::Claimed, Stale::Changed))
        } else {
            Resolution::Found(id, how)
        }
    };
    if !complete || unknown > 0 {
        let on_path = entry.path_is_absolute.then(|| tree.at_path(&entry.path)).flatten();
        return match on_path {
            Some(id)
                if window_verified
                    && is_there(id)
                    && same.iter().filter(agrees).any(|&(same, ..)| same == id) =>
            {
                found(id, How::Path)
            }
            _ => Resolution::Unreadable { identity: complete },
        };
    }
    match same.as_slice() {
        [] => Resolution::Stale(match reused.or(at_handle.clone()) {
            Some(change) => Stale::Changed(change),
            None => Stale::Removed,
        }),
        &[(id, evidence, _)] if (window_verified && evidence != Evidence::Bounds) || is_there(id) => {
            found(id, How::Identity)
        }
        [_] => Resolution::Stale(Stale::Removed),
        several => {
            let mut there = several.iter().filter(agrees).filter(|(id, ..)| is_there(*id));
            match (there.next(), there.next()) {
                (Some(&(id, ..)), None) => found(id, How::Bounds),
                _ => Resolution::Ambiguous {
                    candidates: several.iter().take(MAX_CANDIDATES).map(|&(id, ..)| id).collect(),
                    count: several.len(),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use crate::sample::{context, named, node, trees};
    use proptest::prelude::*;

    fn at(handle: &str, node: Node) -> Node {
        Node { handle: Handle::new(handle), ..node }
    }

    fn placed(x: i32, node: Node) -> Node {
        Node { bounds: Some(Rect::from_pixels(x, 0, 10, 10)), ..node }
    }

    #[allow(clippy::unnecessary_wraps, reason = "stands for a field that is one")]
    fn automation_id(value: &str) -> Option<NativeId> {
        Some(NativeId { kind: NativeIdKind::AutomationId, value: value.to_owned() })
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

    fn nobody(_: &Node) -> bool {
        false
    }

    #[track_caller]
    fn resolves(entry: &RefEntry, tree: &Tree, expected: &Resolution) {
        assert_eq!(search(entry, tree, true, true, nobody), *expected);
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

    // --- Identity

    #[track_caller]
    fn differs(entry: &RefEntry, node: &Node, expected: Change) {
        assert_eq!(identify(entry, node), Match::Different(expected));
    }

    #[test]
    fn the_authors_identifier_decides_and_text_does_not() {
        let entry = entry_of(Node { native_id: automation_id("save"), ..named(Role::Button, "Save") });
        let renamed = Node { native_id: automation_id("save"), ..named(Role::Button, "Saving") };
        assert_eq!(identify(&entry, &renamed), Match::Same(Evidence::NativeId));
        differs(&entry, &named(Role::Button, "Save"), Change::NativeId);
        let mut unread = named(Role::Button, "Save");
        unread.gaps.native_id = true;
        assert_eq!(identify(&entry, &unread), Match::Unknown);
        let other_role = Node { native_id: automation_id("save"), ..named(Role::Link, "Save") };
        differs(&entry, &other_role, Change::NativeIdOnOtherRole { now: Role::Link });
    }

    #[test]
    fn rows_share_the_identifier_of_their_template() {
        let entry = entry_of(Node { native_id: automation_id("row"), ..named(Role::Cell, "Alice") });
        let reused = Node { native_id: automation_id("row"), ..named(Role::Cell, "Bob") };
        differs(&entry, &reused, Change::Name { now: "Bob".to_owned() });
    }

    #[test]
    fn an_object_path_never_overrules_text() {
        let path =
            |value: &str| Some(NativeId { kind: NativeIdKind::AtspiObjectPath, value: value.to_owned() });
        let entry = entry_of(at("/7", Node { native_id: path("/7"), ..named(Role::Button, "Save") }));
        let reused = at("/7", Node { native_id: path("/7"), ..named(Role::Button, "Delete") });
        differs(&entry, &reused, Change::Name { now: "Delete".to_owned() });
        let renewed = at("/9", Node { native_id: path("/9"), ..named(Role::Button, "Save") });
        assert!(identify(&entry, &renewed).is_same());
    }

    /// User report 93: value text must not be identity; an empty name counts as missing.
    #[test]
    fn report_93_typed_text_is_not_identity() {
        let field = |name: &str, value: &str| {
            placed(1, Node { value: Some(value.to_owned()), ..named(Role::TextField, name) })
        };
        let entry = entry_of(field("Search", "old"));
        assert!(identify(&entry, &field("Search", "new")).is_same());
        // The name only repeats the value, or is empty: the place decides.
        for (before, after) in
            [(("old", "old"), ("new", "new")), (("", "1"), (" ", "2")), (("50", "50.0"), ("60", "60"))]
        {
            let entry = entry_of(field(before.0, before.1));
            assert_eq!(
                identify(&entry, &field(after.0, after.1)),
                Match::Same(Evidence::Bounds),
                "{before:?}"
            );
            let elsewhere = Node { bounds: Some(Rect::from_pixels(5, 5, 5, 5)), ..field(after.0, after.1) };
            differs(&entry, &elsewhere, Change::Bounds);
        }
    }

    #[test]
    fn meters_and_live_regions_change_their_value() {
        let bar = |value: &str| {
            placed(
                1,
                Node {
                    value: Some(value.to_owned()),
                    capabilities: context_click(),
                    ..node(Role::ProgressBar)
                },
            )
        };
        assert!(identify(&entry_of(bar("10")), &bar("20")).is_same());
        let cell = |value: &str| placed(1, Node { value: Some(value.to_owned()), ..node(Role::Cell) });
        differs(&entry_of(cell("Alice")), &cell("Bob"), Change::Value);
    }

    fn context_click() -> Capabilities {
        Capabilities::NONE.with(crate::action::Capability::Click)
    }

    #[test]
    fn what_could_not_be_read_is_not_absent() {
        let entry = entry_of(named(Role::Button, "Save"));
        let mut unread = node(Role::Button);
        unread.gaps.basics = true;
        assert_eq!(identify(&entry, &unread), Match::Unknown);
        let mut nothing = node(Role::Unknown);
        nothing.gaps.basics = true;
        assert_eq!(identify(&entry, &nothing), Match::Unknown);
    }

    #[test]
    fn nothing_usable_is_no_identity() {
        let entry = entry_of(at("/7", node(Role::Button)));
        differs(&entry, &at("/7", node(Role::Button)), Change::Unidentifiable);
        let entry = entry_of(at("/7", placed(1, node(Role::Button))));
        assert!(identify(&entry, &at("/9", placed(1, node(Role::Button)))).is_same());
        differs(&entry, &at("/9", placed(1, named(Role::Button, "Delete"))), Change::TextAppeared);
        assert!(identify(&entry, &at("/7", placed(1, named(Role::Button, "Delete")))).is_same());
    }

    // --- Resolution

    fn twins() -> (Tree, RefMap) {
        let tree = window(vec![
            at("/1", placed(0, named(Role::Button, "Twin"))),
            at("/2", placed(20, named(Role::Button, "Twin"))),
        ]);
        let map = map_of(&tree);
        (tree, map)
    }

    #[test]
    fn a_twin_with_a_living_handle_is_the_very_one() {
        let (tree, map) = twins();
        let live = Reading::Live(Box::new(tree.node(2).clone()));
        assert_eq!(resolve_fast(&map.entries[&2], &live), Fast::Found);
        resolves(&map.entries[&2], &tree, &Resolution::Found(2, How::Handle));
    }

    #[test]
    fn of_twins_with_new_handles_the_place_picks_one_or_none() {
        let (_, map) = twins();
        let renewed = window(vec![
            at("/8", placed(0, named(Role::Button, "Twin"))),
            at("/9", placed(20, named(Role::Button, "Twin"))),
        ]);
        assert_eq!(resolve_fast(&map.entries[&2], &Reading::Gone), Fast::Search(None));
        resolves(&map.entries[&2], &renewed, &Resolution::Found(2, How::Bounds));
        let moved = window(vec![
            at("/8", placed(5, named(Role::Button, "Twin"))),
            at("/9", placed(25, named(Role::Button, "Twin"))),
        ]);
        let ambiguous = Resolution::Ambiguous { candidates: vec![1, 2], count: 2 };
        resolves(&map.entries[&2], &moved, &ambiguous);
        let error = ambiguous.error(&RefTarget::new("sq4m2", 2), &map.entries[&2], &moved).unwrap();
        assert_eq!(error.code(), ErrorCode::AmbiguousTarget);
        assert_eq!(error.message(), "e2 (button \"Twin\") may be any of 2 elements that look the same");
    }

    #[test]
    fn the_twin_that_is_left_is_not_taken_for_the_one_that_is_gone() {
        let (_, map) = twins();
        // The second moves up to where the first was: its path and its place are those of the first now.
        let after = window(vec![at("/2", placed(0, named(Role::Button, "Twin")))]);
        let claimed = |node: &Node| map.is_claimed(node, 1);
        assert_eq!(search(&map.entries[&1], &after, true, true, claimed), Resolution::Stale(Stale::Claimed));
        assert_eq!(
            search(&map.entries[&2], &after, true, true, |node| map.is_claimed(node, 2)),
            Resolution::Found(1, How::Handle)
        );
    }

    #[test]
    fn a_renamed_element_is_stale_unless_the_one_meant_is_elsewhere() {
        let tree = window(vec![at("/1", named(Role::Button, "Save"))]);
        let entry = &map_of(&tree).entries[&1];
        let renamed = at("/1", named(Role::Button, "Saved"));
        let change = Change::Name { now: "Saved".to_owned() };
        let live = Reading::Live(Box::new(renamed.clone()));
        assert_eq!(resolve_fast(entry, &live), Fast::Search(Some(change.clone())));
        let stale = Stale::Changed(change);
        resolves(entry, &window(vec![renamed.clone()]), &Resolution::Stale(stale.clone()));
        let error = stale.error(&RefTarget::new("sq4m2", 1), Some(entry));
        assert_eq!(error.message(), "e1 (button \"Save\") is stale: it is named \"Saved\" now");
        assert_eq!(error.get_kind(), "resolution_complete_absence");
        let elsewhere = window(vec![renamed, at("/2", named(Role::Button, "Save"))]);
        resolves(entry, &elsewhere, &Resolution::Found(2, How::Identity));
    }

    #[test]
    fn a_reused_row_with_the_templates_identifier_is_searched_for() {
        let button = |handle: &str, name: &str| {
            at(handle, Node { native_id: automation_id("delete"), ..named(Role::Button, name) })
        };
        let entry =
            &map_of(&window(vec![button("/1", "Delete Alice"), button("/2", "Delete Bob")])).entries[&1];
        let live = Reading::Live(Box::new(button("/1", "Delete Carol")));
        assert!(matches!(resolve_fast(entry, &live), Fast::Search(Some(_))));
        let scrolled = window(vec![button("/1", "Delete Carol"), button("/2", "Delete Dave")]);
        assert!(matches!(search(entry, &scrolled, true, true, nobody), Resolution::Ambiguous { .. }));
        let alone = window(vec![button("/1", "Deleting")]);
        resolves(entry, &alone, &Resolution::Found(1, How::Handle));
    }

    #[test]
    fn an_identifier_on_another_role_is_named() {
        let entry = entry_of(Node { native_id: automation_id("go"), ..named(Role::Button, "Go") });
        let tree = window(vec![Node { native_id: automation_id("go"), ..named(Role::Link, "Go") }]);
        match search(&entry, &tree, true, true, nobody) {
            Resolution::Stale(stale) => assert_eq!(stale.kind(), "native_identifier_role_reuse"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn too_little_read_is_no_absence() {
        let entry = entry_of(at("/1", named(Role::Button, "Save")));
        let partial = window(vec![at("/2", named(Role::Button, "Open"))]);
        let unreadable = search(&entry, &partial, false, true, nobody);
        assert_eq!(unreadable, Resolution::Unreadable { identity: false });
        let error = unreadable.error(&RefTarget::new("sq4m2", 1), &entry, &partial).unwrap();
        assert_eq!(error.code(), ErrorCode::AppUnresponsive);
        assert!(error.is_retryable());
        let mut unread = at("/2", node(Role::Button));
        unread.gaps.basics = true;
        resolves(&entry, &window(vec![unread]), &Resolution::Unreadable { identity: true });
        // Its own handle with its identity needs no complete tree.
        let partial = window(vec![at("/1", named(Role::Button, "Save"))]);
        assert_eq!(search(&entry, &partial, false, true, nobody), Resolution::Found(1, How::Handle));
    }

    #[test]
    fn without_a_verified_window_the_place_must_agree() {
        let entry = entry_of(at("/1", placed(0, named(Role::Button, "Save"))));
        let moved = window(vec![at("/2", placed(5, named(Role::Button, "Save")))]);
        assert_eq!(search(&entry, &moved, true, false, nobody), Resolution::Stale(Stale::Removed));
        assert_eq!(search(&entry, &moved, true, true, nobody), Resolution::Found(1, How::Identity));
    }
}
