//! `choose-file`: fills and accepts whatever file chooser is open.
//!
//! Every toolkit draws its own, and a portal draws one in a process of its own. So what is looked for is what they have in
//! common: a dialog with places on one side, files on the other, and buttons below. In each there is a field that takes a
//! whole path; where it does not show it is asked for first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_desktop_core::action::Action;
use agent_desktop_core::delivery::{Delivery, Step, StepOutcome};
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result, facts};
use agent_desktop_core::key::{Chord, Key, Modifier};
use agent_desktop_core::outline::{LINE_TEXT, MESSAGE_TEXT, quote};
use agent_desktop_core::platform::{App, Input, Limits, Scope, Surface, SurfaceKind, Window};
use agent_desktop_core::refs::{MAX_CANDIDATES, RefMap, RefTarget};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{NodeId, Tree};
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::act::{self, Request};
use crate::action_reply::ActionReply;
use crate::context::{Context, Options};
use crate::observe;
use crate::policy;
use crate::targets;
use crate::wait_for::{self, Answer};

/// How long it may take when nobody says, in milliseconds.
pub const CHOOSE_MS: u64 = 15_000;
/// Characters of a path.
pub(crate) const MAX_PATH: usize = 4096;
/// How long a chooser may take to show the field, and to close.
const PATIENCE: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(100);
/// How long a chooser that does not say when it is ready may take for that.
const SETTLING: Duration = Duration::from_millis(800);
/// How deep a chooser is read.
const DEPTH: u32 = 40;

/// Fill in and accept the file chooser that is open: a file to open, a name to save under, or a folder.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct ChooseFile {
    /// The file or folder; a relative one counts from the working directory.
    #[cfg_attr(feature = "clap", arg(value_name = "PATH"))]
    pub path: PathBuf,
    /// Only a chooser of this application; a portal shows them as one of its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    #[serde(default)]
    pub app: Option<String>,
    /// Give up after this many milliseconds [default: 15000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What was chosen.
#[derive(Clone, Debug, Serialize)]
pub struct ChooseFileReply {
    /// The whole path that was filled in.
    path: String,
    /// Title of the chooser.
    title: String,
    /// The application that showed it.
    app: String,
    #[serde(flatten)]
    done: ActionReply,
}

impl Reply for ChooseFileReply {
    fn outline(&self) -> Option<String> {
        Some(format!("{} in {}\n{}", quote(&self.path, LINE_TEXT), quote(&self.title, LINE_TEXT), self.done.outline()?))
    }

    fn delivery(&self) -> Option<&'static str> {
        self.done.delivery()
    }
}

/// An open chooser.
struct Chooser {
    app: App,
    window: Window,
    surface: Surface,
    tree: Tree,
}

impl Chooser {
    fn title(&self) -> String {
        self.surface.title.clone().unwrap_or_default()
    }

    /// The field that takes a path: what can be typed into and is no part of a list.
    fn field(&self) -> Option<NodeId> {
        let is_field = |&id: &NodeId| {
            let node = self.tree.node(id);
            let is_inside = |role: Role| {
                matches!(role, Role::ComboBox | Role::Table | Role::Outline | Role::List | Role::ListBox)
            };
            node.role == Role::TextField
                && !node.states.has(State::ReadOnly)
                && !node.states.has(State::Secure)
                && !self.tree.ancestors(id).any(|above| is_inside(self.tree.node(above).role))
        };
        let fields: Vec<NodeId> = (0..self.tree.len() as NodeId).filter(is_field).collect();
        let focused = fields.iter().find(|&&id| self.tree.node(id).states.has(State::Focused));
        focused.or(fields.first()).copied()
    }

    /// The button that accepts: the one that Enter presses, else the last of those below.
    fn accept(&self, context: &Context<'_>) -> Result<Option<NodeId>> {
        let default = context.platform.default_button(&self.surface.handle, context.deadline)?;
        let by_handle = |handle| self.tree.iter().find(|(_, node)| node.handle == handle).map(|(id, _)| id);
        if let Some(id) = default.and_then(by_handle) {
            return Ok(Some(id));
        }
        // GTK 4 names no such button. It looks the path up in the background, shows nothing of that, and forgets a click
        // that comes before it is done.
        context.pause(SETTLING);
        Ok(buttons(&self.tree).pop())
    }

    fn reference(&self, context: &Context<'_>, id: NodeId) -> Result<String> {
        let allocation = observe::allocation(&self.window, SurfaceKind::Sheet, true);
        let (map, issued) = RefMap::allocate_for(&self.tree, &[id], &allocation);
        let snapshot = context.store.save(&map)?;
        let number = issued.number(id).ok_or_else(|| Error::internal("an element of a chooser got no ref"))?;
        Ok(RefTarget::new(&snapshot, number).to_string())
    }

    fn read(&mut self, context: &Context<'_>) -> Result<()> {
        self.tree = tree_of(context, &self.window, &self.surface)?;
        Ok(())
    }

    fn is_open(&self, context: &Context<'_>) -> Result<bool> {
        let open = context.platform.surfaces(&self.app, Some(SurfaceKind::Sheet), context.deadline)?;
        Ok(open.iter().any(|surface| surface.handle == self.surface.handle))
    }
}

fn tree_of(context: &Context<'_>, window: &Window, surface: &Surface) -> Result<Tree> {
    let scope = Scope { window: window.clone(), root: Some(surface.handle.clone()) };
    let limits = Limits { max_depth: DEPTH, ..Limits::default() };
    Ok(context.platform.observe(&scope, &limits, context.deadline)?.tree)
}

/// The buttons of a dialog, without those of its lists.
fn buttons(tree: &Tree) -> Vec<NodeId> {
    let is_list = |role: Role| matches!(role, Role::ScrollArea | Role::Splitter | Role::MenuButton);
    let is_button = |&id: &NodeId| {
        tree.node(id).role == Role::Button && !tree.ancestors(id).any(|above| is_list(tree.node(above).role))
    };
    (0..tree.len() as NodeId).filter(is_button).collect()
}

/// Whether a dialog is a file chooser, by what it is made of. No name is looked at: they are translated.
fn is_chooser(tree: &Tree) -> bool {
    let has = |id: NodeId, wanted: &dyn Fn(Role) -> bool| tree.subtree(id).any(|below| wanted(tree.node(below).role));
    let count = |id: NodeId, wanted: Role| tree.subtree(id).filter(|&below| tree.node(below).role == wanted).count();
    let Some(root) = tree.root() else { return false };
    let all = || tree.subtree(root);
    let of_role = |role: Role| all().filter(move |&id| tree.node(id).role == role);
    // GTK 3 and Qt: places and files with a splitter between them.
    let is_split = of_role(Role::Splitter).any(|id| {
        let has_places = has(id, &|role| matches!(role, Role::ListBox | Role::List));
        has_places && has(id, &|role| matches!(role, Role::Table | Role::Outline | Role::List))
    });
    let is_in_gtk3 = of_role(Role::Dialog).any(|id| id != root);
    let is_in_qt = of_role(Role::ComboBox).count() >= 2 && of_role(Role::TextField).next().is_some();
    if is_split && (is_in_gtk3 || is_in_qt) {
        return true;
    }
    // GTK 4: a list of places, and files below the buttons that sort them.
    let areas: Vec<NodeId> = of_role(Role::ScrollArea).collect();
    let has_places = areas.iter().any(|&id| has(id, &|role| role == Role::List) && count(id, Role::Option) >= 2);
    let has_files = areas.iter().any(|&id| count(id, Role::Button) >= 4);
    has_places && has_files && buttons(tree).len() >= 2
}

impl ChooseFile {
    /// The path as the chooser gets it.
    fn whole(&self) -> Result<String> {
        let path = if self.path.is_absolute() {
            self.path.clone()
        } else {
            let here = std::env::current_dir().map_err(|error| {
                Error::invalid("a relative path needs a working directory, and there is none").platform_detail(error.to_string())
            })?;
            here.join(&self.path)
        };
        let path = path.to_str().ok_or_else(|| Error::invalid("the path is no text that can be typed"))?;
        // A folder that ends in a slash is opened by some choosers, and not chosen.
        let trimmed = path.trim_end_matches('/');
        Ok(if trimmed.is_empty() { "/" } else { trimmed }.to_owned())
    }

    fn open_choosers(&self, context: &Context<'_>) -> Result<Vec<Chooser>> {
        let apps = match &self.app {
            Some(name) => targets::apps_named(context, name)?,
            None => context.platform.apps(context.deadline)?,
        };
        let mut found = Vec::new();
        for app in apps.into_iter().filter(|app| app.handle.is_some()) {
            let surfaces = match context.platform.surfaces(&app, Some(SurfaceKind::Sheet), context.deadline) {
                Ok(surfaces) => surfaces,
                // Of all applications one that is silent has no say.
                Err(error) if self.app.is_none() && error.code() == ErrorCode::AppUnresponsive => continue,
                Err(error) => return Err(error),
            };
            if surfaces.is_empty() {
                continue;
            }
            let windows = context.platform.windows(Some(&app), context.deadline)?;
            for surface in surfaces {
                let own = windows.iter().find(|window| window.handle.as_ref() == Some(&surface.handle));
                let Some(window) = own.or_else(|| windows.iter().find(|window| window.is_focused)).or(windows.first())
                else {
                    continue;
                };
                let tree = tree_of(context, window, &surface)?;
                if is_chooser(&tree) {
                    found.push(Chooser { app: app.clone(), window: window.clone(), surface, tree });
                }
            }
        }
        Ok(found)
    }

    /// The only chooser that is open, as soon as there is one.
    fn chooser(&self, context: &Context<'_>) -> Result<Chooser> {
        loop {
            let mut found = self.open_choosers(context)?;
            match found.len() {
                1 => return Ok(found.remove(0)),
                0 if context.poll(POLL * 2) => {}
                0 => {
                    return Err(Error::new(ErrorCode::ElementNotFound, "no file chooser is open")
                        .kind("file_chooser_not_open")
                        .hint("list-surfaces shows what is open; a chooser that is not known as one is filled in with set-value and click")
                        .delivery(Delivery::NotDelivered));
                }
                count => return Err(ambiguous(&found, count)),
            }
        }
    }

    /// Makes the chooser show the field for a path.
    fn show_field(context: &Context<'_>, chooser: &mut Chooser) -> Result<(NodeId, Vec<Step>)> {
        if let Some(field) = chooser.field() {
            return Ok((field, Vec::new()));
        }
        let lease = context.take_lease()?;
        context.begin_delivery();
        let mut steps = Vec::new();
        if context.platform.show_location(&chooser.surface.handle, context.deadline)? {
            steps.push(Step::semantic("show_location", StepOutcome::Succeeded));
        } else if context.options.headed {
            act::focus_window(context, &chooser.window)?;
            let chord = Chord { modifiers: vec![Modifier::Ctrl], key: Key::Char('l') };
            context.dispatch(None, "show_location", &Input::Chord(chord))?;
            steps.push(Step::physical("show_location", StepOutcome::Succeeded));
        } else {
            return Err(policy::needs_headed("a chooser that shows no field for a path").delivery(Delivery::NotDelivered));
        }
        drop(lease);
        let patience = context.deadline.within(context.now(), PATIENCE);
        loop {
            chooser.read(context)?;
            if let Some(field) = chooser.field() {
                return Ok((field, steps));
            }
            if !context.pause_until(patience, POLL) {
                return Err(Error::new(ErrorCode::ActionFailed, "the file chooser shows no field for a path")
                    .delivery(Delivery::Unverified)
                    .hint("look at it with snapshot --surface sheet, and choose in its list"));
            }
        }
    }

    fn choose(&self, context: &Context<'_>) -> Result<ChooseFileReply> {
        let path = self.whole()?;
        let mut chooser = self.chooser(context)?;
        let (field, shown) = ChooseFile::show_field(context, &mut chooser)?;
        // Keys are for what cannot be done otherwise: a list of completions would take the first click of a pointer.
        let quiet = Options { headed: false, ..context.options.clone() };
        let headless = Context { store: context.store.clone(), options: &quiet, ..*context };
        let reference = chooser.reference(context, field)?;
        let filled = act::run(&headless, &reference, None, Request::SetValue(&path))?;
        // The button may be there or be enabled only now.
        chooser.read(context)?;
        let accept = chooser.accept(context)?.ok_or_else(|| {
            Error::new(ErrorCode::ActionFailed, "the file chooser has no button that accepts")
                .delivery(Delivery::Unverified)
        })?;
        let reference = chooser.reference(context, accept)?;
        let mut done = act::run(&headless, &reference, None, Request::Plain(Action::Click))
            .map_err(|error| error.redelivered(Delivery::Unverified))?;
        done.action = "choose_file";
        let mut steps: Vec<_> = shown.iter().map(Into::into).collect();
        steps.extend(filled.steps);
        steps.append(&mut done.steps);
        done.steps = steps;
        let patience = context.deadline.within(context.now(), PATIENCE);
        while chooser.is_open(context)? {
            if !context.pause_until(patience, POLL) {
                return Err(ChooseFile::still_open(context, &chooser));
            }
        }
        if let Some(step) = done.steps.last_mut() {
            step.verified = Some(true);
        }
        done.surfaces.retain(|surface| surface.id != chooser.surface.id);
        let done = done.delivered(Delivery::Verified);
        Ok(ChooseFileReply { path, title: chooser.title(), app: chooser.app.name, done })
    }

    fn still_open(context: &Context<'_>, chooser: &Chooser) -> Error {
        let open = observe::open_surfaces(context, &chooser.app).unwrap_or_default();
        let describe = |surface: &Surface| {
            facts([("type", surface.kind.into()), ("title", surface.title.clone().unwrap_or_default().into())])
        };
        Error::new(ErrorCode::ActionFailed, "the file chooser is still open")
            .kind("file_chooser_not_closed")
            .detail("surfaces", Fact::List(open.iter().map(describe).collect()))
            .delivery(Delivery::Unverified)
            .hint("it may ask whether to replace a file, or refuse the path: look with snapshot --surface sheet")
    }
}

fn ambiguous(found: &[Chooser], count: usize) -> Error {
    let candidate = |chooser: &Chooser| {
        facts([
            ("app", chooser.app.name.clone().into()),
            ("title", chooser.title().into()),
            ("pick", format!("pid:{}", chooser.app.pid).into()),
        ])
    };
    let names: Vec<String> =
        found.iter().take(3).map(|chooser| quote(&chooser.title(), MESSAGE_TEXT)).collect();
    Error::new(
        ErrorCode::AmbiguousTarget,
        format!("{count} file choosers are open: {}", names.join(", ")),
    )
    .detail("candidate_count", count)
    .detail("candidates", Fact::List(found.iter().take(MAX_CANDIDATES).map(candidate).collect()))
    .hint("say with --app whose is meant")
    .delivery(Delivery::NotDelivered)
}

impl Run for ChooseFile {
    type Reply = Answer<ChooseFileReply>;

    fn check(&self, _: &Options) -> Result<()> {
        let text = self.path.as_os_str();
        if text.is_empty() || text.as_encoded_bytes().contains(&0) || text.len() > MAX_PATH {
            return Err(Error::invalid(format!("a path has 1 to {MAX_PATH} bytes, and no NUL")));
        }
        if Path::new(text).to_str().is_some_and(|text| text.contains('\n')) {
            return Err(Error::invalid("a path with a line break cannot be typed into a chooser"));
        }
        Ok(())
    }

    fn run(&self, context: &Context<'_>) -> Result<Answer<ChooseFileReply>> {
        let reply = self.choose(context)?;
        wait_for::finish(context, reply, None)
    }
}
