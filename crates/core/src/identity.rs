//! Identity: whether a living element is the one a ref was given for, and what a search for it comes to.
//!
//! Decided here: when two observations are of the same element, which evidence outweighs which, and what it is called when
//! a search does not end in exactly one element. Not decided here: in which order a platform is asked, and how often.
//!
//! The rule above all others: a ref resolves to the element it was given for, or to nothing. Where the contract leaves
//! room, the stricter reading is taken; each such place says so.

use std::fmt;

use crate::action::Capabilities;
use crate::error::{Error, ErrorCode, Fact, facts};
use crate::outline;
use crate::platform::Reading;
use crate::refs::{MAX_CANDIDATES, RefEntry, RefTarget};
use crate::role::Role;
use crate::tree::{Node, NodeId, Tree};

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

pub(crate) fn filled(text: Option<&str>) -> Option<&str> {
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
    compare(
        stable_name(entry.role, entry.name.as_deref(), entry.value.as_deref()),
        live_name,
        candidate.gaps.basics,
        |now| Change::Name { now: now.to_owned() },
    )
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
    let was_called = stable_name(entry.role, entry.name.as_deref(), entry.value.as_deref()).is_some()
        || filled(entry.description.as_deref()).is_some();
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
    use crate::filter::Filtered;
    use crate::geometry::Rect;
    use crate::refs::RefMap;
    use crate::sample::{context, named, node};
    use crate::tree::{Handle, NativeId, NativeIdKind};

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
