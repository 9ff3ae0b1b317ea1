//! `snapshot`: a window as a tree, with refs to act on.

use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::filter::{Filter, Filtered};
use agent_desktop_core::outline::{self, Header, Style};
use agent_desktop_core::platform::{Limits, Scope, Stop, SurfaceKind, Window};
use agent_desktop_core::refs::{Issued, RefMap, RefTarget, Stale};
use agent_desktop_core::tree::Tree;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{Reply, Run};
use crate::artifacts;
use crate::context::{Context, Format, Options};
use crate::observe::{self, Observed, Target, parse_surface};
use crate::resolve;
use crate::trace::Field;
use crate::tree_data::NodeData;
use crate::wait_for::{Answer, Condition};

/// Levels shown when nobody says.
pub(crate) const DEPTH: u8 = 10;
/// Levels shown at most.
pub(crate) const MAX_DEPTH: u8 = 50;
/// Levels of a skeleton.
pub(crate) const SKELETON_DEPTH: u8 = 3;

/// Read a window as a tree, with refs for what can be operated.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Snapshot {
    /// The application of this name, as list-apps shows it; without it, the focused window.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// The window with this id, as list-windows shows it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub window_id: Option<String>,
    /// How many levels to show, 0 to 50.
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = DEPTH))]
    pub max_depth: u8,
    /// Show the bounds of every element, in logical pixels of the desktop.
    #[cfg_attr(feature = "clap", arg(long))]
    pub include_bounds: bool,
    /// Leave out branches in which nothing can be operated.
    #[cfg_attr(feature = "clap", arg(short, long))]
    pub interactive_only: bool,
    /// Leave out groups that say nothing and hold one child.
    #[cfg_attr(feature = "clap", arg(long))]
    pub compact: bool,
    /// Only the first three levels; read more of a branch with --root.
    #[cfg_attr(feature = "clap", arg(long))]
    pub skeleton: bool,
    /// Also what does not show: closed menus, other tabs, rows scrolled out of view.
    #[cfg_attr(feature = "clap", arg(long))]
    pub all: bool,
    /// What to read: window, focused, menu, menubar, sheet, popover or alert [default: window].
    #[cfg_attr(feature = "clap", arg(long, value_name = "KIND", hide_possible_values = true, value_parser = super::surface_words()))]
    pub surface: Option<String>,
    /// Only in this one of several that are open, as list-surfaces shows its id.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub surface_id: Option<String>,
    /// Only what is below the element of this ref; its refs are added to the same snapshot.
    #[cfg_attr(feature = "clap", arg(long, value_name = "REF"))]
    pub root: Option<String>,
    /// Snapshot of a --root that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub snapshot: Option<String>,
    /// Give up after this many milliseconds, and show what was read [default: 3000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot {
            app: None,
            window_id: None,
            max_depth: DEPTH,
            include_bounds: false,
            interactive_only: false,
            compact: false,
            skeleton: false,
            all: false,
            surface: None,
            surface_id: None,
            root: None,
            snapshot: None,
            timeout_ms: None,
        }
    }
}

impl Snapshot {
    fn limits(&self) -> Limits {
        let depth = if self.skeleton && self.root.is_none() {
            self.max_depth.min(SKELETON_DEPTH)
        } else {
            self.max_depth
        };
        Limits { max_depth: u32::from(depth), include_hidden: self.all, ..Limits::default() }
    }

    fn view(&self, context: &Context<'_>, tree: &Tree) -> Filtered {
        Filtered::new(
            tree,
            Filter {
                interactive_only: self.interactive_only,
                compact: self.compact,
                include_bounds: self.include_bounds,
                // Text for models says each thing once; JSON shows the tree as it is.
                without_echoes: context.options.format == Format::Outline,
            },
        )
    }

    /// Reads the target and stores its refs.
    ///
    /// # Errors
    /// Those of [`Target::observe`] and of the store.
    pub fn take(&self, context: &Context<'_>, target: &Target) -> Result<SnapshotReply> {
        let observed = target.observe(context, &self.limits())?;
        let view = self.view(context, &observed.observation.tree);
        let allocation = observed.allocation(self.include_bounds);
        let (map, issued) = RefMap::allocate(&observed.observation.tree, &view, &allocation);
        let snapshot_id = context.store.save(&map)?;
        context.trace(
            "snapshot.saved",
            &[
                ("snapshot_id", Field::Text(&snapshot_id)),
                ("ref_count", Field::Number(map.entries.len() as u64)),
                ("app", Field::Screen(&observed.window.app_name)),
            ],
        )?;
        artifacts::keep_map(context, &snapshot_id)?;
        Ok(SnapshotReply {
            observed,
            view,
            issued,
            ref_count: map.entries.len(),
            snapshot_id,
            include_bounds: self.include_bounds,
            waited: None,
        })
    }

    /// Reads what is below an element and adds its refs to the map the element came from.
    fn drill(&self, context: &Context<'_>, root: &str) -> Result<SnapshotReply> {
        let stored = resolve::load(context, root, self.snapshot.as_deref())?;
        let resolved = resolve::resolve(context, &stored)?;
        let scope = Scope { window: resolved.window.clone(), root: Some(resolved.node.handle.clone()) };
        let observation = observe::observe(context, &scope, &self.limits())?;
        if let Some(stop) = observation.stopped {
            return Err(Error::new(
                ErrorCode::Timeout,
                format!("{} could not be read completely: {}", stored.subject(), observe::stop_word(stop)),
            )
            .kind("observation_incomplete")
            .detail("nodes_observed", observation.nodes_visited)
            .detail("stopped_by", observe::stop_word(stop))
            .hint(match stop {
                Stop::Deadline => "allow more time with --timeout-ms, or show less with --max-depth",
                Stop::Limit(_) => "show less with --max-depth, or drill into a part of it",
                Stop::Gone | Stop::Unreadable => "retry; the refs that were there before are unchanged",
            }));
        }
        let view = self.view(context, &observation.tree);
        let surface = stored.entry.source_surface;
        let allocation = observe::allocation(&resolved.window, surface, self.include_bounds);
        let number = stored.target.number;
        let changed = || Stale::NotInSnapshot.error(&stored.target, Some(&stored.entry));
        let (issued, ref_count) = context.store.update(&stored.target.snapshot_id, |map| {
            // Somebody else may have drilled, or replaced the map, since it was read.
            if map.entries.get(&number) != Some(&stored.entry) {
                return Err(changed());
            }
            let issued = map.drill(number, &observation.tree, &view, &allocation).ok_or_else(changed)?;
            Ok((issued, map.entries.len()))
        })?;
        context.trace(
            "snapshot.root.saved",
            &[
                ("root_ref", Field::Text(&stored.target.to_string())),
                ("snapshot_id", Field::Text(&stored.target.snapshot_id)),
                ("ref_count", Field::Number(ref_count as u64)),
            ],
        )?;
        artifacts::keep_map(context, &stored.target.snapshot_id)?;
        Ok(SnapshotReply {
            observed: Observed { window: resolved.window, surface, observation },
            view,
            issued,
            ref_count,
            snapshot_id: stored.target.snapshot_id,
            include_bounds: self.include_bounds,
            waited: None,
        })
    }
}

impl Run for Snapshot {
    type Reply = Answer<SnapshotReply>;

    fn check(&self, options: &Options) -> Result<()> {
        let surface = parse_surface(self.surface.as_deref())?;
        if self.max_depth > MAX_DEPTH {
            return Err(Error::invalid(format!("--max-depth is at most {MAX_DEPTH}")));
        }
        if self.root.is_some() && (surface != SurfaceKind::Window || self.surface_id.is_some()) {
            return Err(Error::invalid("--root and --surface exclude each other"));
        }
        if self.root.is_some() && Condition::of(options)?.is_some() {
            return Err(Error::invalid("--root does not go with --wait-for"));
        }
        if self.root.is_some() && (self.app.is_some() || self.window_id.is_some()) {
            return Err(Error::invalid("--root names its window itself: leave --app and --window-id out"));
        }
        if let Some(root) = &self.root {
            RefTarget::parse(root, self.snapshot.as_deref())?;
        }
        if self.snapshot.is_some() && self.root.is_none() {
            return Err(Error::invalid("--snapshot is the snapshot of --root: there is no --root"));
        }
        Ok(())
    }

    fn run(&self, context: &Context<'_>) -> Result<Answer<SnapshotReply>> {
        if let Some(root) = &self.root {
            return self.drill(context, root).map(Answer::Plain);
        }
        let target = Target::new(self.app.as_deref(), self.window_id.as_deref(), self.surface.as_deref())?
                .with_surface_id(self.surface_id.as_deref());
        match Condition::of(context.options)? {
            Some(condition) => condition.wait(context, &target, self, None).map(Answer::Waited),
            None => self.take(context, &target).map(Answer::Plain),
        }
    }
}

/// A window as a tree.
#[derive(Clone, Debug)]
pub struct SnapshotReply {
    observed: Observed,
    view: Filtered,
    issued: Issued,
    ref_count: usize,
    snapshot_id: String,
    include_bounds: bool,
    waited: Option<WaitedFor>,
}

#[derive(Clone, Debug)]
struct WaitedFor {
    elapsed_ms: u64,
    selector: String,
    after_action: Option<serde_json::Value>,
}

impl SnapshotReply {
    /// The id under which its refs are stored.
    pub fn snapshot_id(&self) -> &str {
        &self.snapshot_id
    }

    pub(crate) fn waited(&mut self, elapsed_ms: u64, selector: String, after_action: Option<serde_json::Value>) {
        self.waited = Some(WaitedFor { elapsed_ms, selector, after_action });
    }
}

#[derive(Serialize)]
struct WindowTitle<'a> {
    id: &'a str,
    title: &'a str,
}

impl<'a> From<&'a Window> for WindowTitle<'a> {
    fn from(window: &'a Window) -> WindowTitle<'a> {
        WindowTitle { id: &window.id, title: &window.title }
    }
}

impl Serialize for SnapshotReply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let observation = &self.observed.observation;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("app", &self.observed.window.app_name)?;
        map.serialize_entry("window", &WindowTitle::from(&self.observed.window))?;
        map.serialize_entry("ref_count", &self.ref_count)?;
        map.serialize_entry("snapshot_id", &self.snapshot_id)?;
        map.serialize_entry("complete", &observation.stopped.is_none())?;
        if let Some(stop) = observation.stopped {
            map.serialize_entry("truncated", &true)?;
            map.serialize_entry("nodes_observed", &observation.nodes_visited)?;
            map.serialize_entry("stopped_by", observe::stop_word(stop))?;
        }
        if self.issued.is_cut() {
            map.serialize_entry("refs_left_out", &self.issued.left_out)?;
        }
        if observation.needs_activation {
            map.serialize_entry("renderer_accessibility_activation_required", &true)?;
            map.serialize_entry("suggestion", observe::ACTIVATION)?;
        }
        if let Some(waited) = &self.waited {
            map.serialize_entry("elapsed_ms", &waited.elapsed_ms)?;
            map.serialize_entry("matched_selector", &waited.selector)?;
            if let Some(data) = &waited.after_action {
                map.serialize_entry("after_action", data)?;
            }
        }
        if let Some(id) = self.view.root() {
            let tree = NodeData {
                tree: &observation.tree,
                view: &self.view,
                issued: &self.issued,
                snapshot_id: &self.snapshot_id,
                include_bounds: self.include_bounds,
                id,
            };
            map.serialize_entry("tree", &tree)?;
        }
        map.end()
    }
}

impl Reply for SnapshotReply {
    fn outline(&self) -> Option<String> {
        let observation = &self.observed.observation;
        let header = Header {
            app: &self.observed.window.app_name,
            window: &self.observed.window.title,
            snapshot_id: Some(&self.snapshot_id),
            stopped: observation.stopped,
            refs_cut: self.issued.is_cut(),
        };
        let style = Style { include_bounds: self.include_bounds };
        let mut text = outline::render(&header, &observation.tree, &self.view, &self.issued, style);
        if observation.needs_activation {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(observe::ACTIVATION);
        }
        Some(text)
    }
}
