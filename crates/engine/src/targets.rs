//! Which application and which window a command is about.
//!
//! Names are matched whole, in any case; several matches are an error that lists them, each with what picks it. Nothing
//! is ever picked by being first.

use agent_desktop_core::error::{Error, ErrorCode, Fact, Result};
use agent_desktop_core::outline;
use agent_desktop_core::platform::{App, Window};
use agent_desktop_core::query::fold;
use agent_desktop_core::refs::MAX_CANDIDATES;

use crate::context::Context;
use crate::wire::{app_candidate, window_candidate};

/// Every running application of this name: by its name, else by its application id, else by `pid:N`.
///
/// # Errors
/// `APP_NOT_FOUND` when there is none.
pub fn apps_named(context: &Context<'_>, name: &str) -> Result<Vec<App>> {
    let all = context.platform.apps(context.deadline)?;
    let silent: Vec<App> = all.iter().filter(|app| app.accessible.is_none()).cloned().collect();
    let apps = named(all, name);
    match (apps.is_empty(), silent.is_empty()) {
        (false, _) => Ok(apps),
        (true, true) => Err(app_not_found(name)),
        // One of those that do not answer may have this name: nobody can say that there is none.
        (true, false) => {
            let names: Vec<String> = silent
                .iter()
                .take(MAX_CANDIDATES)
                .map(|app| format!("{} (pid {})", app.name, app.pid))
                .collect();
            let candidates: Vec<Fact> = silent.iter().take(MAX_CANDIDATES).map(app_candidate).collect();
            Err(Error::new(
                ErrorCode::AppUnresponsive,
                format!(
                    "no application that answers is named {}; {} does not answer and may be it",
                    quote(name),
                    names.join(", ")
                ),
            )
            .kind("app_unresponsive")
            .retryable(true)
            .detail("candidates", Fact::List(candidates))
            .hint("see whether it hangs, or name it by its process: pid:N"))
        }
    }
}

/// Those of `apps` that the name means.
pub(crate) fn named(apps: Vec<App>, name: &str) -> Vec<App> {
    let folded = fold(name);
    if folded.is_empty() {
        return Vec::new();
    }
    let pid: Option<u32> = folded.strip_prefix("pid:").and_then(|number| number.parse().ok());
    let by_name = |app: &App| fold(&app.name) == folded;
    let by_id = |app: &App| app.application_id.as_deref().is_some_and(|id| fold(id) == folded);
    let by_process = |app: &App| Some(app.pid) == pid;
    let rules: [&dyn Fn(&App) -> bool; 3] = [&by_name, &by_id, &by_process];
    let mut found: Vec<App> = match rules.iter().find(|rule| apps.iter().any(rule)) {
        Some(rule) => apps.into_iter().filter(rule).collect(),
        None => Vec::new(),
    };
    // One process may register several times; the one that has content speaks for it.
    found.sort_by_key(|app| (app.pid, app.handle.is_none()));
    found.dedup_by(|later, earlier| {
        later.pid == earlier.pid && later.process_instance == earlier.process_instance
    });
    found
}

fn quote(text: &str) -> String {
    outline::quote(text, outline::MESSAGE_TEXT)
}

fn app_not_found(name: &str) -> Error {
    // An application's name is what is printed on the screen, not a secret.
    Error::new(ErrorCode::AppNotFound, format!("no running application is named {}", quote(name)))
        .hint("list-apps shows the names; start it with launch")
}

/// The one running application of this name.
///
/// # Errors
/// `APP_NOT_FOUND`, `AMBIGUOUS_TARGET` with candidates.
pub fn app(context: &Context<'_>, name: &str) -> Result<App> {
    let app = one_app(apps_named(context, name)?, name)?;
    context.audit.note((&app).into());
    Ok(app)
}

pub(crate) fn one_app(mut apps: Vec<App>, name: &str) -> Result<App> {
    match (apps.pop(), apps.is_empty()) {
        (None, _) => Err(app_not_found(name)),
        (Some(app), true) => Ok(app),
        (Some(app), false) => {
            apps.push(app);
            let candidates: Vec<Fact> = apps.iter().take(MAX_CANDIDATES).map(app_candidate).collect();
            Err(Error::new(
                ErrorCode::AmbiguousTarget,
                format!("{} applications are named {}", apps.len(), quote(name)),
            )
            .detail("candidate_count", apps.len())
            .detail("candidates", Fact::List(candidates))
            .hint("name one by its process, as each candidate says, or name a window with --window-id"))
        }
    }
}

/// The one running application of this name, with proof of which process it is: what a mutation needs.
///
/// # Errors
/// As [`app`]; `ACTION_NOT_SUPPORTED` when the system gives no such proof.
pub fn identified_app(context: &Context<'_>, name: &str) -> Result<App> {
    let app = app(context, name)?;
    if app.process_instance.is_none() {
        return Err(Error::new(
            ErrorCode::ActionNotSupported,
            format!("{} (pid {}) cannot be told from a later process of the same number", app.name, app.pid),
        ));
    }
    Ok(app)
}

/// The application of a window.
///
/// # Errors
/// `APP_NOT_FOUND` when it is gone by now.
pub fn app_of(context: &Context<'_>, window: &Window) -> Result<App> {
    let apps = context.platform.apps(context.deadline)?;
    let is_owner = |app: &&App| app.pid == window.pid && app.process_instance == window.process_instance;
    let mut owners: Vec<&App> = apps.iter().filter(is_owner).collect();
    // Several applications in one process: the one the window names.
    owners.sort_by_key(|app| (app.name != window.app_name, app.handle.is_none()));
    owners.first().copied().cloned().ok_or_else(|| app_not_found(&window.app_name))
}

/// The application of this name, or that of the focused window.
///
/// # Errors
/// `APP_NOT_FOUND`, `AMBIGUOUS_TARGET`; `WINDOW_NOT_FOUND` when no window has the focus.
pub fn app_or_focused(context: &Context<'_>, name: Option<&str>) -> Result<App> {
    match name {
        Some(name) => app(context, name),
        None => app_of(context, &focused_window(context)?),
    }
}

fn focused_window(context: &Context<'_>) -> Result<Window> {
    let windows = context.platform.windows(None, context.deadline)?;
    windows.into_iter().find(|window| window.is_focused).ok_or_else(|| {
        Error::new(ErrorCode::WindowNotFound, "no window has the focus")
            .hint("name the application with --app, or a window of list-windows with --window-id")
    })
}

/// The window a command is about: the one of this id, else of the named application, else the focused one.
///
/// # Errors
/// `WINDOW_NOT_FOUND`, `APP_NOT_FOUND`, `AMBIGUOUS_TARGET` with candidates.
pub fn window(context: &Context<'_>, id: Option<&str>, app_name: Option<&str>) -> Result<Window> {
    let window = chosen_window(context, id, app_name)?;
    context.audit.note((&window).into());
    Ok(window)
}

fn chosen_window(context: &Context<'_>, id: Option<&str>, app_name: Option<&str>) -> Result<Window> {
    match (id, app_name) {
        (Some(id), app_name) => {
            let windows = context.platform.windows(None, context.deadline)?;
            let window =
                windows.into_iter().find(|window| window.id == id).ok_or_else(|| no_window_of_id(id))?;
            if let Some(name) = app_name {
                let owner = app(context, name)?;
                if owner.pid != window.pid {
                    return Err(Error::new(
                        ErrorCode::WindowNotFound,
                        format!("window {id} belongs to {}, not to {}", window.app_name, owner.name),
                    )
                    .hint("leave --app out, or take an id from list-windows --app"));
                }
            }
            Ok(window)
        }
        (None, Some(name)) => {
            let app = app(context, name)?;
            let windows = context.platform.windows(Some(&app), context.deadline)?;
            one_window(windows, &format!("{} has", app.name))
        }
        (None, None) => focused_window(context),
    }
}

fn no_window_of_id(id: &str) -> Error {
    Error::new(ErrorCode::WindowNotFound, format!("there is no window {id}"))
        .hint("list-windows shows the ids; they end with their window")
}

/// One of several windows: the only one; else the only visible one; else the only focused one of those.
///
/// # Errors
/// `WINDOW_NOT_FOUND` for none, `AMBIGUOUS_TARGET` with candidates.
pub(crate) fn one_window(windows: Vec<Window>, subject: &str) -> Result<Window> {
    if windows.is_empty() {
        return Err(Error::new(ErrorCode::WindowNotFound, format!("{subject} no window"))
            .hint("it may still be starting: wait --window TITLE waits for one"));
    }
    if windows.len() == 1 {
        return Ok(windows.into_iter().next().expect("there is exactly one"));
    }
    let is_visible = |window: &&Window| window.visible != Some(false) && window.minimized != Some(true);
    let visible: Vec<&Window> = windows.iter().filter(is_visible).collect();
    if let [only] = visible[..] {
        return Ok(only.clone());
    }
    let focused: Vec<&&Window> = visible.iter().filter(|window| window.is_focused).collect();
    if let [only] = focused[..] {
        return Ok((*only).clone());
    }
    let listed: Vec<&Window> = if visible.is_empty() { windows.iter().collect() } else { visible };
    Err(ambiguous_windows(&listed, subject))
}

pub(crate) fn ambiguous_windows(windows: &[&Window], subject: &str) -> Error {
    let candidates: Vec<Fact> =
        windows.iter().take(MAX_CANDIDATES).map(|window| window_candidate(window)).collect();
    Error::new(ErrorCode::AmbiguousTarget, format!("{subject} {} windows", windows.len()))
        .detail("candidate_count", windows.len())
        .detail("candidates", Fact::List(candidates))
        .hint("name one with --window-id, as each candidate says")
}

/// Looks at a window again: same id, process and process instance. Title and place may have changed.
///
/// # Errors
/// `WINDOW_NOT_FOUND` when it is gone; `STALE_REF` when its id belongs to another process now.
pub fn recheck(context: &Context<'_>, window: &Window) -> Result<Window> {
    rechecked(&context.platform.windows(None, context.deadline)?, window)
}

/// The same, in a list of all windows that is there already.
pub(crate) fn rechecked(windows: &[Window], window: &Window) -> Result<Window> {
    let live = windows.iter().find(|live| live.id == window.id).ok_or_else(|| no_window_of_id(&window.id))?;
    if live.pid == window.pid && live.process_instance == window.process_instance {
        Ok(live.clone())
    } else {
        Err(Error::new(ErrorCode::StaleRef, format!("window {} belongs to another process now", window.id))
            .kind("process_changed"))
    }
}

/// Looks at an application again: same process, instance, name and application id.
///
/// # Errors
/// `STALE_REF` when it is not the same any more.
pub fn recheck_app(context: &Context<'_>, app: &App) -> Result<App> {
    let is_same = |live: &App| {
        live.pid == app.pid
            && live.process_instance == app.process_instance
            && live.name == app.name
            && live.application_id == app.application_id
    };
    context.platform.apps(context.deadline)?.into_iter().find(is_same).ok_or_else(|| {
        Error::new(
            ErrorCode::StaleRef,
            format!("{} (pid {}) is not the same application any more", app.name, app.pid),
        )
        .kind("process_changed")
        .hint("list-apps shows what runs now")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_desktop_core::tree::Handle;

    fn app(name: &str, pid: u32, id: Option<&str>, has_content: bool) -> App {
        App {
            name: name.to_owned(),
            pid,
            process_instance: Some(format!("p{pid}")),
            application_id: id.map(str::to_owned),
            presentation: None,
            toolkit: None,
            handle: has_content.then(|| Handle::new("h")),
            accessible: Some(true),
        }
    }

    fn window(id: &str, focused: bool, visible: Option<bool>) -> Window {
        Window {
            id: id.to_owned(),
            title: String::new(),
            app_name: "a".to_owned(),
            pid: 1,
            process_instance: None,
            bounds: None,
            is_focused: focused,
            minimized: None,
            visible,
            is_modal: false,
            frame: None,
            maximized: None,
            handle: None,
            accessible: Some(true),
        }
    }

    #[test]
    fn names_are_whole_and_fold_and_ids_and_pids_come_after() {
        let apps =
            || vec![app("Text  Editor", 1, Some("org.x.Edit"), true), app("org.x.Edit", 2, None, true)];
        let pids = |name: &str| named(apps(), name).iter().map(|app| app.pid).collect::<Vec<_>>();
        assert_eq!(pids(" text editor"), [1]);
        assert_eq!(pids("ORG.X.EDIT"), [2], "a name goes before an id");
        assert_eq!(pids("pid:2"), [2]);
        assert_eq!(pids("text"), [0_u32; 0]);
        assert_eq!(pids(""), [0_u32; 0]);
    }

    #[test]
    fn one_process_that_registered_twice_is_one_application() {
        let found = named(vec![app("a", 1, None, false), app("a", 1, None, true)], "a");
        assert_eq!(found.len(), 1);
        assert!(found[0].handle.is_some());
    }

    #[test]
    fn several_instances_are_listed_with_what_picks_each() {
        let error = one_app(vec![app("a", 1, None, true), app("a", 2, None, true)], "a").unwrap_err();
        assert_eq!(error.code(), ErrorCode::AmbiguousTarget);
        let text = crate::envelope::failure("x", &error);
        assert!(
            text.contains(
                r#""candidates":[{"name":"a","pid":1,"pick":"pid:1"},{"name":"a","pid":2,"pick":"pid:2"}]"#
            ),
            "{text}"
        );
    }

    #[test]
    fn visible_then_focused_then_ambiguous() {
        let pick = |windows: Vec<Window>| {
            one_window(windows, "a has").map(|window| window.id).map_err(|error| error.code())
        };
        assert_eq!(pick(vec![]), Err(ErrorCode::WindowNotFound));
        assert_eq!(pick(vec![window("1", false, Some(false))]), Ok("1".to_owned()));
        assert_eq!(pick(vec![window("1", false, Some(false)), window("2", false, None)]), Ok("2".to_owned()));
        assert_eq!(pick(vec![window("1", false, None), window("2", true, None)]), Ok("2".to_owned()));
        assert_eq!(
            pick(vec![window("1", true, None), window("2", true, None)]),
            Err(ErrorCode::AmbiguousTarget)
        );
        assert_eq!(
            pick(vec![window("1", false, Some(false)), window("2", true, Some(false))]),
            Err(ErrorCode::AmbiguousTarget)
        );
    }
}
