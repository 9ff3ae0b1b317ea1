//! `find`: elements by what they are called.

use std::fmt::Write;
use std::time::Duration;

use agent_desktop_core::error::{Error, ErrorCode, Result, facts};
use agent_desktop_core::outline::{self, LINE_TEXT};
use agent_desktop_core::platform::{Limits, Scope, Stop, SurfaceKind};
use agent_desktop_core::query::{self, Query, Selected, Selection, StateTest};
use agent_desktop_core::refs::{Issued, RefMap, RefTarget};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{NodeId, Tree};
use serde::{Deserialize, Serialize};

use super::{Reply, Run, lines};
use crate::artifacts;
use crate::context::{Context, Options};
use crate::observe::{self, Observed, Target, parse_surface};
use crate::resolve;
use crate::trace::Field;
use crate::wait_for::MATCH_DEPTH;

/// Matches that are listed when nobody says.
pub(crate) const LIMIT: usize = 50;
/// Time between two looks at an application that did not answer everything: growing, so as not to press a busy one.
pub(crate) const RETRY: Duration = Duration::from_millis(10);
pub(crate) const MAX_RETRY: Duration = Duration::from_millis(200);

/// Find elements by role, text or state, with refs to act on.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Find {
    /// The application of this name, as list-apps shows it; without it, the focused window.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// The window with this id, as list-windows shows it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub window_id: Option<String>,
    /// Where to look: window, focused, menu, menubar, sheet, popover or alert [default: window].
    #[cfg_attr(feature = "clap", arg(long, value_name = "KIND", hide_possible_values = true, value_parser = super::surface_words()))]
    pub surface: Option<String>,
    /// Only in this one of several that are open, as list-surfaces shows its id.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub surface_id: Option<String>,
    /// Only below the element of this ref.
    #[cfg_attr(feature = "clap", arg(long, value_name = "REF"))]
    pub root: Option<String>,
    /// Snapshot of a --root that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub snapshot: Option<String>,
    /// What it is: button, textfield, … .
    #[cfg_attr(feature = "clap", arg(long, value_name = "ROLE"))]
    pub role: Option<String>,
    /// Text in its name; case and white space do not matter.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub name: Option<String>,
    /// Text in its value.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub value: Option<String>,
    /// Text in its description.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub description: Option<String>,
    /// Text in its name, value or description, or in that of anything inside it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT"))]
    pub text: Option<String>,
    /// Its native id, such as the id of an element in a web page: exact, and case matters.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub native_id: Option<String>,
    /// The texts above must be equal as a whole, not only contained.
    #[cfg_attr(feature = "clap", arg(long))]
    pub exact: bool,
    /// A state it has, or with =false has not: checked, disabled=false; may be repeated.
    #[cfg_attr(feature = "clap", arg(long = "state", value_name = "STATE[=BOOL]"))]
    #[serde(rename = "state", alias = "states", deserialize_with = "super::one_or_more")]
    pub states: Vec<String>,
    /// Also what does not show: closed menus, other tabs, rows scrolled out of view.
    #[cfg_attr(feature = "clap", arg(long))]
    pub all: bool,
    /// Only say how many there are.
    #[cfg_attr(feature = "clap", arg(long, group = "choice"))]
    pub count: bool,
    /// Only the first.
    #[cfg_attr(feature = "clap", arg(long, group = "choice"))]
    pub first: bool,
    /// Only the last.
    #[cfg_attr(feature = "clap", arg(long, group = "choice"))]
    pub last: bool,
    /// Only the match of this number, counted from 0.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", group = "choice"))]
    pub nth: Option<usize>,
    /// List at most so many matches; 0: all [default: 50].
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", group = "choice"))]
    pub limit: Option<usize>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// A match.
#[derive(Clone, Debug, Serialize)]
pub struct MatchData {
    ref_id: Option<String>,
    role: &'static str,
    name: String,
    value: Option<String>,
    states: Vec<&'static str>,
    interactive: bool,
    path: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum FindReply {
    /// `--count`.
    Count {
        /// How many there are.
        count: usize,
    },
    /// `--first`, `--last`, `--nth`.
    One {
        /// The match, if there is one.
        #[serde(rename = "match")]
        found: Option<MatchData>,
        /// The snapshot its ref belongs to.
        snapshot_id: String,
        /// Why there is none.
        #[serde(flatten)]
        nothing: Nothing,
    },
    /// All of them.
    List {
        /// The matches.
        matches: Vec<MatchData>,
        /// How many there are.
        total_matches: usize,
        /// Whether some are not listed.
        truncated: bool,
        /// The snapshot their refs belong to.
        snapshot_id: String,
        /// Why there is none.
        #[serde(flatten)]
        nothing: Nothing,
    },
}

/// What helps when nothing matched.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Nothing {
    /// Roles that were there, when one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    roles_present: Option<Vec<&'static str>>,
    /// What comes closest.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

impl Reply for FindReply {
    fn outline(&self) -> Option<String> {
        let line = |found: &MatchData| {
            let mut line = format!("{} {}", found.role, outline::quote(&found.name, LINE_TEXT));
            if let Some(reference) = &found.ref_id {
                line.push(' ');
                line.push_str(reference);
            }
            if let Some(value) = found.value.as_ref().filter(|value| **value != found.name) {
                line.push_str(" = ");
                line.push_str(&outline::quote(value, LINE_TEXT));
            }
            for state in &found.states {
                line.push(' ');
                line.push_str(state);
            }
            line
        };
        let none = |nothing: &Nothing| match &nothing.suggestion {
            Some(suggestion) => format!("no match: {suggestion}"),
            None => "no match".to_owned(),
        };
        Some(match self {
            FindReply::Count { count } => count.to_string(),
            FindReply::One { found, nothing, .. } => lines(found.iter().map(line), &none(nothing)),
            FindReply::List { matches, total_matches, truncated, nothing, .. } => {
                let mut text = lines(matches.iter().map(line), &none(nothing));
                if *truncated {
                    let _ = write!(text, "\n{} more: --limit 0 lists all", total_matches - matches.len());
                }
                text
            }
        })
    }
}

impl Find {
    fn query(&self) -> Result<Query> {
        let query = Query {
            role: self.role.as_deref().map(query::parse_role).transpose()?,
            name: self.name.clone(),
            description: self.description.clone(),
            native_id: self.native_id.clone(),
            value: self.value.clone(),
            has_text: self.text.clone(),
            exact: self.exact,
            states: self.states.iter().map(|text| StateTest::parse(text)).collect::<Result<_>>()?,
            ..Query::default()
        };
        query.check()?;
        Ok(query)
    }

    fn selection(&self) -> Result<Selection> {
        let chosen = [self.count, self.first, self.last, self.nth.is_some(), self.limit.is_some()];
        if chosen.iter().filter(|&&chosen| chosen).count() > 1 {
            return Err(Error::invalid("--count, --first, --last, --nth and --limit exclude each other"));
        }
        Ok(match (self.count, self.first, self.last, self.nth) {
            (true, ..) => Selection::Count,
            (_, true, ..) => Selection::First,
            (_, _, true, _) => Selection::Last,
            (_, _, _, Some(index)) => Selection::Nth(index),
            _ => Selection::Limit(self.limit.unwrap_or(LIMIT)),
        })
    }

    fn observe(&self, context: &Context<'_>) -> Result<Observed> {
        let limits = Limits { max_depth: MATCH_DEPTH, include_hidden: self.all, ..Limits::default() };
        let Some(root) = &self.root else {
            let target = Target::new(self.app.as_deref(), self.window_id.as_deref(), self.surface.as_deref())?
                .with_surface_id(self.surface_id.as_deref());
            return target.observe(context, &limits);
        };
        let stored = resolve::load(context, root, self.snapshot.as_deref())?;
        let resolved = resolve::resolve(context, &stored)?;
        let scope = Scope { window: resolved.window.clone(), root: Some(resolved.node.handle) };
        let observation = observe::observe(context, &scope, &limits)?;
        Ok(Observed { window: resolved.window, surface: stored.entry.source_surface, observation })
    }

    /// What to do when nothing matched.
    fn advise(&self, context: &Context<'_>, query: &Query, observed: &Observed) -> Option<String> {
        if observed.observation.needs_activation {
            return Some(observe::ACTIVATION.to_owned());
        }
        if !self.all
            && let Ok(whole) = (Find { all: true, ..self.clone() }).observe(context)
        {
            let hidden = query::evaluate(query, &whole.observation.tree).ids.len();
            if hidden > 0 {
                let that = if hidden == 1 { "1 that does not show matches" } else { "some that do not show match" };
                return Some(format!("{that}: add --all; clicking, or scroll-to, brings into view what is scrolled out"));
            }
        }
        query::explain(query, &observed.observation.tree)
    }

    /// Observes until the answer is certain, or the deadline.
    fn search(&self, context: &Context<'_>, query: &Query) -> Result<(Observed, Selected)> {
        let selection = self.selection()?;
        let mut pause = RETRY;
        loop {
            let observed = self.observe(context)?;
            let observation = &observed.observation;
            let matches = query::evaluate(query, &observation.tree);
            let selected = matches.select(selection, observation.stopped.is_none());
            if selected.is_certain {
                return Ok((observed, selected));
            }
            // A budget is reached again by the next attempt; gaps may close.
            let is_passing = !matches!(observation.stopped, Some(Stop::Limit(_) | Stop::Deadline | Stop::Gone));
            if !is_passing || !context.poll(pause) {
                return Err(incomplete(&observed, selected.total, is_passing));
            }
            pause = (pause * 2).min(MAX_RETRY);
        }
    }
}

fn incomplete(observed: &Observed, seen: usize, is_passing: bool) -> Error {
    let observation = &observed.observation;
    let error = match observation.stopped {
        Some(Stop::Limit(limit)) => {
            Error::new(ErrorCode::Timeout, format!("the window has more {limit} than a search looks at"))
                .kind("locator_budget_limit")
                .detail("limits", facts([(limit, true.into())]))
                .retryable(false)
                .hint("search a part of it with --root")
        }
        Some(Stop::Gone) => Error::new(
            ErrorCode::AppUnresponsive,
            format!("{} stopped answering during the search", observed.window.app_name),
        )
        .retryable(true),
        _ if is_passing => Error::new(ErrorCode::Timeout, "some elements did not say what they are until the deadline")
            .kind("locator_transient_incomplete")
            .retryable(true)
            .hint("retry; allow more time with --timeout-ms"),
        _ => Error::new(ErrorCode::Timeout, "the window could not be read completely in time")
            .kind("locator_incomplete")
            .retryable(true)
            .hint("allow more time with --timeout-ms, or search a part of it with --root"),
    };
    error
        .detail("observed_matches", seen)
        .detail("query_stats", facts([("nodes_visited", observation.nodes_visited.into())]))
}

fn match_data(tree: &Tree, id: NodeId, snapshot_id: &str, issued: &Issued) -> MatchData {
    let node = tree.node(id);
    MatchData {
        ref_id: issued.number(id).map(|number| RefTarget::new(snapshot_id, number).to_string()),
        role: node.role.as_str(),
        name: node.label(),
        value: node.value.clone(),
        states: node.states.iter().map(State::as_str).collect(),
        interactive: node.role.is_interactive(),
        path: query::path_labels(tree, id),
    }
}

impl Run for Find {
    type Reply = FindReply;

    fn check(&self, _: &Options) -> Result<()> {
        let surface = parse_surface(self.surface.as_deref())?;
        if self.root.is_some() && (surface != SurfaceKind::Window || self.surface_id.is_some()) {
            return Err(Error::invalid("--root and --surface exclude each other"));
        }
        if self.root.is_some() && (self.app.is_some() || self.window_id.is_some()) {
            return Err(Error::invalid("--root names its window itself: leave --app and --window-id out"));
        }
        if let Some(root) = &self.root {
            RefTarget::parse(root, self.snapshot.as_deref())?;
        }
        self.selection()?;
        self.query().map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<FindReply> {
        let query = self.query()?;
        let (observed, selected) = self.search(context, &query)?;
        let stats = facts([("nodes_visited", observed.observation.nodes_visited.into())]);
        let mut fields = vec![
            ("complete", Field::Bool(observed.observation.stopped.is_none())),
            ("match_count", Field::Number(selected.total as u64)),
            ("query_stats", Field::Fact(&stats)),
            ("truncated", Field::Bool(selected.truncated)),
        ];
        if self.count {
            context.trace("locator.resolve", &fields)?;
            return Ok(FindReply::Count { count: selected.total });
        }
        let tree = &observed.observation.tree;
        let (map, issued) = RefMap::allocate_for(tree, &selected.ids, &observed.allocation(true));
        let snapshot_id = context.store.save(&map)?;
        fields.push(("ref_count", Field::Number(map.entries.len() as u64)));
        fields.push(("snapshot_id", Field::Text(&snapshot_id)));
        context.trace("locator.resolve", &fields)?;
        artifacts::keep_map(context, &snapshot_id)?;
        let nothing = if selected.total == 0 {
            let roles = || query::roles_present(tree).into_iter().map(Role::as_str).collect();
            Nothing { roles_present: query.role.map(|_| roles()), suggestion: self.advise(context, &query, &observed) }
        } else {
            Nothing::default()
        };
        let mut matches =
            selected.ids.iter().map(|&id| match_data(tree, id, &snapshot_id, &issued)).collect::<Vec<_>>();
        Ok(if self.first || self.last || self.nth.is_some() {
            FindReply::One { found: matches.pop(), snapshot_id, nothing }
        } else {
            FindReply::List {
                matches,
                total_matches: selected.total,
                truncated: selected.truncated,
                snapshot_id,
                nothing,
            }
        })
    }
}
