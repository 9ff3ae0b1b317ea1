//! Entering text into a cell of a `LibreOffice` sheet, without keys.
//!
//! A cell has no interface for text. What a person does is done through interfaces instead: go to the cell, write into the
//! input line above the sheet, press the button that accepts it. Everything is found by role and place, because the
//! names are translated. Whether the cell took it is for the engine to see.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use agent_desktop_core::platform::Performed;
use agent_desktop_core::{Delivery, Error, ErrorCode, Result};

use crate::act::Actor;
use crate::bus::{
    ACCESSIBLE, COMPONENT, EDITABLE_TEXT, Object, TABLE, TEXT, object, objects, send_get, send_plain, states,
    variant_number,
};
use crate::dbus::{Call, Failure};
use crate::map::{Interfaces, role, state};

/// A toolbar.
const TOOL_BAR: u32 = 63;
/// A spreadsheet, whose cells must never be listed.
const SPREADSHEET: u32 = 92;
/// Levels of a window that are searched for the input line.
const LEVELS: usize = 40;
/// How long the cursor may take to arrive at a cell.
const ARRIVAL: Duration = Duration::from_millis(400);

/// Whether an object is a cell of a sheet: text that can be edited, but not through its own interfaces.
pub(crate) fn is_cell(number: u32, native: u64, interfaces: Interfaces) -> bool {
    number == role::TABLE_CELL
        && native & state::EDITABLE != 0
        && interfaces.has(Interfaces::TEXT)
        && !interfaces.has(Interfaces::EDITABLE_TEXT)
        && !interfaces.has(Interfaces::TABLE_CELL)
}

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(10);

/// The input line, and the toolbar with the button that accepts what is in it.
struct InputLine {
    line: Object,
    toolbar: Object,
}

impl Actor<'_> {
    /// Writes `text` into a cell as a person would type it: a number, a date, a formula.
    ///
    /// # Errors
    /// `delivery_uncertain` once the input line has been written to.
    pub(crate) fn enter_into_cell(&mut self, cell: &Object, text: &str) -> Result<Performed> {
        let Some(input) = self.input_line(cell)? else { return Ok(Performed::NotOffered) };
        let go = Call::new(&cell.bus, &cell.path, COMPONENT, "GrabFocus");
        self.yes_or_no("go_to_cell", "Component.GrabFocus", &go)?;
        if !self.arrives_at(cell)? {
            return Ok(Performed::Refused {
                label: "go_to_cell",
                native: "the cursor did not come to the cell".into(),
            });
        }
        let write = Call {
            signature: "s",
            body: &|writer| writer.string(text),
            ..Call::new(&input.line.bus, &input.line.path, EDITABLE_TEXT, "SetTextContents")
        };
        if let refused @ Performed::Refused { .. } =
            self.yes_or_no("set_text", "EditableText.SetTextContents", &write)?
        {
            return Ok(refused);
        }
        // The button comes to life once the sheet has seen the text.
        let until = self.at().min(Instant::now() + ARRIVAL);
        while let Some(accept) = self.last_button(&input.toolbar)? {
            let live = self.look(&accept)?;
            let is_usable = live.states & (state::ENABLED | state::SENSITIVE) != 0;
            if is_usable && let Some(index) = crate::map::activate_action(live.role, &live.actions) {
                return self
                    .do_action(&accept, "set_text", index, &live)
                    .map_err(|error| error.redelivered(Delivery::Uncertain));
            }
            if Instant::now() >= until {
                break;
            }
            std::thread::sleep(POLL);
        }
        Err(Error::new(ErrorCode::ActionFailed, "the input line offers no way to accept its text")
            .hint("the text stands in the input line; accept it with press Return --headed, or drop it with Escape")
            .delivery(Delivery::Unverified))
    }

    /// The object that stands for the cell at this place now.
    pub(crate) fn living_cell(&mut self, cell: &Object, row: u32, column: u32) -> Result<Option<Object>> {
        let live = self.look(cell)?;
        let Some(table) = live.parent.filter(|_| is_cell(live.role, live.states, live.interfaces)) else {
            return Ok(None);
        };
        let question = Call {
            signature: "ii",
            body: &|writer| {
                writer.i32(row.cast_signed());
                writer.i32(column.cast_signed());
            },
            ..Call::new(&table.bus, &table.path, TABLE, "GetAccessibleAt")
        };
        let deadline = self.at();
        let found =
            self.connection.call(&question, deadline).and_then(|message| object(&message, &table.bus));
        Ok(found.ok().filter(|found| !found.is_null()))
    }

    /// Whether there is an input line and nothing stands in it.
    pub(crate) fn is_input_line_empty(&mut self, cell: &Object) -> Result<bool> {
        let Some(InputLine { line, .. }) = self.input_line(cell)? else { return Ok(false) };
        let serial = send_get(self.connection, &line, TEXT, "CharacterCount");
        let count =
            self.connection.wait(serial, self.deadline.at()).and_then(|message| variant_number(&message));
        Ok(count.is_ok_and(|count| count == 0.0))
    }

    fn arrives_at(&mut self, cell: &Object) -> Result<bool> {
        let until = self.at().min(Instant::now() + ARRIVAL);
        loop {
            let live = self.look(cell)?;
            if live.states & state::FOCUSED != 0 {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Looks through what shows of the window, level by level, sheets left out.
    fn input_line(&mut self, cell: &Object) -> Result<Option<InputLine>> {
        let Some(window) = self.window_of(cell)? else { return Ok(None) };
        // Each object with the toolbar it is in.
        let mut level: Vec<(Object, Option<Object>)> = vec![(window, None)];
        let mut seen: HashSet<Object> = HashSet::new();
        for _ in 0..LEVELS {
            let children = self.children_of(&level)?;
            let mut next = Vec::new();
            for (child, number, native, toolbar) in self.kinds_of(children)? {
                // The panel around the input line says that it is defunct, and nothing else.
                let is_there = native & (state::SHOWING | state::DEFUNCT) != 0;
                if !is_there || matches!(number, SPREADSHEET | role::TABLE) {
                    continue;
                }
                if number == role::PARAGRAPH
                    && let Some(toolbar) = toolbar.clone()
                {
                    return Ok(Some(InputLine { line: child, toolbar }));
                }
                if seen.insert(child.clone()) {
                    let toolbar = if number == TOOL_BAR { Some(child.clone()) } else { toolbar };
                    next.push((child, toolbar));
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        Ok(None)
    }

    fn window_of(&mut self, object: &Object) -> Result<Option<Object>> {
        let mut here = object.clone();
        for _ in 0..64 {
            let live = self.look(&here)?;
            if live.role == role::FRAME {
                return Ok(Some(here));
            }
            let Some(parent) = live.parent else { break };
            here = parent;
        }
        Ok(None)
    }

    fn children_of(&mut self, parents: &[(Object, Option<Object>)]) -> Result<Vec<(Object, Option<Object>)>> {
        let deadline = self.at();
        let serials: Vec<u32> = parents
            .iter()
            .map(|(parent, _)| send_plain(self.connection, parent, ACCESSIBLE, "GetChildren"))
            .collect();
        let answers = self.connection.call_all(&serials, deadline);
        let mut children = Vec::new();
        for ((parent, toolbar), answer) in parents.iter().zip(answers) {
            match answer.and_then(|message| objects(&message, &parent.bus)) {
                Ok(found) => {
                    children.extend(
                        found
                            .into_iter()
                            .filter(|child| !child.is_null())
                            .map(|child| (child, toolbar.clone())),
                    );
                }
                Err(Failure::Timeout) => {
                    return Err(crate::act::before(&Failure::Timeout, "what is in its window"));
                }
                Err(_) => {}
            }
        }
        Ok(children)
    }

    #[allow(clippy::type_complexity, reason = "a row of facts that lives for one loop")]
    fn kinds_of(
        &mut self,
        found: Vec<(Object, Option<Object>)>,
    ) -> Result<Vec<(Object, u32, u64, Option<Object>)>> {
        let deadline = self.at();
        let serials: Vec<u32> = found
            .iter()
            .flat_map(|(object, _)| {
                [
                    send_plain(self.connection, object, ACCESSIBLE, "GetRole"),
                    send_plain(self.connection, object, ACCESSIBLE, "GetState"),
                ]
            })
            .collect();
        let mut answers = self.connection.call_all(&serials, deadline).into_iter();
        let mut kinds = Vec::new();
        for (object, toolbar) in found {
            let (Some(number), Some(native)) = (answers.next(), answers.next()) else { break };
            if matches!(native, Err(Failure::Timeout)) {
                return Err(crate::act::before(&Failure::Timeout, "what is in its window"));
            }
            let number = number.and_then(|message| Ok(message.body("u")?.u32()?));
            let native = native.and_then(|message| states(&message));
            if let (Ok(number), Ok(native)) = (number, native) {
                kinds.push((object, number, native, toolbar));
            }
        }
        Ok(kinds)
    }

    /// The last button of the toolbar, shown or not: what accepts the input comes after what cancels it.
    fn last_button(&mut self, toolbar: &Object) -> Result<Option<Object>> {
        let children = self.children_of(&[(toolbar.clone(), None)])?;
        let kinds = self.kinds_of(children)?;
        Ok(kinds
            .into_iter()
            .rev()
            .find(|(_, number, ..)| *number == role::PUSH_BUTTON)
            .map(|(button, ..)| button))
    }
}
