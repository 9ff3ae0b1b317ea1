//! `menu`: what is in the menus, and opening and choosing by path.

use agent_desktop_core::error::Result;
use agent_desktop_core::menu_path;
use agent_desktop_core::outline::{LINE_TEXT, quote};
use agent_desktop_core::refs::{Issued, RefTarget};
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{NodeId, Tree};
use serde::{Deserialize, Serialize};

use super::{Effects, Reply, Run, lines};
use crate::action_reply::ActionReply;
use crate::context::{Context, Options};
use crate::menus::{self, items_below};
use crate::targets;
use crate::wait_for::{self, Answer};

/// How long a walk through menus may take when nobody says, in milliseconds: it is several clicks.
pub const WALK_MS: u64 = 15_000;

/// List menus, and open or choose by path, such as "File/Export as/PDF".
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(transparent)]
pub struct Menu {
    /// What is done.
    #[cfg_attr(feature = "clap", command(subcommand))]
    pub action: MenuAction,
}

/// What `menu` does.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum MenuAction {
    /// List the menu bar and the menu buttons of a window, or what is below a path, and open nothing.
    List(MenuList),
    /// Open menu after menu along a path, and choose what its end names; a menu at the end stays open.
    Open(MenuOpen),
}

/// List the menu bar and the menu buttons of a window, or what is below a path, and open nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct MenuList {
    /// List what is below this path, names with / between them.
    #[cfg_attr(feature = "clap", arg(value_name = "PATH"))]
    pub path: Option<String>,
    /// The application; its only visible or its focused window is used.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub app: Option<String>,
    /// The window with this id, as list-windows shows it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    pub window_id: Option<String>,
    /// Give up after this many milliseconds [default: 15000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// Open menu after menu along a path, and choose what its end names; a menu at the end stays open.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct MenuOpen {
    /// Names with / between them, such as "File/Export as/PDF"; \/ is a slash in a name.
    #[cfg_attr(feature = "clap", arg(value_name = "PATH"))]
    pub path: String,
    /// The application; its only visible or its focused window is used.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    #[serde(default)]
    pub app: Option<String>,
    /// The window with this id, as list-windows shows it.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    #[serde(default)]
    pub window_id: Option<String>,
    /// Give up after this many milliseconds [default: 15000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// An item of a menu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemData {
    #[serde(skip_serializing_if = "Option::is_none")]
    ref_id: Option<String>,
    role: &'static str,
    name: String,
    /// The path that `menu open` takes.
    path: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    states: Vec<&'static str>,
    /// What is in its menu, as far as that is known while it is closed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<ItemData>,
}

/// What was listed.
#[derive(Clone, Debug, Serialize)]
pub struct MenuListReply {
    items: Vec<ItemData>,
    /// Whether everything that the application publishes is here.
    complete: bool,
    /// Why there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

/// What was chosen.
#[derive(Clone, Debug, Serialize)]
pub struct MenuOpenReply {
    /// The names on the way, as they stand in the menus.
    path: Vec<String>,
    #[serde(flatten)]
    done: ActionReply,
}

/// What `menu` answers.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum MenuReply {
    /// `menu list`.
    Listed(MenuListReply),
    /// `menu open`.
    Opened(Answer<MenuOpenReply>),
}

impl ItemData {
    fn write(&self, depth: usize, text: &mut Vec<String>) {
        let mut line = format!("{}{} {}", "  ".repeat(depth), self.role, quote(&self.name, LINE_TEXT));
        if let Some(reference) = &self.ref_id {
            line.push(' ');
            line.push_str(reference);
        }
        for state in &self.states {
            line.push(' ');
            line.push_str(state);
        }
        text.push(line);
        for item in &self.items {
            item.write(depth + 1, text);
        }
    }
}

impl Reply for MenuOpenReply {
    fn outline(&self) -> Option<String> {
        let path = menu_path::write(self.path.iter().map(String::as_str));
        Some(format!("{}\n{}", quote(&path, LINE_TEXT), self.done.outline()?))
    }

    fn delivery(&self) -> Option<&'static str> {
        self.done.delivery()
    }
}

impl Reply for MenuReply {
    fn outline(&self) -> Option<String> {
        match self {
            MenuReply::Listed(reply) => {
                let mut text = Vec::new();
                for item in &reply.items {
                    item.write(0, &mut text);
                }
                text.extend(reply.suggestion.as_ref().map(|suggestion| format!("({suggestion})")));
                Some(lines(text.into_iter(), "no menus"))
            }
            MenuReply::Opened(reply) => reply.outline(),
        }
    }

    fn delivery(&self) -> Option<&'static str> {
        match self {
            MenuReply::Listed(_) => None,
            MenuReply::Opened(reply) => reply.delivery(),
        }
    }
}

/// Every item of these, those in their menus included.
fn with_all_below(tree: &Tree, items: &[NodeId]) -> Vec<NodeId> {
    items.iter().flat_map(|&id| {
        let mut all = vec![id];
        all.extend(with_all_below(tree, &items_below(tree, id)));
        all
    }).collect()
}

struct Listing<'a> {
    tree: &'a Tree,
    snapshot_id: String,
    issued: Issued,
}

impl Listing<'_> {
    fn item(&self, id: NodeId, above: &[String]) -> ItemData {
        let node = self.tree.node(id);
        let name = node.label();
        let path = [above, std::slice::from_ref(&name)].concat();
        let below = items_below(self.tree, id);
        ItemData {
            ref_id: self.issued.number(id).map(|number| RefTarget::new(&self.snapshot_id, number).to_string()),
            role: node.role.as_str(),
            path: menu_path::write(path.iter().map(String::as_str)),
            name,
            // That a closed menu hides its items goes without saying.
            states: node
                .states
                .iter()
                .filter(|state| !matches!(state, State::Hidden | State::Offscreen))
                .map(State::as_str)
                .collect(),
            items: below.into_iter().map(|id| self.item(id, &path)).collect(),
        }
    }
}

impl MenuList {
    fn run(&self, context: &Context<'_>) -> Result<MenuListReply> {
        let window = targets::window(context, self.window_id.as_deref(), self.app.as_deref())?;
        let app = targets::app_of(context, &window)?;
        let mut levels = menus::first_levels(context, &app, &window)?;
        let mut above: Vec<String> = Vec::new();
        match &self.path {
            None => levels.push(menus::all_buttons(context, &window)?),
            Some(path) => {
                let parts = menu_path::parse(path)?;
                let mut found = menus::find(&levels, &parts[0])?;
                if found.is_none() {
                    levels.push(menus::all_buttons(context, &window)?);
                    found = menus::find(&levels, &parts[0])?;
                }
                let Some((index, mut item)) = found else {
                    return Err(menus::missing(&levels, &parts[0], &[]));
                };
                let mut level = levels.swap_remove(index);
                above.push(level.tree.node(item).label());
                level.items = items_below(&level.tree, item);
                for part in &parts[1..] {
                    match menus::find(std::slice::from_ref(&level), part)? {
                        Some((_, next)) => item = next,
                        None => return Err(menus::missing(&[level], part, &above)),
                    }
                    above.push(level.tree.node(item).label());
                    level.items = items_below(&level.tree, item);
                }
                levels = vec![level];
            }
        }
        let complete = levels.iter().all(|level| level.is_complete);
        let mut items = Vec::new();
        for level in levels.iter().filter(|level| !level.items.is_empty()) {
            let all = with_all_below(&level.tree, &level.items);
            let (snapshot_id, issued) = level.issue(context, &all)?;
            let listing = Listing { tree: &level.tree, snapshot_id, issued };
            items.extend(level.items.iter().map(|&id| listing.item(id, &above)));
        }
        let suggestion = (items.is_empty() && !above.is_empty()).then(|| {
            "this menu shows its items only while it is open: menu open with this path opens it".to_owned()
        });
        Ok(MenuListReply { items, complete, suggestion })
    }
}

impl MenuOpen {
    fn run(&self, context: &Context<'_>) -> Result<Answer<MenuOpenReply>> {
        let path = menu_path::parse(&self.path)?;
        let window = targets::window(context, self.window_id.as_deref(), self.app.as_deref())?;
        let app = targets::app_of(context, &window)?;
        let walked = menus::walk(context, &app, &window, &path)?;
        let reply = MenuOpenReply { path: walked.path, done: walked.reply };
        wait_for::finish(context, reply, Some(window.id))
    }
}

impl Menu {
    /// The deadline asked for.
    pub(super) fn own_timeout(&self) -> Option<u64> {
        match &self.action {
            MenuAction::List(action) => action.timeout_ms,
            MenuAction::Open(action) => action.timeout_ms,
        }
    }
}

impl Run for Menu {
    type Reply = MenuReply;

    fn effects(&self, table: Effects) -> Effects {
        if matches!(self.action, MenuAction::List(_)) { Effects::READS } else { table }
    }

    fn check(&self, _: &Options) -> Result<()> {
        let path = match &self.action {
            MenuAction::List(list) => list.path.as_deref(),
            MenuAction::Open(open) => Some(open.path.as_str()),
        };
        path.map(menu_path::parse).transpose().map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<MenuReply> {
        match &self.action {
            MenuAction::List(list) => list.run(context).map(MenuReply::Listed),
            MenuAction::Open(open) => open.run(context).map(MenuReply::Opened),
        }
    }
}
