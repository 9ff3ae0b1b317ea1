//! Locators: which nodes a caller means.
//!
//! Decided here: what a query may contain, how texts are compared, which nodes match, and what to say when none does.
//! An answer has three values: a fact that could not be read makes a node neither a match nor none. Every clause looks
//! at every node once; clauses about descendants are summed up from the leaves.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::outline;
use crate::role::Role;
use crate::state::State;
use crate::tree::{Cut, Node, NodeId, Tree};

/// Clauses that a query may have, nested ones included.
pub const MAX_CLAUSES: usize = 64;
/// Bytes that one text of a query may have.
pub const MAX_FIELD: usize = 4096;
/// Bytes that all texts of a query may have.
pub const MAX_TOTAL: usize = 65_536;

/// A demand on a state: `checked`, or `checked=false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateTest {
    /// The state.
    pub state: State,
    /// Whether it must be there or must not.
    pub expected: bool,
}

impl StateTest {
    /// Parses `TOKEN[=BOOL]`; a bare token means true. BOOL is `true`, `1`, `false` or `0`.
    ///
    /// # Errors
    /// `INVALID_ARGS` for an unknown token or value.
    pub fn parse(text: &str) -> Result<StateTest> {
        let (token, value) = text.split_once('=').map_or((text, None), |(token, value)| (token, Some(value)));
        let token = token.trim().to_lowercase();
        let expected = match value.map(str::trim) {
            None | Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(_) => {
                return Err(Error::invalid("the value of a state is true, 1, false or 0")
                    .hint("write for example --state checked=false"));
            }
        };
        let state = State::parse(&token).ok_or_else(|| {
            if token == "enabled" {
                Error::invalid("enabled is not a state; it is the absence of disabled")
                    .hint("write disabled=false")
            } else {
                let known: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
                Error::invalid("not a state").hint(format!("states are {}", known.join(", ")))
            }
        })?;
        Ok(StateTest { state, expected })
    }
}

/// What a node must be like. Every clause that is there must hold; a query without clauses matches every node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Its role.
    pub role: Option<Role>,
    /// In its name.
    pub name: Option<String>,
    /// In its description.
    pub description: Option<String>,
    /// Its identifier: exact, and case matters.
    pub native_id: Option<String>,
    /// In its value.
    pub value: Option<String>,
    /// In the name, value or description of the node or of anything below it.
    pub has_text: Option<String>,
    /// Texts must be equal as a whole (folded all the same), not only contain what is asked for.
    pub exact: bool,
    /// States it must have or not have.
    pub states: Vec<StateTest>,
    /// Something below it must match this.
    pub has: Option<Box<Query>>,
    /// Nothing below it may match this.
    pub has_not: Option<Box<Query>>,
}

impl Query {
    /// A query for this role only.
    pub fn role(role: Role) -> Query {
        Query { role: Some(role), ..Query::default() }
    }

    /// The same query with this in the name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Query {
        self.name = Some(name.into());
        self
    }

    /// Whether nothing is asked for, so that every node matches.
    pub fn is_empty(&self) -> bool {
        self.clauses() == 0
    }

    fn texts(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("name", self.name.as_deref()),
            ("description", self.description.as_deref()),
            ("native_id", self.native_id.as_deref()),
            ("value", self.value.as_deref()),
            ("has_text", self.has_text.as_deref()),
        ]
    }

    fn nested(&self) -> impl Iterator<Item = &Query> {
        [self.has.as_deref(), self.has_not.as_deref()].into_iter().flatten()
    }

    /// Clauses, nested ones included; a nested query counts as one itself.
    fn clauses(&self) -> usize {
        usize::from(self.role.is_some())
            + self.texts().iter().filter(|(_, text)| text.is_some()).count()
            + self.states.len()
            + self.nested().map(|query| 1 + query.clauses()).sum::<usize>()
    }

    fn bytes(&self) -> usize {
        self.texts().iter().filter_map(|(_, text)| *text).map(str::len).sum::<usize>()
            + self.nested().map(Query::bytes).sum::<usize>()
    }

    /// Refuses what cannot be asked. Call before [`evaluate`].
    ///
    /// # Errors
    /// `INVALID_ARGS`: too many clauses, too long or blank texts, the role `unknown`, a state that must be both.
    pub fn check(&self) -> Result<()> {
        let limit = |what: String| Error::invalid(what).detail("max_clauses", MAX_CLAUSES);
        if self.clauses() > MAX_CLAUSES {
            return Err(limit(format!("a query has at most {MAX_CLAUSES} clauses")));
        }
        if self.bytes() > MAX_TOTAL {
            return Err(limit(format!("the texts of a query have at most {MAX_TOTAL} bytes together")));
        }
        self.check_fields()
    }

    fn check_fields(&self) -> Result<()> {
        if self.role == Some(Role::Unknown) {
            return Err(Error::invalid("the role unknown cannot be asked for"));
        }
        for (field, text) in self.texts() {
            let Some(text) = text else { continue };
            if text.len() > MAX_FIELD {
                return Err(Error::invalid(format!("{field} has more than {MAX_FIELD} bytes")));
            }
            if text.trim().is_empty() {
                return Err(Error::invalid(format!("{field} is blank")).hint("leave it out to match any"));
            }
        }
        for test in &self.states {
            if self.states.iter().any(|other| other.state == test.state && other.expected != test.expected) {
                return Err(Error::invalid(format!("{} is asked to be true and false", test.state.as_str())));
            }
        }
        self.nested().try_for_each(Query::check_fields)
    }
}

/// Parses a role as a user writes it, and says what exists when it is none.
///
/// # Errors
/// `INVALID_ARGS`, with the roles that look like it in the hint.
pub fn parse_role(text: &str) -> Result<Role> {
    Role::parse_query(text).map_err(|_| {
        let folded: String = fold(text).chars().take(32).collect();
        let mut close: Vec<(f64, &str)> = Role::ALL
            .iter()
            .filter(|&&role| role != Role::Unknown)
            .map(|role| (similarity(&folded, role.as_str()), role.as_str()))
            .filter(|(score, _)| *score > 0.5)
            .collect();
        close.sort_by(|one, other| other.0.total_cmp(&one.0));
        let error = Error::invalid("not a role");
        if close.is_empty() {
            error.hint("roles are words such as button, textfield, menuitem, treeitem")
        } else {
            let close: Vec<&str> = close.into_iter().take(3).map(|(_, role)| role).collect();
            error.hint(format!("did you mean {}?", close.join(" or ")))
        }
    })
}

/// The selector of `--wait-for`: `[role][:text]`.
///
/// ```
/// use agent_desktop_core::query::parse_selector;
///
/// let query = parse_selector("button: Submit ")?;
/// assert_eq!(query.role.map(|role| role.as_str()), Some("button"));
/// assert_eq!(query.has_text.as_deref(), Some("Submit"));
/// assert!(parse_selector(" : ").is_err());
/// # Ok::<(), agent_desktop_core::Error>(())
/// ```
///
/// # Errors
/// `INVALID_ARGS` when both parts are blank, the role is none, or the text is too long.
pub fn parse_selector(text: &str) -> Result<Query> {
    let (role, text) = text.split_once(':').unwrap_or((text, ""));
    let (role, text) = (role.trim(), text.trim());
    if role.is_empty() && text.is_empty() {
        return Err(Error::invalid("the selector is empty")
            .hint("write a role, a colon and a text, or one of them: button:Submit, button, :Saved"));
    }
    let query = Query {
        role: if role.is_empty() { None } else { Some(parse_role(role)?) },
        has_text: (!text.is_empty()).then(|| text.to_owned()),
        ..Query::default()
    };
    query.check()?;
    Ok(query)
}

// ---------------------------------------------------------------------------------------------------------------------
// Evaluation

/// Runs of white space become one space, ends are trimmed, letters become lower case.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    fold_into(text, &mut folded);
    folded
}

fn fold_into(text: &str, folded: &mut String) {
    folded.clear();
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        if word.is_ascii() {
            folded.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        } else {
            folded.push_str(&word.to_lowercase());
        }
    }
}

/// Whether something is so, as far as could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// What would tell could not be read.
    Unknown,
}

impl Verdict {
    fn known(is_so: bool) -> Verdict {
        if is_so { Verdict::Yes } else { Verdict::No }
    }

    /// Both. A certain no outweighs what is not known.
    #[must_use]
    pub fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::No, _) | (_, Verdict::No) => Verdict::No,
            (Verdict::Yes, Verdict::Yes) => Verdict::Yes,
            _ => Verdict::Unknown,
        }
    }

    /// Either. A certain yes outweighs what is not known.
    #[must_use]
    pub fn or(self, other: Verdict) -> Verdict {
        !(!self).and(!other)
    }
}

impl std::ops::Not for Verdict {
    type Output = Verdict;

    fn not(self) -> Verdict {
        match self {
            Verdict::Yes => Verdict::No,
            Verdict::No => Verdict::Yes,
            Verdict::Unknown => Verdict::Unknown,
        }
    }
}

/// A text that is asked for, folded once.
struct Needle {
    folded: String,
    exact: bool,
}

impl Needle {
    fn new(text: &str, exact: bool) -> Needle {
        Needle { folded: fold(text), exact }
    }

    fn test(&self, text: Option<&str>, unreadable: bool, buffer: &mut String) -> Verdict {
        match text {
            Some(text) => {
                fold_into(text, buffer);
                Verdict::known(if self.exact {
                    *buffer == self.folded
                } else {
                    buffer.contains(&self.folded)
                })
            }
            None if unreadable => Verdict::Unknown,
            None => Verdict::No,
        }
    }

    fn test_any(&self, node: &Node, buffer: &mut String) -> Verdict {
        let name = self.test(node.name.as_deref(), node.gaps.basics, buffer);
        if name == Verdict::Yes {
            return name;
        }
        let value = self.test(node.value.as_deref(), node.gaps.value, buffer);
        let description = self.test(node.description.as_deref(), node.gaps.basics, buffer);
        name.or(value).or(description)
    }
}

/// Which clause of a query is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The role.
    Role,
    /// The name.
    Name,
    /// The description.
    Description,
    /// The identifier.
    NativeId,
    /// The value.
    Value,
    /// Text of the node or below it.
    HasText,
    /// A state.
    State(StateTest),
    /// Something that must be below it.
    Has,
    /// Something that must not be below it.
    HasNot,
}

fn test_role(role: Role, node: &Node) -> Verdict {
    if node.role == Role::Unknown && node.gaps.basics {
        Verdict::Unknown
    } else {
        Verdict::known(node.role == role)
    }
}

fn test_state(test: StateTest, node: &Node) -> Verdict {
    if node.states.has(test.state) {
        return Verdict::known(test.expected);
    }
    let unreadable = node.gaps.basics || (test.state == State::Offscreen && node.gaps.bounds);
    if unreadable { Verdict::Unknown } else { Verdict::known(!test.expected) }
}

/// Whether something below each node is so: `own` summed up from the leaves.
///
/// A node whose children are missing, because a budget cut them or they could not be read, may have anything below it.
fn below(tree: &Tree, own: &[Verdict]) -> Vec<Verdict> {
    let mut below: Vec<Verdict> =
        tree.iter()
            .map(|(_, node)| {
                if node.cut == Some(Cut::Budget) || node.gaps.basics { Verdict::Unknown } else { Verdict::No }
            })
            .collect();
    for id in (1..tree.len()).rev() {
        if let Some(parent) = tree.node(id as NodeId).parent {
            let parent = parent as usize;
            below[parent] = below[parent].or(own[id]).or(below[id]);
        }
    }
    below
}

/// Calls `seen` with the verdict of every clause on every node.
fn judge(query: &Query, tree: &Tree, mut seen: impl FnMut(NodeId, Clause, Verdict)) {
    let mut buffer = String::new();
    let needle = |text: &Option<String>| text.as_ref().map(|text| Needle::new(text, query.exact));
    let name = needle(&query.name);
    let description = needle(&query.description);
    let value = needle(&query.value);
    for (id, node) in tree.iter() {
        if let Some(role) = query.role {
            seen(id, Clause::Role, test_role(role, node));
        }
        if let Some(name) = &name {
            seen(id, Clause::Name, name.test(node.name.as_deref(), node.gaps.basics, &mut buffer));
        }
        if let Some(description) = &description {
            let verdict = description.test(node.description.as_deref(), node.gaps.basics, &mut buffer);
            seen(id, Clause::Description, verdict);
        }
        if let Some(value) = &value {
            seen(id, Clause::Value, value.test(node.value.as_deref(), node.gaps.value, &mut buffer));
        }
        if let Some(wanted) = &query.native_id {
            let verdict = match &node.native_id {
                Some(id) => Verdict::known(id.value == *wanted),
                None if node.gaps.native_id => Verdict::Unknown,
                None => Verdict::No,
            };
            seen(id, Clause::NativeId, verdict);
        }
        for &test in &query.states {
            seen(id, Clause::State(test), test_state(test, node));
        }
    }
    if let Some(text) = needle(&query.has_text) {
        let own: Vec<Verdict> = tree.iter().map(|(_, node)| text.test_any(node, &mut buffer)).collect();
        for (id, (own, below)) in own.iter().zip(below(tree, &own)).enumerate() {
            seen(id as NodeId, Clause::HasText, own.or(below));
        }
    }
    for (nested, clause) in [(&query.has, Clause::Has), (&query.has_not, Clause::HasNot)] {
        if let Some(nested) = nested {
            for (id, verdict) in below(tree, &verdicts(nested, tree)).into_iter().enumerate() {
                seen(id as NodeId, clause, if clause == Clause::Has { verdict } else { !verdict });
            }
        }
    }
}

fn verdicts(query: &Query, tree: &Tree) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Yes; tree.len()];
    judge(query, tree, |id, _, verdict| {
        let entry = &mut verdicts[id as usize];
        *entry = entry.and(verdict);
    });
    verdicts
}

/// What a query found in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Nodes that match, in document order.
    pub ids: Vec<NodeId>,
    /// Nodes that may match, in document order.
    pub unknown: Vec<NodeId>,
    /// Nodes below which a budget or the deadline cut something, in document order.
    pub cut: Vec<NodeId>,
}

/// Finds the nodes that match. Takes time in proportion to clauses times nodes.
pub fn evaluate(query: &Query, tree: &Tree) -> Matches {
    let mut matches = Matches {
        cut: tree.iter().filter(|(_, node)| node.cut == Some(Cut::Budget)).map(|(id, _)| id).collect(),
        ..Matches::default()
    };
    for (id, verdict) in verdicts(query, tree).into_iter().enumerate() {
        match verdict {
            Verdict::Yes => matches.ids.push(id as NodeId),
            Verdict::Unknown => matches.unknown.push(id as NodeId),
            Verdict::No => {}
        }
    }
    matches
}

/// Which of the matches are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// None of them, only their number.
    Count,
    /// The first in document order.
    First,
    /// The last.
    Last,
    /// The one of this number, from 0.
    Nth(usize),
    /// The first so many; 0: all.
    Limit(usize),
}

impl Default for Selection {
    fn default() -> Selection {
        Selection::Limit(50)
    }
}

/// What a selection chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The nodes chosen, in document order.
    pub ids: Vec<NodeId>,
    /// How many match in all.
    pub total: usize,
    /// Whether the limit left some out.
    pub truncated: bool,
    /// Whether this is the answer no matter what could not be read.
    pub is_certain: bool,
}

impl Matches {
    /// Chooses among the matches.
    ///
    /// `complete`: no node is missing except below those in `cut`. The first match, and the one of a number, may be
    /// certain in an incomplete tree: if everything before it in document order was read.
    pub fn select(&self, selection: Selection, complete: bool) -> Selected {
        let total = self.ids.len();
        let all_read = complete && self.unknown.is_empty() && self.cut.is_empty();
        let first_doubt = self.unknown.first().into_iter().chain(self.cut.first()).min();
        let at = |index: usize| {
            let id = self.ids.get(index).copied();
            // Without any doubt marked, an incomplete tree may lack nodes anywhere.
            let is_certain = all_read || matches!((id, first_doubt), (Some(id), Some(&doubt)) if id < doubt);
            (id.into_iter().collect(), is_certain)
        };
        let (ids, is_certain): (Vec<NodeId>, bool) = match selection {
            Selection::Count => (Vec::new(), all_read),
            Selection::First => at(0),
            Selection::Nth(index) => at(index),
            Selection::Last => (self.ids.last().copied().into_iter().collect(), all_read),
            Selection::Limit(0) => (self.ids.clone(), all_read),
            Selection::Limit(limit) => (self.ids.iter().copied().take(limit).collect(), all_read),
        };
        let truncated = matches!(selection, Selection::Limit(_)) && ids.len() < total;
        Selected { ids, total, truncated, is_certain }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Explanation

/// Roles that occur in a tree, sorted by their names.
pub fn roles_present(tree: &Tree) -> Vec<Role> {
    let roles: BTreeSet<&str> = tree.iter().map(|(_, node)| node.role.as_str()).collect();
    roles.into_iter().filter_map(|role| role.parse().ok()).collect()
}

/// Characters of a name in a path label.
const LABEL_TEXT: usize = 80;

/// Labels of the ancestors of a node, root first: `role:name`, or `role` for those without a name.
pub fn path_labels(tree: &Tree, id: NodeId) -> Vec<String> {
    let mut labels: Vec<String> = tree
        .ancestors(id)
        .map(|ancestor| {
            let node = tree.node(ancestor);
            match node.name.as_deref().or(node.description.as_deref()).map(str::trim) {
                Some(name) if !name.is_empty() => format!("{}:{}", node.role, outline::cut(name, LABEL_TEXT)),
                _ => node.role.to_string(),
            }
        })
        .collect();
    labels.reverse();
    labels
}

/// A node that a query misses by one clause.
#[derive(Clone, Debug, PartialEq)]
pub struct NearMiss {
    /// The node.
    pub id: NodeId,
    /// The clause that does not hold.
    pub missed: Clause,
    /// For texts: how close it is, from 0 to 1; else 1.
    pub closeness: f64,
}

/// Nodes that are compared for near misses: enough to help, and no more than a few milliseconds.
const MAX_COMPARED: usize = 4096;

/// The nodes that a query misses by one clause, the closest first.
pub fn near_misses(query: &Query, tree: &Tree, limit: usize) -> Vec<NearMiss> {
    let mut missed: Vec<(u32, Option<Clause>)> = vec![(0, None); tree.len()];
    judge(query, tree, |id, clause, verdict| {
        if verdict != Verdict::Yes {
            let entry = &mut missed[id as usize];
            *entry = (entry.0 + 1, Some(clause));
        }
    });
    let wanted = |clause: Clause| {
        let text = match clause {
            Clause::Name => query.name.as_deref(),
            Clause::Description => query.description.as_deref(),
            Clause::Value => query.value.as_deref(),
            Clause::HasText => query.has_text.as_deref(),
            Clause::NativeId => query.native_id.as_deref(),
            _ => None,
        };
        text.map(fold)
    };
    let mut near: Vec<NearMiss> = missed
        .into_iter()
        .enumerate()
        .filter_map(|(id, (count, clause))| {
            let (1, Some(missed)) = (count, clause) else { return None };
            let node = tree.node(id as NodeId);
            let closeness = match wanted(missed) {
                None => 1.0,
                Some(wanted) => texts_for(missed, node)
                    .into_iter()
                    .flatten()
                    .map(|text| similarity(&wanted, &fold(outline::cut(text, LABEL_TEXT).as_str())))
                    .reduce(f64::max)?,
            };
            Some(NearMiss { id: id as NodeId, missed, closeness })
        })
        .take(MAX_COMPARED)
        .collect();
    near.sort_by(|one, other| other.closeness.total_cmp(&one.closeness));
    near.truncate(limit);
    near
}

fn texts_for(clause: Clause, node: &Node) -> [Option<&str>; 3] {
    match clause {
        Clause::Name => [node.name.as_deref(), None, None],
        Clause::Description => [node.description.as_deref(), None, None],
        Clause::Value => [node.value.as_deref(), None, None],
        Clause::NativeId => [node.native_id.as_ref().map(|id| id.value.as_str()), None, None],
        _ => [node.name.as_deref(), node.value.as_deref(), node.description.as_deref()],
    }
}

/// What to say when nothing matches: the nodes that come closest, and by what they miss.
///
/// Never repeats what was asked for, only what is on the screen.
pub fn explain(query: &Query, tree: &Tree) -> Option<String> {
    const SHOWN: usize = 5;
    if let Some(role) = query.role
        && !tree.iter().any(|(_, node)| node.role == role)
    {
        let without_role = Query { role: None, ..query.clone() };
        // The innermost match says more than the window around it.
        let elsewhere =
            evaluate(&without_role, tree).ids.into_iter().next_back().filter(|_| !without_role.is_empty());
        if let Some(id) = elsewhere {
            return Some(format!("there is no {role}, but {} matches otherwise", label(tree, id)));
        }
        let roles: Vec<&str> = roles_present(tree).into_iter().map(Role::as_str).collect();
        return Some(format!("there is no {role}; roles present: {}", roles.join(", ")));
    }
    let near = near_misses(query, tree, usize::MAX);
    let best = near.first()?;
    let labels = |missed: &dyn Fn(&NearMiss) -> bool| {
        let labels: Vec<String> =
            near.iter().filter(|near| missed(near)).take(SHOWN).map(|near| label(tree, near.id)).collect();
        labels.join(", ")
    };
    if let Some(NearMiss { missed: Clause::State(test), id, .. }) =
        near.iter().find(|near| matches!(near.missed, Clause::State(_)))
    {
        let is = if test.expected { "is not" } else { "is" };
        return Some(format!("{} {is} {}", label(tree, *id), test.state.as_str()));
    }
    if best.missed == Clause::Role {
        return Some(format!("the role is another one: {}", labels(&|near| near.missed == Clause::Role)));
    }
    Some(format!("the closest: {}", labels(&|near| near.missed == best.missed)))
}

fn label(tree: &Tree, id: NodeId) -> String {
    let node = tree.node(id);
    outline::describe(node.role, node.name.as_deref().or(node.value.as_deref()))
}

/// How alike two folded texts are, from 0 to 1.
///
/// One inside the other counts as close; otherwise the edit distance decides.
fn similarity(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    let (one, other): (Vec<char>, Vec<char>) =
        (one.chars().take(LABEL_TEXT).collect(), other.chars().take(LABEL_TEXT).collect());
    let longest = one.len().max(other.len());
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let (short, long) = if one.len() < other.len() { (&one, &other) } else { (&other, &one) };
    let edits = 1.0 - edit_distance(&one, &other) as f64 / longest as f64;
    if long.windows(short.len()).any(|window| window == short.as_slice()) {
        edits.max(0.5 + short.len() as f64 / longest as f64 / 2.0)
    } else {
        edits
    }
}

fn edit_distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let cost = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::sample::{named, node, trees};
    use crate::tree::{NativeId, NativeIdKind};
    use proptest::prelude::*;

    #[allow(clippy::unnecessary_wraps, reason = "stands for a field that is one")]
    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    /// A login dialog: 0 window, 1 group, 2 check box, 3 text field, 4 button, 5 text in it.
    fn login() -> Tree {
        let mut tree = Tree::default();
        tree.push(None, named(Role::Window, "Login"));
        tree.push(Some(0), node(Role::Group));
        let mut remember = named(Role::CheckBox, "Remember  me");
        remember.states.insert(State::Checked);
        tree.push(Some(1), remember);
        let mut user = named(Role::TextField, "User name");
        user.value = text("ada");
        user.native_id = Some(NativeId { kind: NativeIdKind::AutomationId, value: "user".to_owned() });
        tree.push(Some(1), user);
        let mut button = named(Role::Button, "Sign in");
        button.description = text("Opens the mailbox");
        button.states.insert(State::Disabled);
        tree.push(Some(0), button);
        tree.push(Some(4), named(Role::StaticText, "Größe"));
        tree
    }

    #[track_caller]
    fn finds(query: &Query, expected: &[NodeId]) {
        query.check().unwrap();
        assert_eq!(evaluate(query, &login()).ids, expected);
    }

    #[test]
    fn texts_are_folded_and_contained() {
        finds(&Query::default().named("remember ME"), &[2]);
        finds(&Query::default().named("  User   n"), &[3]);
        finds(&Query { exact: true, ..Query::default().named("user NAME") }, &[3]);
        finds(&Query { exact: true, ..Query::default().named("user") }, &[]);
        finds(&Query { value: text("AD"), ..Query::default() }, &[3]);
        finds(&Query { description: text("mailbox"), ..Query::default() }, &[4]);
        finds(&Query { native_id: text("user"), ..Query::default() }, &[3]);
        finds(&Query { native_id: text("User"), ..Query::default() }, &[]);
    }

    #[test]
    fn all_clauses_must_hold_and_none_match_everything() {
        finds(&Query::default(), &[0, 1, 2, 3, 4, 5]);
        finds(&Query::role(Role::Button).named("sign"), &[4]);
        finds(&Query::role(Role::Link).named("sign"), &[]);
        let state = |text: &str| StateTest::parse(text).unwrap();
        finds(&Query { states: vec![state("checked")], ..Query::default() }, &[2]);
        finds(&Query { states: vec![state("checked=0")], ..Query::role(Role::CheckBox) }, &[]);
        finds(&Query { states: vec![state("disabled=false")], ..Query::role(Role::TextField) }, &[3]);
    }

    #[test]
    fn text_below_counts_and_descendants_can_be_asked_for() {
        finds(&Query { has_text: text("grösse"), ..Query::default() }, &[]);
        finds(&Query { has_text: text("GRÖßE"), ..Query::default() }, &[0, 4, 5]);
        finds(&Query { has_text: text("größe"), ..Query::role(Role::Button) }, &[4]);
        let inner = |query: Query| Some(Box::new(query));
        finds(&Query { has: inner(Query::role(Role::CheckBox)), ..Query::default() }, &[0, 1]);
        finds(&Query { has_not: inner(Query::role(Role::CheckBox)), ..Query::role(Role::Group) }, &[]);
        // Not the node itself, only what is below it.
        finds(&Query { has: inner(Query::role(Role::Button)), ..Query::role(Role::Button) }, &[]);
    }

    #[test]
    fn an_unreadable_fact_is_neither_match_nor_none() {
        let mut tree = login();
        tree.node_mut(3).value = None;
        tree.node_mut(3).gaps.value = true;
        let matches = evaluate(&Query { value: text("ada"), ..Query::default() }, &tree);
        assert_eq!((matches.ids, matches.unknown), (vec![], vec![3]));
        // Another clause that certainly fails settles it.
        let matches = evaluate(&Query { value: text("ada"), ..Query::role(Role::Button) }, &tree);
        assert_eq!(matches, Matches::default());
        let matches = evaluate(&Query { has_text: text("ada"), ..Query::default() }, &tree);
        assert_eq!(matches.unknown, [0, 1, 3]);
    }

    #[test]
    fn what_a_budget_cut_may_hold_anything() {
        let mut tree = login();
        tree.node_mut(1).cut = Some(Cut::Budget);
        let query = Query { has_not: Some(Box::new(Query::role(Role::Link))), ..Query::default() };
        let matches = evaluate(&query, &tree);
        assert_eq!((matches.ids, matches.unknown), (vec![2, 3, 4, 5], vec![0, 1]));
        assert_eq!(matches.cut, [1]);
    }

    #[test]
    fn selections_say_whether_they_are_certain() {
        let matches = Matches { ids: vec![2, 5, 9], unknown: vec![6], cut: vec![] };
        let select = |selection| matches.select(selection, true);
        assert_eq!((select(Selection::First).ids, select(Selection::First).is_certain), (vec![2], true));
        assert_eq!((select(Selection::Nth(1)).ids, select(Selection::Nth(1)).is_certain), (vec![5], true));
        assert!(!select(Selection::Nth(2)).is_certain);
        assert!(!select(Selection::Nth(3)).is_certain);
        assert!(!select(Selection::Last).is_certain && !select(Selection::Count).is_certain);
        // Nodes may be missing anywhere.
        let unmarked = Matches { unknown: vec![], ..matches.clone() };
        assert!(!unmarked.select(Selection::First, false).is_certain);
        let all = unmarked.select(Selection::Limit(2), true);
        assert_eq!((all.ids, all.total, all.truncated, all.is_certain), (vec![2, 5], 3, true, true));
        assert!(!unmarked.select(Selection::Limit(0), true).truncated);
        assert_eq!(unmarked.select(Selection::Count, true).total, 3);
        let none = Matches::default().select(Selection::First, true);
        assert!(none.ids.is_empty() && none.is_certain);
    }

    #[test]
    fn states_parse() {
        let parse = |text: &str| StateTest::parse(text).map(|test| (test.state, test.expected));
        assert_eq!(parse("checked"), Ok((State::Checked, true)));
        assert_eq!(parse("Checked = 0"), Ok((State::Checked, false)));
        assert!(parse("checked=no").is_err() && parse("=1").is_err() && parse("").is_err());
        assert_eq!(parse("enabled").unwrap_err().get_hint(), Some("write disabled=false"));
    }

    #[test]
    fn selectors_parse() {
        let parts = |text: &str| parse_selector(text).map(|query| (query.role, query.has_text));
        assert_eq!(parts("button:Submit").unwrap(), (Some(Role::Button), text("Submit")));
        assert_eq!(parts(" Button ").unwrap(), (Some(Role::Button), None));
        assert_eq!(parts(":Saved: yes!").unwrap(), (None, text("Saved: yes!")));
        for wrong in ["", ":", "buton:x", "unknown", &format!(":{}", "x".repeat(MAX_FIELD + 1))] {
            assert_eq!(parse_selector(wrong).unwrap_err().code(), ErrorCode::InvalidArgs);
        }
        assert_eq!(parse_role("buton").unwrap_err().get_hint(), Some("did you mean button?"));
    }

    #[test]
    fn queries_that_are_too_much_are_refused() {
        let many =
            Query { states: vec![StateTest { state: State::Busy, expected: true }; 65], ..Query::default() };
        let nested = (0..65)
            .fold(Query::default(), |inner, _| Query { has: Some(Box::new(inner)), ..Query::default() });
        let both = Query {
            states: [true, false].map(|expected| StateTest { state: State::Busy, expected }).to_vec(),
            ..Query::default()
        };
        let long = Query::default().named("x".repeat(MAX_FIELD + 1));
        let field = || text(&"x".repeat(MAX_FIELD));
        let full = Query {
            name: field(),
            value: field(),
            description: field(),
            has_text: field(),
            ..Query::default()
        };
        let total =
            (0..4).fold(full.clone(), |inner, _| Query { has: Some(Box::new(inner)), ..full.clone() });
        for query in
            [many, nested, both, long, total, Query::default().named(" "), Query::role(Role::Unknown)]
        {
            assert_eq!(query.check().unwrap_err().code(), ErrorCode::InvalidArgs);
        }
        full.check().unwrap();
    }

    #[test]
    fn labels_name_the_way_to_a_node() {
        assert_eq!(path_labels(&login(), 2), ["window:Login", "group"]);
        assert_eq!(path_labels(&login(), 0), [""; 0]);
        let roles: Vec<&str> = roles_present(&login()).into_iter().map(Role::as_str).collect();
        assert_eq!(roles, ["button", "checkbox", "group", "statictext", "textfield", "window"]);
    }

    #[test]
    fn no_match_is_explained_by_what_is_there() {
        let explain = |query: &Query| explain(query, &login()).unwrap();
        assert_eq!(explain(&Query::role(Role::Button).named("sign on")), "the closest: button \"Sign in\"");
        assert_eq!(
            explain(&Query::role(Role::Link).named("Sign in")),
            "there is no link, but button \"Sign in\" matches otherwise"
        );
        assert_eq!(
            explain(&Query::role(Role::Slider)),
            "there is no slider; roles present: button, checkbox, group, statictext, textfield, window"
        );
        let enabled = vec![StateTest { state: State::Disabled, expected: false }];
        assert_eq!(
            explain(&Query { states: enabled, ..Query::role(Role::Button) }),
            "button \"Sign in\" is disabled"
        );
        assert_eq!(
            explain(&Query::role(Role::CheckBox).named("user name")),
            "the role is another one: textfield \"User name\""
        );
    }

    proptest! {
        #[test]
        fn sums_from_the_leaves_say_what_looking_says(tree in trees()) {
            let inner = Query::default().named("save");
            let query = Query { has: Some(Box::new(inner.clone())), ..Query::default() };
            let matches = evaluate(&query, &tree);
            let inside = evaluate(&inner, &tree).ids;
            for (id, _) in tree.iter() {
                let looked = tree.subtree(id).skip(1).any(|below| inside.contains(&below));
                prop_assert_eq!(matches.ids.contains(&id), looked);
            }
            let none = Query { has_not: Some(Box::new(inner)), ..Query::default() };
            let unmatched = evaluate(&none, &tree);
            // Every node has one of them, or cannot be told; what cannot be told is so for both.
            prop_assert_eq!(matches.ids.len() + unmatched.ids.len() + matches.unknown.len(), tree.len());
            prop_assert_eq!(matches.unknown, unmatched.unknown);
        }

        #[test]
        fn folding_twice_changes_nothing(text in "\\PC{0,20}|[ \t\n a-zA-Zİßσς]{0,12}") {
            let folded = fold(&text);
            prop_assert_eq!(fold(&folded), folded.clone());
            prop_assert!(!folded.starts_with(' ') && !folded.ends_with(' ') && !folded.contains("  "));
        }

        #[test]
        fn parsing_and_explaining_never_panic(text in "\\PC{0,20}|[a-z:=]{0,9}", tree in trees()) {
            let _ = StateTest::parse(&text);
            let _ = parse_role(&text);
            if let Ok(query) = parse_selector(&text) {
                let _ = explain(&query, &tree);
            }
        }
    }
}
