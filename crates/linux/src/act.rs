//! Operating one object through its accessibility interfaces.
//!
//! Every operation looks first at what the object offers now, because toolkits add and take away interfaces with focus
//! and state, and chooses actions by name. It is sent once. A refusal is an answer; whether an acceptance was true is for
//! the engine to see: half of the toolkits say yes to everything.

use std::time::{Duration, Instant};

use agent_desktop_core::action::Direction;
use agent_desktop_core::platform::{Operation, Performed};
use agent_desktop_core::{Deadline, Delivery, Error, ErrorCode, Result};

use crate::bus::{
    ACCESSIBLE, ACTION, COMPONENT, EDITABLE_TEXT, Object, PROPERTIES, SELECTION, TABLE, TEXT, VALUE, objects,
    owned_by, send_get, send_number, send_plain, states, variant_number,
};
use crate::dbus::{Call, Connection, Failure, Message};
use crate::map::{self, Interfaces, Toolkit, role, state};
use crate::sheet;
use crate::text::Units;

/// Levels below a control in which the button is looked for that does its work.
const INNER_LEVELS: u32 = 4;
/// Ancestors that are asked for a selection or a scroll bar.
const ANCESTORS: u32 = 6;
/// How long an action may take before the application is asked whether it still listens.
const NESTED: Duration = Duration::from_millis(300);
/// How long a button of GTK 4 stays down after it was told to click; it does its work only then.
const GTK4_BUTTON: Duration = Duration::from_millis(255);
/// Times a list is scrolled in search of an item without a place, and how long it may take to show.
const SEARCHES: u32 = 12;
const MOST_SIBLINGS: usize = 2000;
const SCROLLED: Duration = Duration::from_millis(120);
/// `ATSPI_SCROLL_ANYWHERE`: as little as needed.
const SCROLL_ANYWHERE: u32 = 6;

/// What an object is now.
pub(crate) struct Live {
    pub(crate) role: u32,
    pub(crate) states: u64,
    pub(crate) interfaces: Interfaces,
    pub(crate) actions: Vec<String>,
    pub(crate) parent: Option<Object>,
    pub(crate) index: Option<i32>,
}

/// Operates objects of one application.
pub(crate) struct Actor<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) toolkit: Toolkit,
    pub(crate) has_safe_actions: bool,
    pub(crate) units: Units,
    pub(crate) deadline: Deadline,
}

/// A failure before anything was sent that could change something.
pub(crate) fn before(failure: &Failure, what: &str) -> Error {
    let error = match failure {
        Failure::Timeout => {
            Error::new(ErrorCode::AppUnresponsive, format!("the application did not answer {what}"))
                .kind("app_unresponsive")
                .hint("look whether the application hangs, then retry")
        }
        failure if failure.is_gone() => {
            Error::new(ErrorCode::StaleRef, "the element is gone").hint("take a new snapshot, then retry")
        }
        _ => Error::new(ErrorCode::ActionFailed, format!("the application refused {what}")),
    };
    error.platform_detail(failure.to_string()).delivery(Delivery::NotDelivered)
}

impl Actor<'_> {
    pub(crate) fn at(&self) -> Instant {
        self.deadline.at()
    }

    /// One wave, and a second for the names of actions.
    pub(crate) fn look(&mut self, target: &Object) -> Result<Live> {
        let connection = &mut *self.connection;
        let serials = [
            send_plain(connection, target, ACCESSIBLE, "GetRole"),
            send_plain(connection, target, ACCESSIBLE, "GetState"),
            send_plain(connection, target, ACCESSIBLE, "GetInterfaces"),
            send_get(connection, target, ACCESSIBLE, "Parent"),
            send_plain(connection, target, ACCESSIBLE, "GetIndexInParent"),
        ];
        let mut answers = connection.call_all(&serials, self.deadline.at()).into_iter();
        let mut next = || answers.next().unwrap_or(Err(Failure::Timeout));
        let failed = |failure: Failure| before(&failure, "what the element is");
        let role = next().and_then(|message| Ok(message.body("u")?.u32()?)).map_err(failed)?;
        let states = next().and_then(|message| states(&message)).map_err(failed)?;
        let mut interfaces = Interfaces::default();
        let message = next().map_err(failed)?;
        for name in message.body("as").and_then(|mut body| body.strings()).unwrap_or_default() {
            interfaces.insert_name(&name);
        }
        let parent = next().ok().and_then(|message| {
            let mut body = message.body("v").ok()?;
            (body.signature().ok()? == "(so)").then_some(())?;
            let (bus, path) = body.reference().ok()?;
            Some(owned_by(&bus, &path, &target.bus)).filter(|parent| !parent.is_null())
        });
        let index = next().ok().and_then(|message| message.body("i").ok()?.i32().ok());
        let actions = if interfaces.has(Interfaces::ACTION) {
            self.action_names(target).map_err(failed)?
        } else {
            Vec::new()
        };
        Ok(Live { role, states, interfaces, actions, parent, index })
    }

    /// The same of an object that is not the one to be operated: when it cannot be read, there is nothing to find there.
    fn glance(&mut self, object: &Object) -> Result<Option<Live>> {
        match self.look(object) {
            Ok(live) => Ok(Some(live)),
            Err(error) if error.code() == ErrorCode::AppUnresponsive => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn action_names(&mut self, target: &Object) -> Result<Vec<String>, Failure> {
        let deadline = self.at();
        if self.has_safe_actions {
            let serial = send_plain(self.connection, target, ACTION, "GetActions");
            let message = self.connection.wait(serial, deadline)?;
            let mut body = message.body("a(sss)")?;
            let end = body.array(8)?;
            let mut names = Vec::new();
            while body.more(end) {
                body.structure()?;
                names.push(body.string()?.into_owned());
                body.string()?;
                body.string()?;
            }
            if names.iter().all(|name| map::is_familiar_action(name)) {
                return Ok(names);
            }
        }
        let serial = send_get(self.connection, target, ACTION, "NActions");
        let count = variant_number(&self.connection.wait(serial, deadline)?)? as i32;
        let serials: Vec<u32> = (0..count.clamp(0, 64))
            .map(|index| send_number(self.connection, target, ACTION, "GetName", index))
            .collect();
        self.connection
            .call_all(&serials, deadline)
            .into_iter()
            .map(|answer| Ok(answer?.body("s")?.string()?.into_owned()))
            .collect()
    }

    /// Carries out one operation, once.
    ///
    /// # Errors
    /// Before anything was sent: `not_delivered`. After: `delivery_uncertain` when the answer is missing.
    pub(crate) fn perform(&mut self, target: &Object, operation: &Operation) -> Result<Performed> {
        let live = self.look(target)?;
        if live.states & state::DEFUNCT != 0 {
            return Err(Error::new(ErrorCode::StaleRef, "the element is gone")
                .hint("take a new snapshot, then retry")
                .delivery(Delivery::NotDelivered));
        }
        match operation {
            Operation::Activate | Operation::Toggle => self.activate(target, &live),
            Operation::ShowMenu => match map::menu_action(live.role, self.toolkit, &live.actions) {
                Some(index) => self.do_action(target, "show_menu", index, &live),
                None => Ok(Performed::NotOffered),
            },
            Operation::Focus if live.interfaces.has(Interfaces::COMPONENT) => {
                let call = Call::new(&target.bus, &target.path, COMPONENT, "GrabFocus");
                self.yes_or_no("focus", "Component.GrabFocus", &call)
            }
            Operation::SetText(text) if live.interfaces.has(Interfaces::EDITABLE_TEXT) => {
                let call = Call {
                    signature: "s",
                    body: &|writer| writer.string(text),
                    ..Call::new(&target.bus, &target.path, EDITABLE_TEXT, "SetTextContents")
                };
                self.yes_or_no("set_text", "EditableText.SetTextContents", &call)
            }
            Operation::SetText(text) if sheet::is_cell(live.role, live.states, live.interfaces) => {
                self.enter_into_cell(target, text)
            }
            Operation::InsertText(text) if live.interfaces.has(Interfaces::EDITABLE_TEXT) => {
                self.insert(target, text)
            }
            Operation::SetNumber(number) if live.interfaces.has(Interfaces::VALUE) => {
                let call = Call {
                    signature: "ssv",
                    body: &|writer| {
                        writer.string(VALUE);
                        writer.string("CurrentValue");
                        writer.signature("d");
                        writer.f64(*number);
                    },
                    ..Call::new(&target.bus, &target.path, PROPERTIES, "Set")
                };
                self.done("set_number", "Value.CurrentValue", &call).map(|(performed, _)| performed)
            }
            Operation::SetExpanded(open) => match map::expand_action(*open, live.role, &live.actions) {
                Some(index) => {
                    self.do_action(target, if *open { "expand" } else { "collapse" }, index, &live)
                }
                None if self.toolkit == Toolkit::Gtk4 => self.activate_inside(target),
                None => Ok(Performed::NotOffered),
            },
            Operation::SetCaret(_) | Operation::SelectText(..) | Operation::ReplaceText { .. } => {
                self.change_text(target, &live, operation)
            }
            Operation::Select => self.select(target, &live),
            Operation::Scroll(direction) => self.scroll(target, &live, *direction),
            Operation::ScrollIntoView => self.scroll_into_view(target, &live),
            _ => Ok(Performed::NotOffered),
        }
    }

    fn activate(&mut self, target: &Object, live: &Live) -> Result<Performed> {
        if self.is_in_qt_combo(live)? {
            return Ok(Performed::NotOffered);
        }
        if let Some(index) = map::activate_action(live.role, &live.actions) {
            let performed = self.do_action(target, "press", index, live)?;
            let opens_menu = map::own_menu_action(&live.actions) == Some(index);
            if self.toolkit == Toolkit::Qt && live.role == role::MENU_ITEM && !opens_menu {
                self.close_menu_of(live)?;
            }
            return Ok(performed);
        }
        if live.states & state::SELECTABLE != 0 {
            let selected = self.select_in_parent(live)?;
            if selected != Performed::NotOffered {
                return Ok(selected);
            }
        }
        if self.toolkit == Toolkit::Gtk4 && matches!(live.role, role::PUSH_BUTTON | role::COMBO_BOX) {
            return self.activate_inside(target);
        }
        Ok(Performed::NotOffered)
    }

    /// Whether it is an item of a Qt combo box: its actions mark a row in the list and leave the box as it is.
    fn is_in_qt_combo(&mut self, live: &Live) -> Result<bool> {
        if self.toolkit != Toolkit::Qt || live.role != role::LIST_ITEM {
            return Ok(false);
        }
        let Some(list) = live.parent.clone() else { return Ok(false) };
        let Some(owner) = self.glance(&list)?.and_then(|list| list.parent) else { return Ok(false) };
        Ok(self.glance(&owner)?.is_some_and(|owner| owner.role == role::COMBO_BOX))
    }

    /// Closes the menu of a menu bar in which an item was run, as it closes for a person. Qt leaves it open, holding the
    /// pointer and the keyboard of the whole desktop.
    fn close_menu_of(&mut self, item: &Live) -> Result<()> {
        let mut top: Option<(Object, Live)> = None;
        let mut above = item.parent.clone();
        for _ in 0..2 * ANCESTORS {
            let Some(here) = above.take() else { return Ok(()) };
            let Some(live) = self.glance(&here)? else { return Ok(()) };
            above.clone_from(&live.parent);
            match live.role {
                role::MENU_BAR => break,
                role::POPUP_MENU if live.states & state::SHOWING == 0 => return Ok(()),
                role::MENU_ITEM => top = Some((here, live)),
                _ => {}
            }
        }
        if let Some((object, live)) = top
            && let Some(index) = map::own_menu_action(&live.actions)
        {
            self.do_action(&object, "close_menu", index, &live)?;
        }
        Ok(())
    }

    /// Presses the one button inside that does the work of the control around it.
    fn activate_inside(&mut self, target: &Object) -> Result<Performed> {
        let mut level = vec![target.clone()];
        for _ in 0..INNER_LEVELS {
            let deadline = self.at();
            let serials: Vec<u32> = level
                .iter()
                .map(|object| send_plain(self.connection, object, ACCESSIBLE, "GetChildren"))
                .collect();
            let answers = self.connection.call_all(&serials, deadline);
            let mut next = Vec::new();
            for answer in answers {
                next.extend(answer.and_then(|message| objects(&message, &target.bus)).unwrap_or_default());
            }
            next.truncate(64);
            for child in &next {
                let live = self.look(child)?;
                if matches!(live.role, role::PUSH_BUTTON | role::TOGGLE_BUTTON)
                    && let Some(index) = map::activate_action(live.role, &live.actions)
                {
                    return self.do_action(child, "press_inside", index, &live);
                }
            }
            level = next;
        }
        Ok(Performed::NotOffered)
    }

    fn select(&mut self, target: &Object, live: &Live) -> Result<Performed> {
        if self.is_in_qt_combo(live)? {
            return Ok(Performed::NotOffered);
        }
        // Selecting a menu item in its menu only highlights it; choosing it is its action.
        let is_menu_item =
            matches!(live.role, role::MENU_ITEM | role::CHECK_MENU_ITEM | role::RADIO_MENU_ITEM | role::MENU);
        if !is_menu_item {
            let selected = self.select_in_parent(live)?;
            if selected != Performed::NotOffered {
                return Ok(selected);
            }
        }
        match map::activate_action(live.role, &live.actions) {
            Some(index) => self.do_action(target, "select", index, live),
            None => Ok(Performed::NotOffered),
        }
    }

    /// Selects the object in the container it belongs to.
    fn select_in_parent(&mut self, live: &Live) -> Result<Performed> {
        let (Some(mut container), Some(mut index)) = (live.parent.clone(), live.index) else {
            return Ok(Performed::NotOffered);
        };
        for _ in 0..ANCESTORS {
            let parent = self.look(&container)?;
            if live.interfaces.has(Interfaces::TABLE_CELL)
                && self.toolkit == Toolkit::Gtk3
                && parent.interfaces.has(Interfaces::TABLE)
                && let Some(selected) = self.select_row(&container, index, live)?
            {
                return Ok(selected);
            }
            if parent.interfaces.has(Interfaces::SELECTION) {
                let call = Call {
                    signature: "i",
                    body: &|writer| writer.i32(index),
                    ..Call::new(&container.bus, &container.path, SELECTION, "SelectChild")
                };
                return self.yes_or_no("select", "Selection.SelectChild", &call);
            }
            // Only wrappers stand between an item and its container.
            let is_wrapper =
                matches!(parent.role, role::FILLER | role::PANEL | role::LIST_ITEM | role::TABLE_ROW);
            let (Some(next), Some(at)) = (parent.parent, parent.index) else { break };
            if !is_wrapper {
                break;
            }
            container = next;
            index = at;
        }
        Ok(Performed::NotOffered)
    }

    /// Selects the row of a cell of a GTK 3 tree view, which refuses to select the cell. `None`: that does not work either.
    fn select_row(&mut self, table: &Object, index: i32, item: &Live) -> Result<Option<Performed>> {
        let native = "Table.AddRowSelection";
        if item.states & state::SELECTED != 0 {
            return Ok(Some(Performed::Done { label: "select", native: native.to_owned() }));
        }
        let serial = send_number(self.connection, table, TABLE, "GetRowAtIndex", index);
        let row = self.connection.wait(serial, self.at()).and_then(|message| Ok(message.body("i")?.i32()?));
        let row = match row {
            Ok(row) if row >= 0 => row,
            Err(Failure::Timeout) => return Err(before(&Failure::Timeout, "which row it is in")),
            _ => return Ok(None),
        };
        let call = Call {
            signature: "i",
            body: &|writer| writer.i32(row),
            ..Call::new(&table.bus, &table.path, TABLE, "AddRowSelection")
        };
        let performed = self.yes_or_no("select", native, &call)?;
        Ok(Some(performed).filter(|performed| matches!(performed, Performed::Done { .. })))
    }

    pub(crate) fn do_action(
        &mut self,
        target: &Object,
        label: &'static str,
        index: usize,
        live: &Live,
    ) -> Result<Performed> {
        let native = format!("Action.DoAction({})", live.actions[index]);
        let call = Call {
            signature: "i",
            body: &|writer| writer.i32(index as i32),
            ..Call::new(&target.bus, &target.path, ACTION, "DoAction")
        };
        let serial = self.connection.send(&call);
        if self.runs_inside(target, serial) {
            return Ok(Performed::Done { label, native: format!("{native}, which has not returned") });
        }
        let answer = self.connection.wait(serial, self.deadline.at());
        let judged = self.judged(label, &native, answer)?;
        // Whoever looks earlier sees a button that is down, and nothing that it did.
        if self.toolkit == Toolkit::Gtk4
            && live.role == role::PUSH_BUTTON
            && live.actions[index].eq_ignore_ascii_case("click")
        {
            std::thread::sleep(GTK4_BUTTON.min(self.at().saturating_duration_since(Instant::now())));
        }
        Ok(Self::accepted(label, &native, judged))
    }

    /// Whether the application answers other questions while it owes the answer to this one: what the action started has a
    /// main loop of its own (a modal dialog, a menu), and the answer comes when that ends.
    pub(crate) fn runs_inside(&mut self, target: &Object, serial: u32) -> bool {
        let until = self.at();
        loop {
            let soon = until.min(Instant::now() + NESTED);
            if !matches!(self.connection.peek(serial, soon), Err(Failure::Timeout)) || soon >= until {
                return false;
            }
            let other = send_plain(self.connection, target, ACCESSIBLE, "GetRole");
            let soon = until.min(Instant::now() + NESTED);
            let answers = !matches!(self.connection.wait(other, soon), Err(Failure::Timeout));
            // Its answer may have come with the other one.
            if answers && matches!(self.connection.peek(serial, Instant::now()), Err(Failure::Timeout)) {
                return true;
            }
        }
    }

    /// Inserts at the caret, in place of what is selected.
    fn insert(&mut self, target: &Object, text: &str) -> Result<Performed> {
        let deadline = self.at();
        let connection = &mut *self.connection;
        let serials = [
            send_get(connection, target, TEXT, "CaretOffset"),
            send_get(connection, target, TEXT, "CharacterCount"),
            send_plain(connection, target, TEXT, "GetNSelections"),
        ];
        let answers = connection.call_all(&serials, deadline);
        let failed = |failure: &Failure| before(failure, "where the caret is");
        let number = |answer: &Result<Message, Failure>| match answer {
            Ok(message) => variant_number(message).map_err(|failure| failed(&failure)),
            Err(failure) => Err(failed(failure)),
        };
        let (caret, count) = (number(&answers[0])? as i32, number(&answers[1])? as i32);
        let selections =
            answers[2].as_ref().ok().and_then(|message| message.body("i").ok()?.i32().ok()).unwrap_or(0);
        // A field that was never focused may have no caret: the end is where a person would go on.
        let mut position = if (0..=count).contains(&caret) { caret } else { count };
        if selections > 0 {
            let serial = send_number(self.connection, target, TEXT, "GetSelection", 0);
            let range = self.connection.wait(serial, deadline).and_then(|message| {
                let mut body = message.body("ii")?;
                Ok((body.i32()?, body.i32()?))
            });
            // Some tell the end that moves last.
            let range = range.map(|(one, other)| (one.min(other), one.max(other)));
            if let Ok((start, end)) = range
                && start >= 0
                && end > start
            {
                let call = Call {
                    signature: "ii",
                    body: &|writer| {
                        writer.i32(start);
                        writer.i32(end);
                    },
                    ..Call::new(&target.bus, &target.path, EDITABLE_TEXT, "DeleteText")
                };
                self.done("replace_selection", "EditableText.DeleteText", &call)?;
                position = start;
            }
        }
        self.insert_at(target, position, text)
    }

    /// Moves the nearest scroll bar of that direction by one step.
    fn scroll(&mut self, target: &Object, live: &Live, direction: Direction) -> Result<Performed> {
        let is_vertical = matches!(direction, Direction::Up | Direction::Down);
        let Some((bar, _)) = self.scroll_bar(target, live, is_vertical)? else {
            return Ok(Performed::NotOffered);
        };
        let Some([current, minimum, maximum, step]) = self.numbers(&bar)? else {
            return Ok(Performed::NotOffered);
        };
        let unit = if step > 1.0 { step } else { ((maximum - minimum) / 10.0).max(1.0) };
        let towards_end = matches!(direction, Direction::Down | Direction::Right);
        let wanted = (if towards_end { current + unit } else { current - unit }).clamp(minimum, maximum);
        if (wanted - current).abs() < f64::EPSILON {
            return Ok(Performed::Refused { label: "scroll", native: "the end is reached".into() });
        }
        let performed = self.set_number(&bar, wanted, "scroll")?;
        if !matches!(performed, Performed::Done { .. }) || self.has_moved(&bar, current)? {
            return Ok(performed);
        }
        Err(Error::new(ErrorCode::ActionNotSupported, "the scroll bar took the number and did not move")
            .kind("scroll_advertised_but_inert")
            .hint("add --headed to turn the mouse wheel over it")
            .delivery(Delivery::Unverified))
    }

    /// Whether a bar stands elsewhere than before, now or a moment later.
    fn has_moved(&mut self, bar: &Object, from: f64) -> Result<bool> {
        let until = self.at().min(Instant::now() + SCROLLED);
        loop {
            let serial = send_get(self.connection, bar, VALUE, "CurrentValue");
            match self.connection.wait(serial, self.at()).and_then(|message| variant_number(&message)) {
                Ok(now) if (now - from).abs() > f64::EPSILON => return Ok(true),
                Err(Failure::Timeout) => {
                    return Err(before(&Failure::Timeout, "where the scroll bar stands")
                        .delivery(Delivery::Unverified));
                }
                _ if Instant::now() >= until => return Ok(false),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn set_number(&mut self, target: &Object, number: f64, label: &'static str) -> Result<Performed> {
        let call = Call {
            signature: "ssv",
            body: &|writer| {
                writer.string(VALUE);
                writer.string("CurrentValue");
                writer.signature("d");
                writer.f64(number);
            },
            ..Call::new(&target.bus, &target.path, PROPERTIES, "Set")
        };
        self.done(label, "Value.CurrentValue", &call).map(|(performed, _)| performed)
    }

    fn numbers(&mut self, bar: &Object) -> Result<Option<[f64; 4]>> {
        let connection = &mut *self.connection;
        let serials = ["CurrentValue", "MinimumValue", "MaximumValue", "MinimumIncrement"]
            .map(|property| send_get(connection, bar, VALUE, property));
        let mut numbers = [0.0; 4];
        for (slot, answer) in numbers.iter_mut().zip(connection.call_all(&serials, self.deadline.at())) {
            match answer.and_then(|message| variant_number(&message)) {
                Ok(number) => *slot = number,
                Err(Failure::Timeout) => {
                    return Err(before(&Failure::Timeout, "where the scroll bar stands"));
                }
                Err(_) => return Ok(None),
            }
        }
        Ok((numbers[2] > numbers[1]).then_some(numbers))
    }

    /// The scroll bar that moves this object, and the scroll area it belongs to.
    fn scroll_bar(
        &mut self,
        target: &Object,
        live: &Live,
        is_vertical: bool,
    ) -> Result<Option<(Object, Object)>> {
        const SCROLL_BAR: u32 = 48;
        const VERTICAL: u64 = 1 << 29;
        const HORIZONTAL: u64 = 1 << 14;
        let wanted = if is_vertical { VERTICAL } else { HORIZONTAL };
        if live.role == SCROLL_BAR && live.states & wanted != 0 {
            return Ok(Some((target.clone(), live.parent.clone().unwrap_or_else(|| target.clone()))));
        }
        let mut area = Some((target.clone(), live.states));
        for _ in 0..=ANCESTORS {
            let Some((here, native)) = area else { break };
            if native & state::MANAGES_DESCENDANTS != 0 && self.child_count(&here)? > MOST_SIBLINGS {
                // A sheet lists billions of cells and no bar among them.
                area = self.above(&here)?;
                continue;
            }
            let serial = send_plain(self.connection, &here, ACCESSIBLE, "GetChildren");
            let children = self
                .connection
                .wait(serial, self.deadline.at())
                .and_then(|message| objects(&message, &here.bus))
                .unwrap_or_default();
            // Bars are among the last few; a container of many children is a list, not a scroll area.
            for child in children.iter().rev().take(4) {
                let mut bar = child.clone();
                // Qt lists children that are gone.
                let Some(mut found) = self.glance(&bar)? else { continue };
                // Qt wraps each bar in a container, GTK 4 puts the numbers one level below it.
                if found.role == role::FILLER {
                    let Some(inner) = self.first_child(&bar)? else { continue };
                    let Some(inside) = self.glance(&inner)? else { continue };
                    found = inside;
                    bar = inner;
                }
                if found.role != SCROLL_BAR || found.states & wanted == 0 {
                    continue;
                }
                if !found.interfaces.has(Interfaces::VALUE) {
                    let Some(inner) = self.first_child(&bar)? else { continue };
                    bar = inner;
                }
                return Ok(Some((bar, here)));
            }
            area = self.above(&here)?;
        }
        Ok(None)
    }

    /// The parent of an object, with its states.
    fn above(&mut self, object: &Object) -> Result<Option<(Object, u64)>> {
        let Some(parent) = self.glance(object)?.and_then(|live| live.parent) else { return Ok(None) };
        Ok(self.glance(&parent)?.map(|live| (parent, live.states)))
    }

    fn child_count(&mut self, object: &Object) -> Result<usize> {
        let serial = send_get(self.connection, object, ACCESSIBLE, "ChildCount");
        match self.connection.wait(serial, self.deadline.at()).and_then(|message| variant_number(&message)) {
            Ok(count) => Ok(count.max(0.0) as usize),
            Err(Failure::Timeout) => Err(before(&Failure::Timeout, "how much is inside")),
            Err(_) => Ok(0),
        }
    }

    fn first_child(&mut self, parent: &Object) -> Result<Option<Object>> {
        let serial = send_plain(self.connection, parent, ACCESSIBLE, "GetChildren");
        match self.connection.wait(serial, self.deadline.at()) {
            Ok(message) => Ok(objects(&message, &parent.bus).unwrap_or_default().into_iter().next()),
            Err(Failure::Timeout) => Err(before(&Failure::Timeout, "what is inside")),
            Err(_) => Ok(None),
        }
    }

    fn extents(&mut self, object: &Object) -> Option<(i32, i32, i32, i32)> {
        let call = Call {
            signature: "u",
            body: &|writer| writer.u32(0),
            ..Call::new(&object.bus, &object.path, COMPONENT, "GetExtents")
        };
        let deadline = self.at();
        let message = self.connection.call(&call, deadline).ok()?;
        let mut body = message.body("(iiii)").ok()?;
        body.structure().ok()?;
        Some((body.i32().ok()?, body.i32().ok()?, body.i32().ok()?, body.i32().ok()?))
    }

    fn scroll_into_view(&mut self, target: &Object, live: &Live) -> Result<Performed> {
        if live.interfaces.has(Interfaces::COMPONENT) {
            let call = Call {
                signature: "u",
                body: &|writer| writer.u32(SCROLL_ANYWHERE),
                ..Call::new(&target.bus, &target.path, COMPONENT, "ScrollTo")
            };
            if let done @ Performed::Done { .. } =
                self.yes_or_no("scroll_into_view", "Component.ScrollTo", &call)?
            {
                return Ok(done);
            }
        }
        // Toolkits without it: move the bars of the scroll area by as much as the element is outside.
        let mut result = Performed::NotOffered;
        for is_vertical in [true, false] {
            let Some((bar, area)) = self.scroll_bar(target, live, is_vertical)? else { continue };
            if is_vertical && self.extents(target).is_some_and(|item| item.1 == i32::MIN) {
                result = self.search(target, &area, &bar)?;
            }
            let (Some(item), Some(view), Some(numbers)) =
                (self.extents(target), self.extents(&area), self.numbers(&bar)?)
            else {
                continue;
            };
            let (item_start, item_length, view_start, view_length) =
                if is_vertical { (item.1, item.3, view.1, view.3) } else { (item.0, item.2, view.0, view.2) };
            if item_start == i32::MIN || item_length <= 0 {
                continue;
            }
            let missing = if item_start < view_start {
                item_start - view_start
            } else {
                (item_start + item_length.min(view_length) - view_start - view_length).max(0)
            };
            if missing == 0 {
                continue;
            }
            let wanted = (numbers[0] + f64::from(missing)).clamp(numbers[1], numbers[2]);
            result = self.set_number(&bar, wanted, "scroll_into_view")?;
        }
        Ok(result)
    }

    /// Scrolls to an item that has no place while it does not show, as in GTK 3: by its number among its siblings, and
    /// then by those that show.
    fn search(&mut self, target: &Object, area: &Object, bar: &Object) -> Result<Performed> {
        let Some([_, minimum, maximum, _]) = self.numbers(bar)? else { return Ok(Performed::NotOffered) };
        // The longest row of siblings between the item and the area is what is scrolled.
        let mut longest: Option<(Vec<Object>, usize)> = None;
        let mut here = target.clone();
        for _ in 0..ANCESTORS {
            let Some(parent) = self.look(&here)?.parent.filter(|parent| parent != area) else { break };
            let serial = send_plain(self.connection, &parent, ACCESSIBLE, "GetChildren");
            let siblings = self
                .connection
                .wait(serial, self.deadline.at())
                .and_then(|message| objects(&message, &parent.bus))
                .unwrap_or_default();
            if let Some(at) = siblings.iter().position(|sibling| *sibling == here)
                && longest.as_ref().is_none_or(|(other, _)| other.len() < siblings.len())
            {
                longest = Some((siblings, at));
            }
            here = parent;
        }
        let Some((siblings, at)) = longest.filter(|(siblings, _)| siblings.len() > 1) else {
            return Ok(Performed::NotOffered);
        };
        let share = at as f64 / (siblings.len() - 1) as f64;
        let (mut low, mut high) = (minimum, maximum);
        let mut wanted = minimum + share * (maximum - minimum);
        let mut result = Performed::NotOffered;
        for _ in 0..SEARCHES {
            result = self.set_number(bar, wanted, "scroll_into_view")?;
            let until = self.at().min(Instant::now() + SCROLLED);
            loop {
                if self.extents(target).is_some_and(|item| item.1 != i32::MIN) {
                    return Ok(result);
                }
                if Instant::now() >= until {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            // Which of the others shows tells on which side it is.
            let shown = self.first_shown(&siblings)?;
            match shown {
                Some(first) if first > at => high = wanted,
                Some(_) => low = wanted,
                None => break,
            }
            wanted = f64::midpoint(low, high);
        }
        Ok(result)
    }

    /// The first of these objects that has a place.
    fn first_shown(&mut self, siblings: &[Object]) -> Result<Option<usize>> {
        let deadline = self.at();
        let connection = &mut *self.connection;
        let serials: Vec<u32> = siblings
            .iter()
            .take(MOST_SIBLINGS)
            .map(|object| send_plain(connection, object, ACCESSIBLE, "GetState"))
            .collect();
        for (at, answer) in connection.call_all(&serials, deadline).into_iter().enumerate() {
            match answer.and_then(|message| states(&message)) {
                Ok(found) if found & state::SHOWING != 0 => return Ok(Some(at)),
                Err(Failure::Timeout) => return Err(before(&Failure::Timeout, "what shows")),
                _ => {}
            }
        }
        Ok(None)
    }

    pub(crate) fn yes_or_no(
        &mut self,
        label: &'static str,
        native: &str,
        call: &Call<'_>,
    ) -> Result<Performed> {
        let done = self.done(label, native, call)?;
        Ok(Self::accepted(label, native, done))
    }

    pub(crate) fn accepted(
        label: &'static str,
        native: &str,
        done: (Performed, Option<Message>),
    ) -> Performed {
        let (performed, answer) = done;
        let accepted =
            answer.is_none_or(|message| message.body("b").and_then(|mut body| body.bool()).unwrap_or(true));
        if accepted {
            performed
        } else {
            Performed::Refused { label, native: format!("{native} answered false") }
        }
    }

    /// Sends a call that may change something, and tells apart what its answer means for delivery.
    fn done(
        &mut self,
        label: &'static str,
        native: &str,
        call: &Call<'_>,
    ) -> Result<(Performed, Option<Message>)> {
        let deadline = self.at();
        let answer = self.connection.call(call, deadline);
        self.judged(label, native, answer)
    }

    pub(crate) fn judged(
        &self,
        label: &'static str,
        native: &str,
        answer: Result<Message, Failure>,
    ) -> Result<(Performed, Option<Message>)> {
        match answer {
            Ok(message) => Ok((Performed::Done { label, native: native.to_owned() }, Some(message))),
            Err(Failure::Remote { name, text }) => match name.as_str() {
                // The application went away with the call.
                "org.freedesktop.DBus.Error.NoReply" => {
                    Err(Error::new(ErrorCode::AppUnresponsive, "the application ended during the action")
                        .kind("app_unresponsive")
                        .platform_detail(format!("{native}: {name}: {text}"))
                        .delivery(Delivery::Uncertain))
                }
                // Qt says of its objects that they are not there when it does not know a method of theirs.
                "org.freedesktop.DBus.Error.UnknownObject" if self.toolkit == Toolkit::Qt => {
                    Ok((Performed::Refused { label, native: format!("{native}: {name}: {text}") }, None))
                }
                "org.freedesktop.DBus.Error.ServiceUnknown" | "org.freedesktop.DBus.Error.UnknownObject" => {
                    Err(before(&Failure::Remote { name, text }, native))
                }
                _ => Ok((Performed::Refused { label, native: format!("{native}: {name}: {text}") }, None)),
            },
            Err(failure) => {
                Err(Error::new(ErrorCode::Timeout, "the application did not confirm the action in time")
                    .kind("chain_deadline")
                    .hint("look at the application before you do it again")
                    .platform_detail(format!("{native}: {failure}"))
                    .delivery(Delivery::Uncertain))
            }
        }
    }
}
