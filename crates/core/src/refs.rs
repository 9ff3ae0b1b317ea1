//! Refs: how a caller names an element it has seen, and how that very element is found again.

use serde::{Deserialize, Serialize};

use crate::action::Capabilities;
use crate::geometry::Rect;
use crate::platform::SurfaceKind;
use crate::role::Role;
use crate::state::States;
use crate::tree::{Handle, NativeId};

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

/// Placeholder so that the module's imports stay in use while it grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefNumber(pub u32);
