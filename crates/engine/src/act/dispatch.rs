//! What each action does, and by what it is judged.
//!
//! Every function here sends something at most once for each step it reports, and says with the error what had been sent
//! when it failed. The semantic way is taken where the element offers it; the physical ways only where the report allowed
//! them, which it does only with `--headed`.

use std::time::Duration;

use agent_desktop_core::action::{Action, Direction, MouseButton};
use agent_desktop_core::actionability::{Report, Route};
use agent_desktop_core::delivery::{Delivery, Step, StepOutcome};
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::geometry::Point;
use agent_desktop_core::key::{Chord, Key, Modifier};
use agent_desktop_core::platform::{
    App, Input, Operation, Performed, Surface, SurfaceKind, TextContent, TextQuery,
};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Handle, Node};

use super::evidence::{CLICK_LIMIT, STATE_LIMIT, click_had_effect, watch, watch_text};
use super::{Done, Request, read};
use crate::context::Context;
use crate::resolve::{self, Loaded, Resolved};

/// How long a context menu may take to appear.
pub(crate) const MENU_LIMIT: Duration = Duration::from_millis(600);
/// Numbers closer than this are equal.
pub(crate) const NUMBER_TOLERANCE: f64 = 1e-6;

/// Hint for text that was sent and is not there.
const NOT_KEPT: &str = "it may limit or reformat its text, or ignore the accessibility interface; look at it, or add \
                        --headed to type with the keyboard";

pub(super) struct Performer<'a, 'c> {
    pub(super) context: &'a Context<'c>,
    pub(super) loaded: &'a Loaded,
    pub(super) resolved: &'a Resolved,
    pub(super) report: &'a Report,
}

impl Performer<'_, '_> {
    pub(super) fn perform(&self, request: Request<'_>) -> Result<Done> {
        match request {
            Request::Type(text) => self.type_text(text),
            Request::SetValue(value) => self.set_value(value),
            Request::Select(value) => self.select(value),
            Request::Scroll(direction, amount) => self.scroll(direction, amount),
            Request::Text(request) => self.text(request),
            Request::Plain(action) => match action {
                Action::RightClick => self.right_click(),
                Action::DoubleClick => self.clicks(2),
                Action::TripleClick => self.clicks(3),
                Action::SetFocus => self.focus(),
                Action::Clear => self.set_value(""),
                Action::Toggle => self.switch(None),
                Action::Check => self.switch(Some(true)),
                Action::Uncheck => self.switch(Some(false)),
                Action::Expand => self.set_expanded(true),
                Action::Collapse => self.set_expanded(false),
                Action::ScrollTo => self.scroll_to(),
                _ => self.click(),
            },
        }
    }

    pub(super) fn subject(&self) -> String {
        self.loaded.subject()
    }

    pub(super) fn node(&self) -> &Node {
        &self.resolved.node
    }

    pub(super) fn by(&self, route: Route) -> bool {
        self.report.route == Some(route)
    }

    /// Sends one semantic operation. `None`: the element does not offer it, nothing was sent.
    pub(super) fn send(&self, handle: &Handle, operation: &Operation) -> Result<Option<Step>> {
        self.context.begin_delivery();
        match self.context.platform.perform(handle, operation, self.context.deadline)? {
            Performed::Done { label, .. } => Ok(Some(Step::semantic(label, StepOutcome::Succeeded))),
            Performed::NotOffered => Ok(None),
            Performed::Refused { label, native } => Err(Error::new(
                ErrorCode::ActionFailed,
                format!("{} refused {label}", self.subject()),
            )
            .platform_detail(native)
            .hint(if self.context.options.headed {
                "it may be disabled or busy; look at it again, or use the mouse commands at its place"
            } else {
                "it may be disabled or busy; look at it again, or allow the mouse and keyboard with --headed"
            })
            .delivery(Delivery::NotDelivered)),
        }
    }

    pub(super) fn not_offered(&self, what: &str) -> Error {
        Error::new(
            ErrorCode::ActionNotSupported,
            format!("{} does not offer {what} any more", self.subject()),
        )
        .hint("take a new snapshot and look at its available_actions")
        .delivery(Delivery::NotDelivered)
    }

    pub(super) fn input(&self, label: &'static str, input: &Input) -> Result<Step> {
        self.context.begin_delivery();
        self.context.platform.input(input, self.context.deadline)?;
        Ok(Step::physical(label, StepOutcome::Succeeded))
    }

    pub(super) fn point(&self) -> Point {
        self.report
            .verified_point
            .or(self.report.aim)
            .unwrap_or_else(|| self.node().bounds.map_or(Point { x: 0.0, y: 0.0 }, |bounds| bounds.center()))
    }

    pub(super) fn pointer_click(
        &self,
        label: &'static str,
        at: Point,
        button: MouseButton,
        count: u32,
    ) -> Result<Step> {
        self.input(label, &Input::Click { at, button, count, modifiers: Vec::new() })
    }

    pub(super) fn chord(&self, label: &'static str, modifiers: &[Modifier], key: Key) -> Result<Step> {
        self.input(label, &Input::Chord(Chord { modifiers: modifiers.to_vec(), key }))
    }

    /// Open menus and dialogs. A listing that fails never fails the action.
    pub(super) fn surfaces(&self, kind: Option<SurfaceKind>) -> Vec<Surface> {
        self.context.platform.surfaces(&self.loaded.app(), kind, self.context.deadline).unwrap_or_default()
    }

    fn click(&self) -> Result<Done> {
        // What opens a menu or a list shows its effect there, and often nowhere else.
        let opens = matches!(
            self.node().role,
            Role::MenuButton | Role::ComboBox | Role::MenuItem | Role::Menu | Role::Button | Role::Disclosure
        ) && (self.node().role != Role::Button || self.node().states.has(State::HasPopup));
        let before: Vec<Handle> = if opens {
            self.surfaces(None).into_iter().map(|surface| surface.handle).collect()
        } else {
            Vec::new()
        };
        let step = if self.by(Route::Pointer) {
            self.pointer_click("pointer_click", self.point(), MouseButton::Left, 1)?
        } else {
            self.send(&self.resolved.handle, &Operation::Activate)?
                .ok_or_else(|| self.not_offered("a click"))?
        };
        let (after, mut was_seen) = click_had_effect(self.context, self.resolved, &self.loaded.app())?;
        let mut surfaces = self.surfaces(None);
        if opens {
            let changed = |surfaces: &[Surface]| {
                surfaces.len() != before.len()
                    || surfaces.iter().any(|surface| !before.contains(&surface.handle))
            };
            let until = self.context.deadline.within(self.context.now(), CLICK_LIMIT);
            while !was_seen
                && !changed(&surfaces)
                && self.context.pause_until(until, Duration::from_millis(40))
            {
                surfaces = self.surfaces(None);
            }
            was_seen |= changed(&surfaces);
        }
        Ok(Done { steps: vec![step.verified(was_seen)], after, surfaces })
    }

    fn clicks(&self, count: u32) -> Result<Done> {
        let label = if count == 2 { "pointer_double_click" } else { "pointer_triple_click" };
        let step = self.pointer_click(label, self.point(), MouseButton::Left, count)?;
        let (after, was_seen) = click_had_effect(self.context, self.resolved, &self.loaded.app())?;
        Ok(Done { steps: vec![step.verified(was_seen)], after, surfaces: self.surfaces(None) })
    }

    fn right_click(&self) -> Result<Done> {
        // A menu that was open before proves nothing.
        let before: Vec<Handle> =
            self.surfaces(Some(SurfaceKind::Menu)).into_iter().map(|surface| surface.handle).collect();
        let step = if self.by(Route::Pointer) {
            self.pointer_click("pointer_right_click", self.point(), MouseButton::Right, 1)?
        } else {
            self.send(&self.resolved.handle, &Operation::ShowMenu)?
                .ok_or_else(|| self.not_offered("a context menu"))?
        };
        let until = self.context.deadline.within(self.context.now(), MENU_LIMIT);
        loop {
            let is_new = |surface: &Surface| {
                matches!(surface.kind, "menu" | "context_menu") && !before.contains(&surface.handle)
            };
            let surfaces = self.surfaces(None);
            let has_opened = surfaces.iter().any(is_new);
            if has_opened || !self.context.pause_until(until, Duration::from_millis(25)) {
                return Ok(Done { steps: vec![step.verified(has_opened)], after: None, surfaces });
            }
        }
    }

    fn focus(&self) -> Result<Done> {
        if self.node().states.has(State::Focused) {
            let step = Step::semantic("focus", StepOutcome::Skipped).verified(true);
            return Ok(done(vec![step], Some(self.node().clone())));
        }
        let step = self
            .send(&self.resolved.handle, &Operation::Focus)?
            .ok_or_else(|| self.not_offered("the keyboard focus"))?;
        let (after, was_seen) =
            watch(self.context, self.resolved, STATE_LIMIT, |node| node.states.has(State::Focused))?;
        Ok(done(vec![step.verified(was_seen)], after))
    }

    /// Toggle (`None`), check or uncheck.
    fn switch(&self, wanted: Option<bool>) -> Result<Done> {
        let is_on = |node: &Node| node.states.has(State::Checked) || node.states.has(State::Pressed);
        let is_mixed = |node: &Node| node.states.has(State::Indeterminate);
        let before = self.node();
        if wanted == Some(is_on(before)) && !is_mixed(before) {
            let step = Step::semantic("toggle", StepOutcome::Skipped).verified(true);
            return Ok(done(vec![step], Some(before.clone())));
        }
        if wanted == Some(false) && before.role == Role::RadioButton {
            return Err(Error::new(
                ErrorCode::ActionNotSupported,
                format!("{} goes off only when another one of its group is chosen", self.subject()),
            )
            .hint("check the one that is to be chosen instead")
            .delivery(Delivery::NotDelivered));
        }
        let mut steps = Vec::new();
        // A third state may lie between the two that can be asked for.
        let state = |node: &Node| (is_on(node), is_mixed(node));
        let mut from = state(before);
        for _ in 0..3 {
            let step = if self.by(Route::Pointer) {
                self.pointer_click("pointer_click", self.point(), MouseButton::Left, 1)?
            } else {
                self.send(&self.resolved.handle, &Operation::Toggle)?
                    .ok_or_else(|| self.not_offered("toggling"))?
            };
            let (after, has_changed) =
                watch(self.context, self.resolved, STATE_LIMIT, |node| state(node) != from)?;
            steps.push(step.verified(has_changed));
            let Some(after) = after else { return Ok(done(steps, None)) };
            if !has_changed {
                let now = match state(&after) {
                    (_, true) => "indeterminate",
                    (true, _) => "on",
                    (false, _) => "off",
                };
                return Err(self.not_seen(format!("{} was toggled and is still {now}", self.subject())));
            }
            from = state(&after);
            if wanted.is_none_or(|wanted| from == (wanted, false)) {
                return Ok(done(steps, Some(after)));
            }
        }
        Err(self.not_seen(format!("{} does not reach the state asked for", self.subject())))
    }

    fn set_expanded(&self, open: bool) -> Result<Done> {
        let is_open = |node: &Node| node.states.has(State::Expanded);
        let says_open = is_open(self.node());
        // Some combo boxes and menu buttons have no such state; their list is there instead.
        let own_is_open = !says_open && may_open_list(self.node()) && {
            let app = self.loaded.app();
            has_open_surface(self.context, &self.resolved.handle, &app)?
        };
        let is_so = (says_open || own_is_open) == open;
        // That something is not expanded proves it closed only where it could be expanded.
        if is_so && (open || self.node().role.is_expandable()) {
            let label = if open { "expand" } else { "collapse" };
            let step = Step::semantic(label, StepOutcome::Skipped).verified(true);
            return Ok(done(vec![step], Some(self.node().clone())));
        }
        let before = self.surfaces(None).len();
        let mut steps = Vec::new();
        if self.by(Route::Pointer) {
            steps.push(self.pointer_click("pointer_click", self.point(), MouseButton::Left, 1)?);
            if self.node().role == Role::TreeItem {
                let key = if open { Key::Right } else { Key::Left };
                steps.push(self.chord(if open { "key_expand" } else { "key_collapse" }, &[], key)?);
            }
        } else {
            steps.push(
                self.send(&self.resolved.handle, &Operation::SetExpanded(open))?
                    .ok_or_else(|| self.not_offered(if open { "expanding" } else { "collapsing" }))?,
            );
        }
        let (mut after, mut was_seen) =
            watch(self.context, self.resolved, STATE_LIMIT, |node| is_open(node) == open)?;
        // Qt makes the items of a tree anew when it changes: the same item is another object then.
        if after.is_none()
            && let Ok(again) = resolve::attempt(self.context, self.loaded, self.context.deadline)
        {
            was_seen = is_open(&again.node) == open;
            after = Some(again.node);
        }
        let surfaces = self.surfaces(None);
        // Some combo boxes and menu buttons have no such state; their list is seen instead.
        was_seen |= if open { surfaces.len() > before } else { surfaces.len() < before };
        if !was_seen && after.as_ref().is_some_and(|node| node.role == Role::TreeItem) {
            return Err(self.not_seen(format!(
                "{} did not {}",
                self.subject(),
                if open { "expand" } else { "collapse" }
            )));
        }
        let steps = steps.into_iter().map(|step| step.verified(was_seen)).collect();
        Ok(Done { steps, after, surfaces })
    }

    fn scroll(&self, direction: Direction, amount: u32) -> Result<Done> {
        if self.by(Route::Pointer) {
            let lines = amount.cast_signed();
            let (dy, dx) = match direction {
                Direction::Up => (lines, 0),
                Direction::Down => (-lines, 0),
                Direction::Left => (0, lines),
                Direction::Right => (0, -lines),
            };
            let step = self
                .input("pointer_wheel", &Input::Wheel { at: self.point(), dy, dx, modifiers: Vec::new() })?;
            return Ok(done(vec![step], None));
        }
        let mut steps = Vec::new();
        for _ in 0..amount {
            self.context.begin_delivery();
            let operation = Operation::Scroll(direction);
            match self.context.platform.perform(&self.resolved.handle, &operation, self.context.deadline)? {
                // The platform says so only of what it has read back.
                Performed::Done { label, .. } => {
                    steps.push(Step::semantic(label, StepOutcome::Succeeded).verified(true));
                }
                Performed::NotOffered if steps.is_empty() => {
                    return Err(Error::new(
                        ErrorCode::PolicyDenied,
                        format!(
                            "{} has no scroll bar around it that moves it {}; only the mouse wheel may",
                            self.subject(),
                            direction.as_str()
                        ),
                    )
                    .kind("scroll_needs_wheel")
                    .hint("add --headed to turn the mouse wheel over it")
                    .delivery(Delivery::NotDelivered));
                }
                Performed::NotOffered => break,
                Performed::Refused { label, .. } => {
                    if steps.is_empty() {
                        // Already at the end: nothing to do.
                        steps.push(Step::semantic(label, StepOutcome::Skipped).verified(true));
                    }
                    break;
                }
            }
        }
        // One line for a thousand equal ones.
        steps.truncate(1);
        Ok(done(steps, read(self.context, self.resolved, self.context.deadline)?))
    }

    fn scroll_to(&self) -> Result<Done> {
        let window = self.resolved.window.bounds;
        let is_in_view = |node: &Node| {
            let is_inside = match (node.bounds, window) {
                (Some(bounds), Some(window)) => !bounds.is_empty() && window.contains(bounds.center()),
                (Some(bounds), None) => !bounds.is_empty(),
                (None, _) => false,
            };
            is_inside && !node.states.has(State::Hidden) && !node.states.has(State::Offscreen)
        };
        let step = self.send(&self.resolved.handle, &Operation::ScrollIntoView)?;
        let (after, was_seen) = watch(self.context, self.resolved, STATE_LIMIT, is_in_view)?;
        match step {
            Some(step) => Ok(done(vec![step.verified(was_seen)], after)),
            None if was_seen => {
                let step = Step::semantic("scroll_into_view", StepOutcome::Skipped).verified(true);
                Ok(done(vec![step], after))
            }
            None => Err(Error::new(
                ErrorCode::ActionNotSupported,
                format!("{} cannot be scrolled into view", self.subject()),
            )
            .hint("scroll what contains it, or add --headed and turn the wheel over it")
            .delivery(Delivery::NotDelivered)),
        }
    }

    fn set_value(&self, value: &str) -> Result<Done> {
        let action = self.report.action;
        let node = self.node();
        if self.by(Route::Keyboard) {
            return self.key_in(value, true);
        }
        let number = value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let takes_numbers = node.number.is_some() && node.role.is_numeric() && action == Action::SetValue;
        if takes_numbers {
            let Some(number) = number else {
                return Err(Error::invalid(format!("{} takes a number", self.subject()))
                    .delivery(Delivery::NotDelivered));
            };
            return self.set_number(number);
        }
        let step = self
            .send(&self.resolved.handle, &Operation::SetText(value.to_owned()))?
            .ok_or_else(|| self.not_offered("setting its value"))?;
        self.judge_text(vec![step], value, STATE_LIMIT)
    }

    fn set_number(&self, wanted: f64) -> Result<Done> {
        if let Some(range) = self.node().number
            && (wanted < range.minimum - NUMBER_TOLERANCE || wanted > range.maximum + NUMBER_TOLERANCE)
        {
            return Err(Error::invalid(format!(
                "{} takes numbers from {} to {}",
                self.subject(),
                range.minimum,
                range.maximum
            ))
            .delivery(Delivery::NotDelivered));
        }
        let step = self
            .send(&self.resolved.handle, &Operation::SetNumber(wanted))?
            .ok_or_else(|| self.not_offered("setting its number"))?;
        let is_set = |node: &Node| {
            node.number.is_some_and(|number| (number.current - wanted).abs() <= NUMBER_TOLERANCE)
        };
        let (after, was_seen) = watch(self.context, self.resolved, STATE_LIMIT, is_set)?;
        if was_seen {
            return Ok(done(vec![step.verified(true)], after));
        }
        match after.as_ref().and_then(|node| node.number) {
            Some(number) => {
                let what = format!("{} was set and stands at {}", self.subject(), number.current);
                Err(self.not_seen_or(what, "it may move in steps; ask for a number it can stand at"))
            }
            None => Ok(done(vec![step.verified(false)], after)),
        }
    }

    /// Compares what the element reads with what it was made to be.
    fn judge_text(&self, steps: Vec<Step>, wanted: &str, limit: Duration) -> Result<Done> {
        let is_secret = self.node().states.has(State::Secure);
        let wanted_length = wanted.chars().count() as u32;
        let is_set = |node: &Node| {
            if is_secret {
                node.text_length.unwrap_or(0) == wanted_length
            } else {
                let has = node.value.as_deref().unwrap_or("");
                same_text(has, wanted)
                    || ((node.role == Role::Cell || node.role.is_numeric()) && same_number(has, wanted))
            }
        };
        let (after, was_seen) = watch_text(self.context, self.resolved, limit, is_set)?;
        let can_be_read = after
            .as_ref()
            .is_some_and(|node| !node.gaps.value && (node.text_length.is_some() || node.value.is_some()));
        // A cell shows its text in a format of its own, and the result of a formula.
        let was_taken = self.node().role == Role::Cell
            && after.as_ref().is_some_and(|node| node.value != self.node().value);
        if !was_seen && can_be_read && !was_taken {
            let length = after.as_ref().and_then(|node| node.text_length).unwrap_or(0);
            let what = format!(
                "{} took the text and does not have it: it reads {length} characters, {wanted_length} were sent",
                self.subject()
            );
            return Err(self
                .not_seen_or(what, NOT_KEPT)
                .detail("read_characters", length)
                .detail("sent_characters", wanted_length));
        }
        let steps = steps.into_iter().map(|step| step.verified(was_seen)).collect();
        Ok(done(steps, after))
    }

    fn type_text(&self, text: &str) -> Result<Done> {
        if self.by(Route::Keyboard) {
            return self.key_in(text, false);
        }
        let before = self.node().clone();
        let changes_nothing = self.is_selected(text)?;
        let step = self
            .send(&self.resolved.handle, &Operation::InsertText(text.to_owned()))?
            .ok_or_else(|| self.not_offered("typing"))?;
        if changes_nothing {
            return self.unjudged(vec![step]);
        }
        self.judge_typed(vec![step], &before, text, STATE_LIMIT)
    }

    /// Whether exactly this text is selected, so that typing it over leaves everything as it was.
    fn is_selected(&self, text: &str) -> Result<bool> {
        let node = self.node();
        let old = node.value.as_deref().unwrap_or_default();
        if text.is_empty() || node.is_value_cut() || !old.contains(text) {
            return Ok(false);
        }
        let Some(now) = self.caret()? else { return Ok(false) };
        Ok(now.selections.iter().any(|&(start, end)| {
            let part = old.chars().skip(start as usize).take(end.saturating_sub(start) as usize);
            part.eq(text.chars())
        }))
    }

    /// What was done, of which nobody can see whether it happened.
    fn unjudged(&self, steps: Vec<Step>) -> Result<Done> {
        let after = super::read(self.context, self.resolved, self.context.deadline)?;
        Ok(done(steps.into_iter().map(|step| step.verified(false)).collect(), after))
    }

    /// Compares the text before and after typing.
    fn judge_typed(&self, steps: Vec<Step>, before: &Node, text: &str, limit: Duration) -> Result<Done> {
        let count = text.chars().count() as u32;
        let had = before.text_length.unwrap_or(0);
        let old = before.value.clone().unwrap_or_default();
        let is_secret = before.states.has(State::Secure);
        let is_typed = |node: &Node| {
            let has = node.text_length.unwrap_or(0);
            if is_secret {
                return has == had + count;
            }
            let new = node.value.as_deref().unwrap_or("");
            // Inserted somewhere, or put in place of a selection: the rest is still around it.
            new != old && contains_text(new, text)
        };
        let (after, was_seen) = watch_text(self.context, self.resolved, limit, is_typed)?;
        let can_be_read = after
            .as_ref()
            .is_some_and(|node| !node.gaps.value && (node.text_length.is_some() || node.value.is_some()));
        if !was_seen && can_be_read && count > 0 {
            let has = after.as_ref().and_then(|node| node.text_length).unwrap_or(0);
            let what = format!(
                "{} does not have what was typed: it had {had} characters and has {has}, {count} were sent",
                self.subject()
            );
            return Err(self
                .not_seen_or(what, NOT_KEPT)
                .detail("characters_before", had)
                .detail("characters_after", has)
                .detail("characters_sent", count));
        }
        let steps = steps.into_iter().map(|step| step.verified(was_seen)).collect();
        Ok(done(steps, after))
    }

    /// Types with the keyboard, into the element once it has the focus.
    fn key_in(&self, text: &str, replace: bool) -> Result<Done> {
        let mut steps = Vec::new();
        if !self.node().states.has(State::Focused) {
            let before = if replace { None } else { self.caret()? };
            steps.push(self.give_focus()?);
            if let Some(before) = before {
                steps.extend(self.put_caret_back(&before)?);
            }
        }
        if replace {
            steps.push(self.chord("key_select_all", &[Modifier::Ctrl], Key::Char('a'))?);
            steps.push(self.chord("key_delete", &[], Key::Backspace)?);
        }
        let changes_nothing = !replace && self.is_selected(text)?;
        if !text.is_empty() {
            steps.push(self.input("key_text", &Input::Text(text.to_owned()))?);
        }
        if changes_nothing {
            return self.unjudged(steps);
        }
        // An application may be slower to take keys than we are to send them.
        let patience = STATE_LIMIT + Duration::from_millis(2 * text.chars().count() as u64);
        if replace {
            self.judge_text(steps, text, patience)
        } else {
            self.judge_typed(steps, self.node(), text, patience)
        }
    }

    /// Undoes what taking the focus did to the caret: many fields select all of their text then, and the first key would
    /// replace it. Nothing to do in most others.
    fn put_caret_back(&self, before: &TextContent) -> Result<Option<Step>> {
        let is_back = |now: &TextContent| {
            now.selections == before.selections && (before.caret.is_none() || now.caret == before.caret)
        };
        if self.caret()?.as_ref().is_some_and(is_back) {
            return Ok(None);
        }
        let operation = match (before.selections.first(), before.caret) {
            (Some(&(start, end)), _) => Operation::SelectText(start, end),
            // A field that was never focused may have no caret: the end is where a person would go on.
            (None, caret) => Operation::SetCaret(caret.unwrap_or(before.length)),
        };
        let performed =
            self.context.platform.perform(&self.resolved.handle, &operation, self.context.deadline)?;
        let after = self.caret()?;
        let was_seen = after.as_ref().is_some_and(is_back);
        // A caret elsewhere harms nothing that is there; a selection would be lost.
        if after.is_some_and(|after| !after.selections.is_empty() && after.selections != before.selections) {
            return Err(Error::new(
                ErrorCode::ActionFailed,
                format!(
                    "{} selected its text when it got the focus, and typing would replace that",
                    self.subject()
                ),
            )
            .hint("type without --headed, or set the whole text with set-value")
            .delivery(Delivery::NotDelivered));
        }
        Ok(match performed {
            Performed::Done { label, .. } => {
                Some(Step::semantic(label, StepOutcome::Succeeded).verified(was_seen))
            }
            _ => None,
        })
    }

    /// Where the caret is and what is selected; `None`: the element does not say.
    fn caret(&self) -> Result<Option<TextContent>> {
        let query = TextQuery { range: Some((0, 0)), ..super::text::WHOLE };
        self.context.platform.text(&self.resolved.handle, &query, self.context.deadline)
    }

    /// What was wanted was not seen: it did not happen, unless the deadline came before the time in which it would have.
    pub(super) fn not_seen(&self, what: String) -> Error {
        if !self.context.deadline.has_passed(self.context.now()) {
            return failed(what);
        }
        Error::new(ErrorCode::Timeout, format!("the time was over before its effect was seen: {what}"))
            .kind("deadline")
            .hint("it was sent and may still be coming; look at it again before anything is repeated")
            .delivery(Delivery::Unverified)
    }

    /// The same, with a hint for what did not happen.
    fn not_seen_or(&self, what: String, hint: &str) -> Error {
        let error = self.not_seen(what);
        if error.code() == ErrorCode::Timeout { error } else { error.hint(hint) }
    }

    /// Gives the element the keyboard focus: by its interface, else by a click on it.
    pub(super) fn give_focus(&self) -> Result<Step> {
        self.context.begin_delivery();
        let operation = Operation::Focus;
        let asked =
            self.context.platform.perform(&self.resolved.handle, &operation, self.context.deadline)?;
        if let Performed::Done { label, .. } = asked {
            let (_, has_focus) =
                watch(self.context, self.resolved, STATE_LIMIT / 2, |node| node.states.has(State::Focused))?;
            if has_focus {
                return Ok(Step::semantic(label, StepOutcome::Succeeded).verified(true));
            }
        }
        let bounds = self.node().bounds.filter(|bounds| !bounds.is_empty()).ok_or_else(|| {
            Error::new(
                ErrorCode::ActionFailed,
                format!("{} does not take the keyboard focus", self.subject()),
            )
            .delivery(Delivery::NotDelivered)
        })?;
        let at = bounds.center();
        let hit = self.context.platform.hit_test(
            &self.resolved.handle,
            &self.resolved.window,
            at,
            self.context.deadline,
        )?;
        if let agent_desktop_core::platform::Hit::Other { role, name, .. } = hit {
            let cover = agent_desktop_core::outline::describe(role, name.as_deref());
            return Err(Error::new(
                ErrorCode::ActionFailed,
                format!("{} does not take the keyboard focus and is covered by {cover}", self.subject()),
            )
            .delivery(Delivery::NotDelivered));
        }
        let step = self.pointer_click("pointer_focus", at, MouseButton::Left, 1)?;
        let (_, has_focus) =
            watch(self.context, self.resolved, STATE_LIMIT, |node| node.states.has(State::Focused))?;
        Ok(step.verified(has_focus))
    }
}

/// Whether it may have a list or a menu open without saying that it is expanded.
pub(crate) fn may_open_list(node: &Node) -> bool {
    matches!(node.role, Role::ComboBox | Role::MenuButton) || node.states.has(State::HasPopup)
}

/// Whether a menu or a list is open that belongs to this element.
///
/// # Errors
/// Those of listing what is open.
pub(crate) fn has_open_surface(context: &Context<'_>, handle: &Handle, app: &App) -> Result<bool> {
    for surface in context.platform.surfaces(app, None, context.deadline)? {
        if context.platform.is_opened_by(&surface.handle, handle, context.deadline)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// It was done, and did not have its effect.
pub(super) fn failed(what: String) -> Error {
    Error::new(ErrorCode::ActionFailed, what).delivery(Delivery::Unverified)
}

/// What was done, with nothing open afterwards.
pub(super) fn done(steps: Vec<Step>, after: Option<Node>) -> Done {
    Done { steps, after, surfaces: Vec::new() }
}

/// Whether two texts write the same number.
fn same_number(one: &str, other: &str) -> bool {
    matches!((one.trim().parse::<f64>(), other.trim().parse::<f64>()), (Ok(one), Ok(other)) if one.to_bits() == other.to_bits())
}

/// Whether two texts are the same to a person: line ends and trailing line breaks aside.
fn same_text(one: &str, other: &str) -> bool {
    let fold = |text: &str| text.replace("\r\n", "\n").trim_end_matches('\n').to_owned();
    one == other || fold(one) == fold(other)
}

fn contains_text(whole: &str, part: &str) -> bool {
    whole.contains(part) || whole.replace("\r\n", "\n").contains(&part.replace("\r\n", "\n"))
        // A tabulator or a line break may have moved on instead of being typed.
        || whole.contains(part.trim_end_matches(['\n', '\t', '\r'])) && part.ends_with(['\n', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_do_not_make_texts_differ() {
        assert!(same_text("a\r\nb\n", "a\nb"));
        assert!(!same_text("a b", "a  b"));
        assert!(contains_text("one\r\ntwo", "one\ntwo"));
        assert!(contains_text("name", "name\n"));
        assert!(!contains_text("nam", "name"));
    }
}
