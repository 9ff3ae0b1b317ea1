//! A platform for systems that have none yet: everything is refused, nothing is pretended.

use std::time::{Duration, Instant};

use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::geometry::Point;
use agent_desktop_core::platform::{
    App, CaptureTarget, Check, ClipboardContent, ClipboardForm, ClipboardOffer, Clock, DesktopWatch, Display,
    Examination, Hit, Image, Input, LaunchRequest, Launched, Limits, Notification, NotificationAction,
    NotificationWatch, Observation, Operation, Performed, Permission, Permissions, Platform, ProcessState,
    Reading, Safety, Scope, Statistics, Surface, SurfaceKind, TextContent, TextQuery, Window,
    WindowOperation,
};
use agent_desktop_core::tree::Handle;
use agent_desktop_core::{Deadline, Delivery};

/// A desktop that cannot be reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unavailable;

fn refuse<T>() -> Result<T> {
    Err(Error::new(
        ErrorCode::PlatformNotSupported,
        format!("there is no support for {} yet", std::env::consts::OS),
    ))
}

impl Clock for Unavailable {
    fn now(&self) -> Instant {
        Instant::now()
    }
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

impl Platform for Unavailable {
    fn name(&self) -> &'static str {
        std::env::consts::OS
    }
    fn safety(&self) -> Safety {
        Safety { blocked_chords: &[], protected_processes: &[] }
    }
    fn supported_surfaces(&self) -> &'static [SurfaceKind] {
        &[]
    }
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
    fn permissions(&self, _: Deadline) -> Permissions {
        Permissions {
            accessibility: Permission::Unknown,
            screen_recording: Permission::Unknown,
            automation: Permission::NotRequired,
        }
    }
    fn apps(&self, _: Deadline) -> Result<Vec<App>> {
        refuse()
    }
    fn windows(&self, _: Option<&App>, _: Deadline) -> Result<Vec<Window>> {
        refuse()
    }
    fn displays(&self, _: Deadline) -> Result<Vec<Display>> {
        refuse()
    }
    fn surfaces(&self, _: &App, _: Option<SurfaceKind>, _: Deadline) -> Result<Vec<Surface>> {
        refuse()
    }
    fn process_state(&self, _: u32, _: Option<&str>) -> ProcessState {
        ProcessState::Exited
    }
    fn observe(&self, _: &Scope, _: &Limits, _: Deadline) -> Result<Observation> {
        refuse()
    }
    fn read(&self, _: &[Handle], _: &Window, _: Deadline) -> Result<Vec<Reading>> {
        refuse()
    }
    fn text(&self, _: &Handle, _: &TextQuery, _: Deadline) -> Result<Option<TextContent>> {
        refuse()
    }
    fn ancestors(&self, _: &Handle, _: Deadline) -> Result<Vec<Handle>> {
        refuse()
    }
    fn hit_test(&self, _: &Handle, _: &Window, _: Point, _: Deadline) -> Result<Hit> {
        refuse()
    }
    fn dialog_over(&self, _: &Handle, _: &Window, _: Deadline) -> Result<Option<Hit>> {
        refuse()
    }
    fn perform(&self, _: &Handle, _: &Operation, _: Deadline) -> Result<Performed> {
        refuse()
    }
    fn input(&self, _: &Input, _: Deadline) -> Result<usize> {
        refuse()
    }
    fn window_operation(&self, _: &Window, _: WindowOperation, _: Deadline) -> Result<()> {
        refuse()
    }
    fn instances(&self, _: &str, _: &[App]) -> Vec<App> {
        Vec::new()
    }
    fn comes_from(&self, _: u32, _: &Launched) -> bool {
        false
    }
    fn launch(&self, _: &LaunchRequest, _: Deadline) -> Result<Launched> {
        refuse()
    }
    fn close(&self, _: &App, _: bool, _: Deadline) -> Result<()> {
        refuse()
    }
    fn clipboard_offer(&self, _: Deadline) -> Result<ClipboardOffer> {
        refuse()
    }
    fn clipboard_read(&self, _: ClipboardForm, _: usize, _: Deadline) -> Result<Option<ClipboardContent>> {
        refuse()
    }
    fn clipboard_write(&self, _: Option<&ClipboardContent>, _: Deadline) -> Result<()> {
        refuse()
    }
    fn has_notification_service(&self, _: Deadline) -> Result<bool> {
        refuse()
    }
    fn watch_desktop(&self, _: Option<&App>, _: Deadline) -> Result<Box<dyn DesktopWatch>> {
        refuse()
    }
    fn watch_notifications(&self, _: Deadline) -> Result<Box<dyn NotificationWatch + '_>> {
        refuse()
    }
    fn dismiss_notification(&self, _: &Handle, _: Deadline) -> Result<()> {
        refuse()
    }
    fn invoke_notification(&self, _: &Notification, _: &NotificationAction, _: Deadline) -> Result<Delivery> {
        refuse()
    }
    fn capture(&self, _: &CaptureTarget, _: Deadline) -> Result<Image> {
        refuse()
    }
    fn diagnose(&self, _: Examination, _: Deadline) -> Result<Vec<Check>> {
        refuse()
    }
}
