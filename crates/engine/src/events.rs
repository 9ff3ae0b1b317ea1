//! What a caller may wait for by `wait --event`: which event is meant, and what it looks like in JSON.

use std::cell::RefCell;

use agent_desktop_core::Deadline;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result, facts};
use agent_desktop_core::outline::{LINE_TEXT, MESSAGE_TEXT, quote};
use agent_desktop_core::platform::{App, DesktopEvent, DesktopWatch, Platform, Window};
use serde::Serialize;

use crate::context::Context;
use crate::targets;
use crate::wire::SurfaceData;

/// Where a batch keeps the watch that it began before the entry in front of a `wait --event`.
pub(crate) type Begun = RefCell<Option<Box<dyn DesktopWatch>>>;

/// What a command is a part of.
#[derive(Clone, Copy)]
pub(crate) struct Outer<'a> {
    /// By when all of it answers.
    pub(crate) deadline: Deadline,
    /// The watch that has begun already.
    pub(crate) watch: &'a Begun,
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    WindowOpened,
    WindowClosed,
    AppLaunched,
    AppTerminated,
    FocusChanged,
    SurfaceAppeared,
    SurfaceDismissed,
}

impl Kind {
    const ALL: [(Kind, &'static str); 7] = [
        (Kind::WindowOpened, "window-opened"),
        (Kind::WindowClosed, "window-closed"),
        (Kind::AppLaunched, "app-launched"),
        (Kind::AppTerminated, "app-terminated"),
        (Kind::FocusChanged, "focus-changed"),
        (Kind::SurfaceAppeared, "surface-appeared"),
        (Kind::SurfaceDismissed, "surface-dismissed"),
    ];

    /// Reads a kind as it is typed, or as it stands in a reply.
    pub(crate) fn parse(text: &str) -> Result<Kind> {
        let wanted = text.replace('_', "-");
        let wanted = wanted.strip_suffix("-window").unwrap_or(&wanted);
        Kind::ALL.iter().find(|(_, word)| *word == wanted).map(|(kind, _)| *kind).ok_or_else(|| {
            let words: Vec<&str> = Kind::ALL.iter().map(|(_, word)| *word).collect();
            Error::invalid(format!("--event is one of {}", words.join(", ")))
        })
    }

    /// As it is typed.
    pub(crate) fn word(self) -> &'static str {
        Kind::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    const fn of(event: &DesktopEvent) -> Option<Kind> {
        Some(match event {
            DesktopEvent::WindowOpened(_) => Kind::WindowOpened,
            DesktopEvent::WindowClosed(_) => Kind::WindowClosed,
            DesktopEvent::AppLaunched(_) => Kind::AppLaunched,
            DesktopEvent::AppTerminated(_) => Kind::AppTerminated,
            DesktopEvent::FocusChanged(_) => Kind::FocusChanged,
            DesktopEvent::SurfaceAppeared(_) => Kind::SurfaceAppeared,
            DesktopEvent::SurfaceDismissed(_) => Kind::SurfaceDismissed,
            DesktopEvent::AppNamed(_) => return None,
        })
    }

    /// Whether it is about a window, so that a window can be asked for.
    pub(crate) const fn is_of_windows(self) -> bool {
        matches!(self, Kind::WindowOpened | Kind::WindowClosed | Kind::FocusChanged)
    }

    /// Whether it happens inside one application, which has to be named.
    pub(crate) const fn needs_app(self) -> bool {
        matches!(self, Kind::SurfaceAppeared | Kind::SurfaceDismissed)
    }
}

/// An event, as it stands in a reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EventData {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<SurfaceData>,
}

impl EventData {
    fn new(word: &'static str) -> EventData {
        EventData { kind: word, window_id: None, title: None, app: None, pid: None, surface: None }
    }

    fn of_window(word: &'static str, window: &Window, app: Option<&App>) -> EventData {
        EventData {
            window_id: Some(window.id.clone()),
            title: Some(window.title.clone()),
            ..EventData::of_app(word, app.map_or(&window.app_name, |app| &app.name), window.pid)
        }
    }

    fn of_app(word: &'static str, name: &str, pid: u32) -> EventData {
        EventData { app: Some(name.to_owned()), pid: Some(pid), ..EventData::new(word) }
    }

    /// In one line.
    pub(crate) fn outline(&self) -> String {
        let quoted = |text: &String| quote(text, LINE_TEXT);
        let surface = self.surface.as_ref().map(|surface| surface.kind.to_owned());
        let parts = [
            Some(self.kind.to_owned()),
            self.window_id.clone(),
            self.title.as_ref().map(quoted),
            surface,
            self.surface.as_ref().and_then(|surface| surface.title.as_ref()).map(quoted),
            self.app.as_ref().map(|app| format!("of {}", quote(app, LINE_TEXT))),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Which event is meant.
pub(crate) struct Wanted<'a> {
    pub(crate) kind: Kind,
    pub(crate) app: Option<&'a str>,
    pub(crate) window_id: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
}

impl Wanted<'_> {
    /// Begins to watch for it.
    ///
    /// # Errors
    /// Those of the platform; of kinds inside an application, `APP_NOT_FOUND` and `AMBIGUOUS_TARGET`.
    pub(crate) fn begin(
        &self,
        context: &Context<'_>,
        platform: &dyn Platform,
        deadline: Deadline,
    ) -> Result<Box<dyn DesktopWatch>> {
        let app = match self.app.filter(|_| self.kind.needs_app()) {
            Some(name) => Some(targets::app(context, name)?),
            None => None,
        };
        platform.watch_desktop(app.as_ref(), deadline)
    }

    /// The next that is meant; `None` at the deadline.
    pub(crate) fn wait(&self, watch: &mut dyn DesktopWatch, deadline: Deadline) -> Result<Option<EventData>> {
        // Windows of applications that had not said yet what they are called.
        let mut nameless: Vec<DesktopEvent> = Vec::new();
        while let Some(event) = watch.next(deadline)? {
            if let DesktopEvent::AppNamed(app) | DesktopEvent::AppLaunched(app) = &event {
                let is_its = |event: &DesktopEvent| process_of(event) == Some(app.pid);
                if let Some(found) = nameless.iter().find(|event| is_its(event) && self.means(event, watch)) {
                    return Ok(Some(data(found, watch)));
                }
            }
            if let DesktopEvent::AppTerminated(app) = &event
                && self.kind.needs_app()
                && self.means(&event, watch)
            {
                return Err(ended(app));
            }
            if Kind::of(&event) != Some(self.kind) {
                continue;
            }
            if self.means(&event, watch) {
                return Ok(Some(data(&event, watch)));
            }
            nameless.push(event);
        }
        Ok(None)
    }

    fn means(&self, event: &DesktopEvent, watch: &dyn DesktopWatch) -> bool {
        let is_app =
            |app: &App| self.app.is_none_or(|name| !targets::named(vec![app.clone()], name).is_empty());
        let is_window = |window: &Window| {
            let known =
                watch.app(window.pid).filter(|known| known.process_instance == window.process_instance);
            self.window_id.is_none_or(|id| id == window.id)
                && self.title.is_none_or(|title| title == window.title)
                && (is_app(&called(window)) || known.is_some_and(|known| is_app(&known)))
        };
        match event {
            DesktopEvent::WindowOpened(window)
            | DesktopEvent::WindowClosed(window)
            | DesktopEvent::FocusChanged(Some(window)) => is_window(window),
            DesktopEvent::FocusChanged(None) => {
                self.app.is_none() && self.window_id.is_none() && self.title.is_none()
            }
            DesktopEvent::AppLaunched(app)
            | DesktopEvent::AppNamed(app)
            | DesktopEvent::AppTerminated(app) => is_app(app),
            DesktopEvent::SurfaceAppeared(_) | DesktopEvent::SurfaceDismissed(_) => true,
        }
    }
}

fn ended(app: &App) -> Error {
    Error::new(ErrorCode::StaleRef, format!("{} has ended", quote(&app.name, MESSAGE_TEXT)))
        .kind("process_changed")
        .detail("reason", "application_restarted")
        .detail("process_state", facts([("state", "exited".into())]))
        .hint("start it again, then wait anew")
        .delivery(Delivery::NotDelivered)
}

/// The application of a window as far as the window tells.
fn called(window: &Window) -> App {
    App {
        name: window.app_name.clone(),
        pid: window.pid,
        process_instance: window.process_instance.clone(),
        application_id: None,
        presentation: None,
        toolkit: None,
        handle: None,
        accessible: None,
    }
}

fn process_of(event: &DesktopEvent) -> Option<u32> {
    match event {
        DesktopEvent::WindowOpened(window)
        | DesktopEvent::WindowClosed(window)
        | DesktopEvent::FocusChanged(Some(window)) => Some(window.pid),
        DesktopEvent::AppLaunched(app) | DesktopEvent::AppNamed(app) | DesktopEvent::AppTerminated(app) => {
            Some(app.pid)
        }
        _ => None,
    }
}

fn data(event: &DesktopEvent, watch: &dyn DesktopWatch) -> EventData {
    let of_window = |kind, window: &Window| {
        let app = watch.app(window.pid).filter(|app| app.process_instance == window.process_instance);
        EventData::of_window(kind, window, app.as_ref())
    };
    match event {
        DesktopEvent::WindowOpened(window) => of_window("window_opened", window),
        DesktopEvent::WindowClosed(window) => of_window("window_closed", window),
        DesktopEvent::FocusChanged(Some(window)) => of_window("focus_changed_window", window),
        DesktopEvent::FocusChanged(None) => EventData::new("focus_changed_window"),
        DesktopEvent::AppLaunched(app) | DesktopEvent::AppNamed(app) => {
            let app = watch.app(app.pid).unwrap_or_else(|| app.clone());
            EventData::of_app("app_launched", &app.name, app.pid)
        }
        DesktopEvent::AppTerminated(app) => EventData::of_app("app_terminated", &app.name, app.pid),
        DesktopEvent::SurfaceAppeared(surface) => {
            EventData { surface: Some(surface.into()), ..EventData::new("surface_appeared") }
        }
        DesktopEvent::SurfaceDismissed(surface) => {
            EventData { surface: Some(surface.into()), ..EventData::new("surface_dismissed") }
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_desktop_core::platform::Surface;
    use agent_desktop_core::tree::Handle;
    use serde_json::{Value, json};

    use super::*;
    use crate::fake::{Bench, app, window};

    fn bench(name: &str, events: impl IntoIterator<Item = DesktopEvent>) -> Bench {
        let bench = Bench::new(name);
        bench.fake.events.borrow_mut().extend(events);
        bench
    }

    fn surface() -> Surface {
        Surface {
            id: "s1".to_owned(),
            kind: "sheet",
            title: Some("Save".to_owned()),
            item_count: None,
            handle: Handle::new("sheet"),
            is_hidden: false,
        }
    }

    fn seen(bench: &Bench, arguments: Value) -> Value {
        bench.data("wait", arguments)["event"].clone()
    }

    #[test]
    fn a_kind_is_read_as_it_is_typed_and_as_it_is_answered() {
        for (kind, word) in Kind::ALL {
            assert_eq!(Kind::parse(word).unwrap(), kind);
            assert_eq!(Kind::parse(&word.replace('-', "_")).unwrap(), kind);
        }
        assert_eq!(Kind::parse("focus_changed_window").unwrap(), Kind::FocusChanged);
        assert!(Kind::parse("window-moved").unwrap_err().message().contains("surface-dismissed"));
    }

    #[test]
    fn only_what_is_meant_ends_the_wait() {
        let (mail, notes) = (app("Mail", 10), app("Notes", 11));
        let events = || {
            [
                DesktopEvent::AppLaunched(notes.clone()),
                DesktopEvent::WindowOpened(window("w-1", "Draft", &mail)),
                DesktopEvent::WindowOpened(window("w-2", "Draft 2", &notes)),
                DesktopEvent::FocusChanged(None),
                DesktopEvent::FocusChanged(Some(window("w-2", "Draft 2", &notes))),
                DesktopEvent::WindowClosed(window("w-1", "Draft", &mail)),
                DesktopEvent::AppTerminated(notes.clone()),
            ]
        };
        for (arguments, expected) in [
            (
                json!({"event": "window-opened"}),
                json!({"kind": "window_opened", "window_id": "w-1", "title": "Draft", "app": "Mail", "pid": 10}),
            ),
            (
                json!({"event": "window-opened", "app": "notes"}),
                json!({"kind": "window_opened", "window_id": "w-2", "title": "Draft 2", "app": "Notes", "pid": 11}),
            ),
            (
                json!({"event": "window-opened", "window_id": "w-2"}),
                json!({"kind": "window_opened", "window_id": "w-2", "title": "Draft 2", "app": "Notes", "pid": 11}),
            ),
            (
                json!({"event": "window-closed", "window": "Draft"}),
                json!({"kind": "window_closed", "window_id": "w-1", "title": "Draft", "app": "Mail", "pid": 10}),
            ),
            (json!({"event": "focus-changed"}), json!({"kind": "focus_changed_window"})),
            (
                json!({"event": "focus-changed", "app": "pid:11"}),
                json!({"kind": "focus_changed_window", "window_id": "w-2", "title": "Draft 2", "app": "Notes", "pid": 11}),
            ),
            (json!({"event": "app-launched"}), json!({"kind": "app_launched", "app": "Notes", "pid": 11})),
            (
                json!({"event": "app-terminated", "app": "Notes"}),
                json!({"kind": "app_terminated", "app": "Notes", "pid": 11}),
            ),
        ] {
            assert_eq!(seen(&bench("events", events()), arguments.clone()), expected, "{arguments}");
        }
        // A part of a title is not the title.
        let arguments = json!({"event": "window-opened", "window": "Dra"});
        let error = bench("events-none", events()).error(
            "wait",
            arguments,
            "TIMEOUT",
            Some("wait_timeout"),
            "not_delivered",
        );
        assert_eq!(error["details"]["event"], "window-opened");
        assert!(error["details"]["baseline_counts"]["windows"].is_number(), "{error}");
    }

    #[test]
    fn a_window_that_comes_before_its_application_has_a_name_is_found_by_the_name() {
        let named = app("Notes", 11);
        let mut nameless = window("w-2", "Draft", &named);
        nameless.app_name = "notes.bin".to_owned();
        let events = [DesktopEvent::WindowOpened(nameless), DesktopEvent::AppNamed(named)];
        let event = seen(&bench("events-named", events), json!({"event": "window-opened", "app": "Notes"}));
        assert_eq!((&event["app"], &event["window_id"]), (&json!("Notes"), &json!("w-2")));
    }

    #[test]
    fn surfaces_are_looked_for_in_one_application_and_end_with_it() {
        let mail = app("Mail", 10);
        let ended = bench("events-ended", [DesktopEvent::AppTerminated(mail.clone())]);
        let arguments = json!({"event": "surface-appeared", "app": "Mail"});
        ended.error("wait", arguments.clone(), "STALE_REF", Some("process_changed"), "not_delivered");
        assert_eq!(*ended.fake.watched.borrow(), [Some("Mail".to_owned())]);
        let bench = bench("events-surface", [DesktopEvent::SurfaceAppeared(surface())]);
        let event = seen(&bench, arguments);
        assert_eq!(event["surface"], json!({"id": "s1", "type": "sheet", "title": "Save"}));
        bench.error("wait", json!({"event": "surface-appeared"}), "INVALID_ARGS", None, "not_delivered");
    }

    #[test]
    fn titles_of_denied_windows_are_masked_in_events() {
        let notes = app("Notes", 11);
        let mut bench =
            bench("events-denied", [DesktopEvent::WindowOpened(window("w-2", "My bank", &notes))]);
        let file = bench.folder().join("policy.toml");
        std::fs::write(&file, "[windows]\ndeny = [\"*bank*\"]\n").unwrap();
        bench.options.policy_files = vec![crate::PolicyFile { path: file, must_exist: true }];
        let event = seen(&bench, json!({"event": "window-opened"}));
        assert_eq!(event["title"], crate::guard::MASK);
        assert_eq!(event["window_id"], "w-2");
    }
}
