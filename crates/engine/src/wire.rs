//! Core's values in the shape they have in JSON.
//!
//! Shapes that several commands share; a shape of one command stands beside that command.

use agent_desktop_core::error::Fact;
use agent_desktop_core::geometry::{Point, Rect};
use agent_desktop_core::outline::{LINE_TEXT, quote};
use agent_desktop_core::platform::{App, Display, Permission, Permissions, Presentation, Surface, Window};
use serde::{Deserialize, Serialize};

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Left edge, logical pixels on the desktop.
    pub x: f64,
    /// Top edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl From<Rect> for Bounds {
    fn from(rect: Rect) -> Bounds {
        Bounds { x: rect.x, y: rect.y, width: rect.width, height: rect.height }
    }
}

impl From<Bounds> for Rect {
    fn from(bounds: Bounds) -> Rect {
        Rect { x: bounds.x, y: bounds.y, width: bounds.width, height: bounds.height }
    }
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PointData {
    /// Logical pixels from the left of the desktop.
    pub x: f64,
    /// Logical pixels from its top.
    pub y: f64,
}

impl From<Point> for PointData {
    fn from(point: Point) -> PointData {
        PointData { x: point.x, y: point.y }
    }
}

/// A window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowData {
    /// Opaque id.
    pub id: String,
    /// Its title; may be empty.
    pub title: String,
    /// Name of its application.
    pub app_name: String,
    /// Process of its application.
    pub pid: u32,
    /// Proof that it is the same process later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_instance: Option<String>,
    /// Where its content is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Where the window is with the frame around it, where that differs from the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Bounds>,
    /// Whether it has the keyboard.
    pub is_focused: bool,
    /// Whether it is minimized.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimized: Option<bool>,
    /// Present and true when it fills its display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximized: Option<bool>,
    /// Whether it can be seen in principle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible: Option<bool>,
    /// Present and false when its content cannot be read: it has no accessibility tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accessible: Option<bool>,
}

impl From<&Window> for WindowData {
    fn from(window: &Window) -> WindowData {
        WindowData {
            id: window.id.clone(),
            title: window.title.clone(),
            app_name: window.app_name.clone(),
            pid: window.pid,
            process_instance: window.process_instance.clone(),
            bounds: window.bounds.map(Bounds::from),
            frame: window.frame.filter(|frame| Some(*frame) != window.bounds).map(Bounds::from),
            is_focused: window.is_focused,
            minimized: window.minimized,
            maximized: window.maximized.filter(|is_maximized| *is_maximized),
            visible: window.visible,
            accessible: window.accessible.filter(|is_accessible| !is_accessible),
        }
    }
}

impl WindowData {
    /// One line for people and models.
    pub fn outline(&self) -> String {
        use std::fmt::Write;
        let mut line = format!(
            "{} {} {} pid {}",
            self.id,
            quote(&self.title, LINE_TEXT),
            quote(&self.app_name, LINE_TEXT),
            self.pid
        );
        if let Some(bounds) = self.bounds {
            let _ = write!(line, " {},{} {}x{}", bounds.x, bounds.y, bounds.width, bounds.height);
        }
        for (word, on) in [
            ("focused", self.is_focused),
            ("minimized", self.minimized == Some(true)),
            ("maximized", self.maximized == Some(true)),
            ("hidden", self.visible == Some(false)),
            ("not-accessible", self.accessible == Some(false)),
        ] {
            if on {
                line.push_str(" [");
                line.push_str(word);
                line.push(']');
            }
        }
        line
    }
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AppData {
    /// The name it gives itself.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// The platform's application id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<String>,
    /// Proof that it is the same process later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_instance: Option<String>,
    /// `foreground` or `background`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presentation: Option<&'static str>,
    /// The toolkit it is made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolkit: Option<String>,
    /// Present and false when it cannot be read: it has windows, but no accessibility tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accessible: Option<bool>,
}

impl From<&App> for AppData {
    fn from(app: &App) -> AppData {
        AppData {
            name: app.name.clone(),
            pid: app.pid,
            bundle_id: app.application_id.clone(),
            process_instance: app.process_instance.clone(),
            presentation: app.presentation.map(|presentation| match presentation {
                Presentation::Foreground => "foreground",
                Presentation::Background => "background",
            }),
            toolkit: app.toolkit.clone(),
            accessible: app.accessible.filter(|is_accessible| !is_accessible),
        }
    }
}

/// A display.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DisplayData {
    /// Opaque id.
    pub id: String,
    /// What it covers of the desktop.
    pub bounds: Bounds,
    /// Whether it is the primary one.
    pub is_primary: bool,
    /// Physical pixels for a logical one.
    pub scale: f64,
}

impl From<&Display> for DisplayData {
    fn from(display: &Display) -> DisplayData {
        DisplayData {
            id: display.id.clone(),
            bounds: display.bounds.into(),
            is_primary: display.is_primary,
            scale: display.scale,
        }
    }
}

/// An open menu, dialog or popover.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurfaceData {
    /// Opaque id.
    pub id: String,
    /// `menu`, `context_menu`, `sheet`, `popover` or `alert`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How many items it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_count: Option<u32>,
}

impl From<&Surface> for SurfaceData {
    fn from(surface: &Surface) -> SurfaceData {
        SurfaceData {
            id: surface.id.clone(),
            kind: surface.kind,
            title: surface.title.clone(),
            item_count: surface.item_count,
        }
    }
}

/// One permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PermissionData {
    /// `granted`, `denied`, `not_required` or `unknown`.
    pub state: &'static str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl From<&Permission> for PermissionData {
    fn from(permission: &Permission) -> PermissionData {
        let (state, suggestion) = match permission {
            Permission::Granted => ("granted", None),
            Permission::Denied(suggestion) => ("denied", Some(suggestion.clone())),
            Permission::NotRequired => ("not_required", None),
            Permission::Unknown => ("unknown", None),
        };
        PermissionData { state, suggestion }
    }
}

/// What is permitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PermissionsData {
    /// Reading and operating applications.
    pub accessibility: PermissionData,
    /// Taking pictures.
    pub screen_recording: PermissionData,
    /// Scripting other applications.
    pub automation: PermissionData,
}

impl From<&Permissions> for PermissionsData {
    fn from(permissions: &Permissions) -> PermissionsData {
        PermissionsData {
            accessibility: (&permissions.accessibility).into(),
            screen_recording: (&permissions.screen_recording).into(),
            automation: (&permissions.automation).into(),
        }
    }
}

/// Summary of a window in an ambiguity, with what picks it.
pub fn window_candidate(window: &Window) -> Fact {
    let mut entries = vec![
        ("id".to_owned(), Fact::from(window.id.clone())),
        ("title".to_owned(), Fact::from(window.title.clone())),
        ("app".to_owned(), Fact::from(window.app_name.clone())),
        ("is_focused".to_owned(), Fact::from(window.is_focused)),
    ];
    if let Some(visible) = window.visible {
        entries.push(("visible".to_owned(), Fact::from(visible)));
    }
    entries.push(("pick".to_owned(), Fact::from(format!("--window-id {}", window.id))));
    Fact::Map(entries)
}

/// Summary of an application in an ambiguity, with what picks it.
pub fn app_candidate(app: &App) -> Fact {
    let mut entries =
        vec![("name".to_owned(), Fact::from(app.name.clone())), ("pid".to_owned(), Fact::from(app.pid))];
    if let Some(id) = &app.application_id {
        entries.push(("bundle_id".to_owned(), Fact::from(id.clone())));
    }
    entries.push(("pick".to_owned(), Fact::from(format!("pid:{}", app.pid))));
    Fact::Map(entries)
}
