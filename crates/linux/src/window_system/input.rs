//! Physical input on X11, by XTEST: the pointer, the wheel, chords and text.
//!
//! Everything held is released on every way out: each press hands out a guard that releases in `Drop`, with some time of
//! its own when the deadline has passed. Modifiers that somebody holds and `CapsLock` are put aside before keys are
//! sent; `CapsLock` comes back, held modifiers do not (their owner may have let go meanwhile, and a modifier that
//! nobody holds but the server is the worst of errors).
//!
//! Input goes where the focus or the pointer is; choosing that, and asking whether it is allowed, is the caller's.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xkb::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ChangeWindowAttributesAux, ConnectionExt as _, EventMask,
    KEY_PRESS_EVENT, KEY_RELEASE_EVENT, MOTION_NOTIFY_EVENT, ModMask,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use super::connection::{Failure, Outcome, X11};
use super::keymap::{KeyDescription, Keymap, Keysym, LOCK, Level, SHIFT, Slot, keysym_for_character, runs};
use super::{Point, Result, WindowId, WindowSystemError};

/// Time between pressing and releasing a button, and a key of a chord.
const DOWN: Duration = Duration::from_millis(10);

/// Time between two clicks of one multiple click; far below every toolkit's double click time.
const GAP: Duration = Duration::from_millis(30);

/// Time between two steps of a drag: one frame.
const STEP: Duration = Duration::from_millis(16);

/// Most steps of a drag.
const MAXIMUM_STEPS: u64 = 4096;

/// How long the button is held before a drag moves: toolkits that tell a press from a drag by time need it.
const PICKUP: Duration = Duration::from_millis(200);

/// Most clicks in one call.
const MAXIMUM_CLICKS: u32 = 100;

/// Most wheel steps for each axis in one call.
const MAXIMUM_WHEEL: u32 = 1000;

/// Wheel steps sent without a pause.
const WHEEL_BURST: u32 = 10;

/// Most levels of a spare keycode.
const MAXIMUM_SPARE_LEVELS: u8 = 4;

/// Real modifiers that `AltGr` may be: all but Shift, Lock, Control, Mod1 (mostly Alt) and Mod2 (mostly `NumLock`).
const HIGH_MODIFIERS: u8 = 0b1110_0000;

/// Characters sent between two looks at the clock and at the server.
const TYPING_BURST: usize = 16;

/// What a client that does not answer pings gets to notice a new keyboard map or to work off its keys.
const SETTLE_BLIND: Duration = Duration::from_millis(150);

/// What a client gets after it answered a ping: toolkits with an input method hand keys to another process.
const SETTLE: Duration = Duration::from_millis(20);

/// How long a client may take to answer a ping before it is treated as one that does not.
const PING_LIMIT: Duration = Duration::from_secs(1);

/// Longer than any deadline.
const UNLIMITED: Duration = Duration::from_secs(100_000);

/// A button of the pointer, as the application sees it (a left-handed user's swap is undone).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Button {
    /// Primary.
    Left,
    /// Wheel button.
    Middle,
    /// Secondary.
    Right,
    /// One page back, in browsers.
    Back,
    /// One page forward, in browsers.
    Forward,
}

impl Button {
    fn number(self) -> u8 {
        match self {
            Self::Left => 1,
            Self::Middle => 2,
            Self::Right => 3,
            Self::Back => 8,
            Self::Forward => 9,
        }
    }
}

/// Where the pointer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// Its hot spot.
    pub position: Point,
    /// The child of the root under it.
    pub top_level: Option<WindowId>,
    /// Whether any button is down, whoever holds it.
    pub is_button_down: bool,
}

/// A drag from one point to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drag {
    /// Where the button goes down.
    pub from: Point,
    /// Where it comes up.
    pub to: Point,
    /// The button.
    pub button: Button,
    /// Time for the way, without pickup and drop.
    pub duration: Duration,
    /// How long to stay over the target before letting go; the target decides meanwhile what it accepts.
    pub drop_delay: Duration,
    /// Modifiers to hold, as keysyms.
    pub modifiers: Vec<Keysym>,
}

impl Drag {
    /// How long it takes.
    pub fn total(&self) -> Duration {
        PICKUP + self.duration + self.drop_delay
    }
}

/// How to type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypingOptions {
    /// Time between two characters; zero for as fast as the server takes them.
    pub pause: Duration,
}

/// Typing that stopped early.
#[derive(Debug)]
pub struct TypingError {
    /// How many characters had been sent. They may still be on their way through the application.
    pub sent: usize,
    /// Why it stopped.
    pub cause: WindowSystemError,
}

impl fmt::Display for TypingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({} characters had been sent)", self.cause, self.sent)
    }
}

impl std::error::Error for TypingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl X11 {
    /// Where the pointer is. One round trip.
    ///
    /// # Errors
    /// `Timeout`, `Lost`.
    pub fn pointer(&self, deadline: Instant) -> Result<Pointer> {
        self.begin(deadline);
        self.pointer_now().map_err(|failure| failure.during("asking for the pointer"))
    }

    fn pointer_now(&self) -> Outcome<Pointer> {
        let reply = self.wire.query_pointer(self.root)?.reply()?;
        Ok(Pointer {
            position: Point { x: reply.root_x.into(), y: reply.root_y.into() },
            top_level: (reply.child != x11rb::NONE).then_some(WindowId(reply.child)),
            is_button_down: u16::from(reply.mask) & 0x1f00 != 0,
        })
    }

    /// Moves the pointer, and sees that it arrived. Three round trips.
    ///
    /// # Errors
    /// `OutsideScreen`, `Unsupported` without XTEST, `Refused` when it is elsewhere afterwards (an application confines
    /// it, or the user moved it), `Timeout`, `Lost`.
    pub fn move_pointer(&self, point: Point, deadline: Instant) -> Result<()> {
        self.begin(deadline);
        self.require_xtest()?;
        self.go(point)
    }

    fn go(&self, point: Point) -> Result<()> {
        let doing = "moving the pointer";
        let screen = self.screen_now().map_err(|failure| failure.during(doing))?;
        if !screen.contains(point) {
            let area = super::Rectangle::new(point.x, point.y, 1, 1);
            return Err(WindowSystemError::OutsideScreen { area, screen });
        }
        let attempt = || {
            self.motion(point)?;
            self.pointer_now()
        };
        let arrived = attempt().map_err(|failure| failure.during(doing))?.position;
        if arrived == point {
            return Ok(());
        }
        let cause = format!("asked for {},{} it is at {},{}", point.x, point.y, arrived.x, arrived.y);
        Err(WindowSystemError::Refused { doing, cause })
    }

    /// Presses a button where the pointer is, and leaves it down: whoever calls this owes a
    /// [`button_up`](Self::button_up). Two round trips.
    ///
    /// # Errors
    /// `Unsupported` without XTEST, `Timeout`, `Lost`.
    pub fn button_down(&self, button: Button, deadline: Instant) -> Result<()> {
        let _guard = self.begin_input(deadline);
        self.require_xtest()?;
        self.physical_button(button)
            .and_then(|number| self.fake(BUTTON_PRESS_EVENT, number).and_then(|()| self.sync()))
            .map_err(|failure| failure.during_input("pressing a button"))
    }

    /// Releases a button; nothing happens if it is up. Two round trips.
    ///
    /// # Errors
    /// `Unsupported` without XTEST, `Timeout`, `Lost`.
    pub fn button_up(&self, button: Button, deadline: Instant) -> Result<()> {
        let _guard = self.begin_input(deadline);
        self.require_xtest()?;
        self.physical_button(button)
            .and_then(|number| self.fake(BUTTON_RELEASE_EVENT, number).and_then(|()| self.sync()))
            .map_err(|failure| failure.during_input("releasing a button"))
    }

    /// Clicks at a point `count` times (1 to 100): 10 ms down, 30 ms between clicks.
    ///
    /// `modifiers` are keysyms to hold meanwhile. About eight round trips.
    ///
    /// # Errors
    /// As [`move_pointer`](Self::move_pointer); `InvalidArgument` for the count; `NoSuchKey` for a modifier the keyboard
    /// lacks; `Timeout` with `started` telling whether a button had gone down.
    pub fn click(
        &self,
        point: Point,
        button: Button,
        count: u32,
        modifiers: &[Keysym],
        deadline: Instant,
    ) -> Result<()> {
        let _guard = self.begin_input(deadline);
        self.require_xtest()?;
        if !(1..=MAXIMUM_CLICKS).contains(&count) {
            return Err(WindowSystemError::InvalidArgument { what: format!("click count {count}") });
        }
        let doing = "clicking";
        self.require_time((DOWN + GAP) * count, doing)?;
        self.go(point)?;
        let held = self.hold_modifiers(modifiers)?;
        let number = self.physical_button(button).map_err(|failure| failure.during(doing))?;
        for index in 0..count {
            let once = || -> Outcome<()> {
                if index > 0 {
                    self.pause(GAP)?;
                }
                let press = Press::button(self, number)?;
                self.pause(DOWN)?;
                press.release()
            };
            once().map_err(|failure| failure.during_input(doing))?;
        }
        held.release().map_err(|failure| failure.during_input(doing))
    }

    /// Turns the wheel at a point: `vertical` steps up (negative: down), `horizontal` steps to the left (negative: to
    /// the right). At most 1000 each.
    ///
    /// # Errors
    /// As [`click`](Self::click).
    pub fn wheel(
        &self,
        point: Point,
        horizontal: i32,
        vertical: i32,
        modifiers: &[Keysym],
        deadline: Instant,
    ) -> Result<()> {
        let _guard = self.begin_input(deadline);
        self.require_xtest()?;
        let doing = "turning the wheel";
        let steps = [
            if vertical > 0 { (4, vertical.unsigned_abs()) } else { (5, vertical.unsigned_abs()) },
            if horizontal > 0 { (6, horizontal.unsigned_abs()) } else { (7, horizontal.unsigned_abs()) },
        ];
        if steps.iter().any(|(_, count)| *count > MAXIMUM_WHEEL) || (horizontal, vertical) == (0, 0) {
            return Err(WindowSystemError::InvalidArgument {
                what: format!("wheel {horizontal},{vertical}"),
            });
        }
        self.go(point)?;
        let held = self.hold_modifiers(modifiers)?;
        let turn = || -> Outcome<()> {
            for (button, count) in steps {
                for index in 1..=count {
                    self.fake_both(BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, button)?;
                    if index % WHEEL_BURST == 0 {
                        self.sync()?;
                        self.pause(Duration::from_millis(5))?;
                    }
                }
            }
            self.sync()
        };
        turn().map_err(|failure| failure.during_input(doing))?;
        held.release().map_err(|failure| failure.during_input(doing))
    }

    /// Drags from one point to another: a step every 16 ms, 200 ms after the press before it moves, and the drop delay
    /// over the target.
    ///
    /// When it breaks off, the pointer goes back to where it began and the button is released there.
    ///
    /// # Errors
    /// As [`click`](Self::click). When the drag does not fit before the deadline: `TooLate`, nothing sent.
    pub fn drag(&self, drag: &Drag, deadline: Instant) -> Result<()> {
        let _guard = self.begin_input(deadline);
        self.require_xtest()?;
        let doing = "dragging";
        self.require_time(drag.total(), doing)?;
        let screen = self.screen_now().map_err(|failure| failure.during(doing))?;
        if !screen.contains(drag.to) {
            let area = super::Rectangle::new(drag.to.x, drag.to.y, 1, 1);
            return Err(WindowSystemError::OutsideScreen { area, screen });
        }
        self.go(drag.from)?;
        let held = self.hold_modifiers(&drag.modifiers)?;
        let number = self.physical_button(drag.button).map_err(|failure| failure.during(doing))?;
        self.drag_now(drag, number).map_err(|failure| failure.during_input(doing))?;
        held.release().map_err(|failure| failure.during_input(doing))
    }

    fn drag_now(&self, drag: &Drag, number: u8) -> Outcome<()> {
        let mut press = Press::button(self, number)?;
        press.origin = Some(drag.from);
        self.pause(PICKUP)?;
        let start = Instant::now();
        let count = (drag.duration.as_millis() / STEP.as_millis()).clamp(1, MAXIMUM_STEPS.into()) as u64;
        for index in 1..=count {
            self.motion(between(drag.from, drag.to, index, count))?;
            self.sync()?;
            // Against the start, so that slow steps do not add up.
            let due = start + drag.duration.mul_f64(index as f64 / count as f64);
            self.pause(due.saturating_duration_since(Instant::now()))?;
        }
        // Targets answer to motion over them, not to the pointer's being there: move a little while waiting.
        let mut left = drag.drop_delay;
        while !left.is_zero() {
            let wait = left.min(STEP * 6);
            self.pause(wait)?;
            self.motion(drag.to)?;
            self.sync()?;
            left -= wait;
        }
        press.origin = None;
        press.release()
    }

    /// Presses a key while modifiers are held, all given as keysyms, and releases everything.
    ///
    /// `key` is looked up in the current layout and then in the other groups; if it needs Shift or `AltGr` there, they
    /// are held too. A symbol on no key gets a spare one for the moment. About ten round trips.
    ///
    /// # Errors
    /// `NoSuchKey`, `Unsupported` without XTEST, `Timeout` with `started`, `Lost`.
    pub fn press_chord(&self, modifiers: &[Keysym], key: Keysym, deadline: Instant) -> Result<()> {
        let _guard = self.begin_input(deadline);
        self.require_xtest()?;
        let doing = "pressing a key";
        let neutral = Neutral::start(self).map_err(|failure| failure.during(doing))?;
        let keymap = &neutral.keymap;
        let modifier_keys = modifier_keycodes(keymap, modifiers)?;
        let mut bindings = None;
        let stroke = if let Some(stroke) = keymap.stroke(key) {
            stroke
        } else {
            let slot = *keymap.slots.first().ok_or(WindowSystemError::NoSuchKey { keysym: key })?;
            let mut bound = Bindings::new(self, &neutral.table);
            bound
                .bind(&[(slot, key)])
                .and_then(|()| self.settle(PING_LIMIT))
                .map_err(|failure| failure.during(doing))?;
            bindings = Some(bound);
            slot.stroke()
        };
        let mut keys = modifier_keys;
        for extra in keymap.keys_for(stroke.modifiers) {
            // A Shift that is asked for and needed is one Shift.
            let is_held = keys.iter().any(|held| same_modifier(keymap, *held, extra));
            if !is_held {
                keys.push(extra);
            }
        }
        let attempt = || -> Outcome<()> {
            let held = Press::keys(self, &keys)?;
            let pressed = Press::keys(self, &[stroke.keycode])?;
            self.pause(DOWN)?;
            pressed.release()?;
            held.release()?;
            if bindings.is_some() {
                self.settle(PING_LIMIT)?;
            }
            self.sync()
        };
        attempt().map_err(|failure| failure.during_input(doing))
    }

    /// Types text into whatever has the focus, and returns how many characters were sent.
    ///
    /// Newlines press Return (a carriage return before one is dropped), tabulators press Tab. Characters the
    /// layout lacks are put on spare keycodes, in batches; each batch waits until the focused application has seen the new
    /// map (it is pinged). Before the map is put back the same wait makes sure that no key is read with the old one.
    ///
    /// Sent is not arrived: Chromium took 5 s more for 3,000 characters, and nothing says whether the focus takes text at
    /// all. Check the focus before and read the text back after. A carriage return with its newline counts as one.
    ///
    /// Cost: for each character about 50 µs, for each batch (76 different characters that the layout lacks, on a usual
    /// keyboard) 20 to 100 ms, and then as long as the application takes to work off its keys.
    ///
    /// # Errors
    /// `Untypable` before anything is sent; else [`TypingError::sent`] says how far it came.
    pub fn type_text(
        &self,
        text: &str,
        options: TypingOptions,
        deadline: Instant,
    ) -> std::result::Result<usize, TypingError> {
        let _guard = self.begin_input(deadline);
        let early = |cause| TypingError { sent: 0, cause };
        self.require_xtest().map_err(early)?;
        // Both a lone carriage return and one with a newline are one Return.
        let text: Vec<char> = text.replace("\r\n", "\n").replace('\r', "\n").chars().collect();
        if let Some((index, character)) =
            text.iter().enumerate().find(|(_, character)| keysym_for_character(**character).is_none())
        {
            return Err(early(WindowSystemError::Untypable { character: *character, index }));
        }
        let doing = "typing";
        let neutral = Neutral::start(self).map_err(|failure| early(failure.during(doing)))?;
        let batches = neutral
            .keymap
            .plan(&text)
            .map_err(|index| early(WindowSystemError::Untypable { character: text[index], index }))?;
        let mut sent = 0;
        let mut bindings = Bindings::new(self, &neutral.table);
        for batch in &batches {
            self.type_batch(&neutral.keymap, batch, &mut bindings, options, &mut sent).map_err(
                |failure| {
                    let cause = if sent > 0 { failure.during_input(doing) } else { failure.during(doing) };
                    TypingError { sent, cause }
                },
            )?;
        }
        Ok(sent)
    }

    fn type_batch(
        &self,
        keymap: &Keymap,
        batch: &super::keymap::Batch,
        bindings: &mut Bindings<'_>,
        options: TypingOptions,
        sent: &mut usize,
    ) -> Outcome<()> {
        let mut answers_pings = false;
        if !batch.bindings.is_empty() {
            bindings.bind(&batch.bindings)?;
            answers_pings = self.settle(PING_LIMIT)?;
        }
        let mut modifiers = 0;
        let mut held = Press::keys(self, &[])?;
        for (index, stroke) in batch.strokes.iter().enumerate() {
            if Instant::now() >= self.deadline() {
                return Err(Failure::Timeout);
            }
            if stroke.modifiers != modifiers {
                held.release_soon()?;
                held = Press::keys(self, &keymap.keys_for(stroke.modifiers))?;
                modifiers = stroke.modifiers;
            }
            self.fake_both(KEY_PRESS_EVENT, KEY_RELEASE_EVENT, stroke.keycode)?;
            self.wire.flush()?;
            *sent += 1;
            if index % TYPING_BURST == TYPING_BURST - 1 {
                self.sync()?;
            }
            if !options.pause.is_zero() {
                self.pause(options.pause)?;
            }
        }
        held.release()?;
        self.sync()?;
        if !batch.bindings.is_empty() {
            // An application that has answered once will again, however long it works on the text; until then the map must
            // stay, or the rest is read with the wrong one.
            self.settle(if answers_pings { UNLIMITED } else { PING_LIMIT })?;
        }
        Ok(())
    }

    /// Waits until the focused application has worked off what it was sent.
    ///
    /// Clients handle events in order, so an answer to a ping (`_NET_WM_PING`) says that they have seen everything
    /// before it, a changed keyboard map included.
    ///
    /// Gives up on the answer after `patience`. Returns whether it came; `Timeout` when the deadline came first.
    fn settle(&self, patience: Duration) -> Outcome<bool> {
        let focused = self.focused_now()?;
        let Some(window) = focused.filter(|window| self.answers_ping(*window).unwrap_or(false)) else {
            self.pause(SETTLE_BLIND)?;
            return Ok(false);
        };
        // The answer is the ping, sent on to the root; EWMH names the substructure masks, Qt 5 uses the other one.
        let mask = EventMask::STRUCTURE_NOTIFY | EventMask::SUBSTRUCTURE_NOTIFY;
        let listen = ChangeWindowAttributesAux::new().event_mask(mask);
        self.wire.change_window_attributes(self.root, &listen)?;
        let time = self.server_time()?;
        let limit = Instant::now() + patience;
        let mut is_answered = false;
        self.tell_window(window, self.atoms.WM_PROTOCOLS, [self.atoms._NET_WM_PING, time, window, 0, 0])?;
        self.wire.flush()?;
        while let Some(event) = self.wait_event(limit)? {
            if let Event::ClientMessage(event) = event
                && event.window == self.root
                && event.data.as_data32()[..3] == [self.atoms._NET_WM_PING, time, window]
            {
                is_answered = true;
                break;
            }
        }
        let deaf = ChangeWindowAttributesAux::new().event_mask(EventMask::NO_EVENT);
        self.wire.change_window_attributes(self.root, &deaf)?;
        if !is_answered && Instant::now() >= self.deadline() {
            return Err(Failure::Timeout);
        }
        self.pause(SETTLE)?;
        Ok(is_answered)
    }

    fn focused_now(&self) -> Outcome<Option<u32>> {
        Ok(self.active_window_now()?.map(|window| window.0))
    }

    fn require_xtest(&self) -> Result<()> {
        if self.extensions.xtest {
            return Ok(());
        }
        Err(WindowSystemError::Unsupported { what: "the server lacks the XTEST extension".to_owned() })
    }

    fn require_time(&self, needed: Duration, doing: &'static str) -> Result<()> {
        if Instant::now() + needed <= self.deadline() {
            return Ok(());
        }
        Err(WindowSystemError::TooLate { doing, needed })
    }

    fn fake(&self, kind: u8, detail: u8) -> Outcome<()> {
        self.check_interruption()?;
        self.send_fake(kind, detail)
    }

    /// Both halves leave together: no pause of ours makes the key repeat, and no signal comes between them.
    fn fake_both(&self, press: u8, release: u8, detail: u8) -> Outcome<()> {
        self.check_interruption()?;
        self.send_fake(press, detail)?;
        self.send_fake(release, detail)
    }

    fn send_fake(&self, kind: u8, detail: u8) -> Outcome<()> {
        self.wire.xtest_fake_input(kind, detail, 0, x11rb::NONE, 0, 0, 0)?;
        Ok(())
    }

    fn motion(&self, point: Point) -> Outcome<()> {
        // Callers have checked that the point is on the screen, so it fits.
        self.wire.xtest_fake_input(
            MOTION_NOTIFY_EVENT,
            0,
            0,
            self.root,
            point.x as i16,
            point.y as i16,
            0,
        )?;
        Ok(())
    }

    /// The number to press so that applications see `button`.
    fn physical_button(&self, button: Button) -> Outcome<u8> {
        let map = self.wire.get_pointer_mapping()?.reply()?.map;
        let place = map.iter().position(|logical| *logical == button.number());
        Ok(place.map_or(button.number(), |index| index as u8 + 1))
    }

    fn hold_modifiers(&self, modifiers: &[Keysym]) -> Result<Press<'_>> {
        let doing = "holding modifiers";
        let keys = if modifiers.is_empty() {
            Vec::new()
        } else {
            let (keymap, _) = self.read_keymap().map_err(|failure| failure.during(doing))?;
            modifier_keycodes(&keymap, modifiers)?
        };
        Press::keys(self, &keys).map_err(|failure| failure.during(doing))
    }

    /// The keyboard in the group that is on now.
    fn read_keymap(&self) -> Outcome<(Keymap, SymbolTable)> {
        if self.extensions.xkb { self.read_xkb_keymap() } else { self.read_core_keymap() }
    }

    fn read_xkb_keymap(&self) -> Outcome<(Keymap, SymbolTable)> {
        let parts = xkb::MapPart::KEY_TYPES | xkb::MapPart::KEY_SYMS | xkb::MapPart::MODIFIER_MAP;
        let core = u16::from(xkb::ID::USE_CORE_KBD);
        let none = xkb::MapPart::default();
        let no_modifiers = xkb::VMod::default();
        let map = self.wire.xkb_get_map(
            core,
            parts,
            none,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            no_modifiers,
            0,
            0,
            0,
            0,
            0,
            0,
        )?;
        let state = self.wire.xkb_get_state(core)?;
        let map = map.reply()?;
        let state = state.reply()?;
        let types = map.map.types_rtrn.unwrap_or_default();
        let symbols = map.map.syms_rtrn.unwrap_or_default();
        let mut sets: BTreeMap<u8, u8> = BTreeMap::new();
        for key in map.map.modmap_rtrn.unwrap_or_default() {
            *sets.entry(key.keycode).or_default() |= u16::from(key.mods) as u8;
        }
        // What stays locked while we type (NumLock) also chooses levels.
        let locked = u16::from(state.locked_mods) as u8;
        let described: Vec<KeyDescription> = symbols
            .iter()
            .zip(map.first_key_sym..=u8::MAX)
            .map(|(key, keycode)| {
                let sets = sets.get(&keycode).copied().unwrap_or(0);
                describe(key, keycode, sets, &types, u8::from(state.group), locked)
            })
            .collect();
        let (spare_type, spare_levels) = spare_type(&types);
        let keymap = Keymap::new(&described, &spare_levels);
        let spare_width = spare_levels.len();
        Ok((keymap, SymbolTable { first: map.first_key_sym, keys: symbols, spare_type, spare_width }))
    }

    /// Servers without XKB: four columns for each key, two of which matter.
    fn read_core_keymap(&self) -> Outcome<(Keymap, SymbolTable)> {
        let setup = self.wire.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let map = self.wire.get_keyboard_mapping(first, last - first + 1)?;
        let modifiers = self.wire.get_modifier_mapping()?;
        let map = map.reply()?;
        let modifiers = modifiers.reply()?;
        let per_modifier = usize::from(modifiers.keycodes_per_modifier()).max(1);
        let described: Vec<KeyDescription> = map
            .keysyms
            .chunks(usize::from(map.keysyms_per_keycode).max(1))
            .zip(first..=last)
            .map(|(keysyms, keycode)| {
                let levels = keysyms.iter().take(2).zip([0, SHIFT]);
                let sets = modifiers
                    .keycodes
                    .chunks(per_modifier)
                    .enumerate()
                    .filter(|(_, keys)| keys.contains(&keycode))
                    .fold(0, |sets, (bit, _)| sets | 1 << bit);
                KeyDescription {
                    keycode,
                    levels: levels
                        .map(|(keysym, mask)| Level { keysym: *keysym, modifiers: Some(mask) })
                        .collect(),
                    other_groups: keysyms.iter().skip(2).copied().collect(),
                    sets,
                }
            })
            .collect();
        Ok((Keymap::new(&described, &[0]), SymbolTable::default()))
    }
}

/// One key of the XKB map, in one group.
fn describe(
    key: &xkb::KeySymMap,
    keycode: u8,
    sets: u8,
    types: &[xkb::KeyType],
    group: u8,
    locked: u8,
) -> KeyDescription {
    let groups = key.group_info & 0x0f;
    let width = usize::from(key.width);
    if groups == 0 || width == 0 {
        return KeyDescription { keycode, sets, ..Default::default() };
    }
    // A group that the key does not have is wrapped, clamped or redirected, as the key says.
    let group = match (group < groups, key.group_info & 0xc0) {
        (true, _) => group,
        (false, 0x40) => groups - 1,
        (false, 0x80) => Some((key.group_info & 0x30) >> 4).filter(|group| *group < groups).unwrap_or(0),
        (false, _) => group % groups,
    };
    let kind = types.get(usize::from(key.kt_index[usize::from(group & 3)]));
    let start = usize::from(group) * width;
    let symbols = key.syms.get(start..start + width).unwrap_or_default();
    let levels = symbols
        .iter()
        .enumerate()
        .map(|(level, keysym)| Level {
            keysym: *keysym,
            modifiers: kind.and_then(|kind| modifiers_for(kind, level as u8, locked)),
        })
        .collect();
    let other_groups = key
        .syms
        .iter()
        .enumerate()
        .filter(|(index, _)| index / width != usize::from(group))
        .map(|(_, keysym)| *keysym)
        .collect();
    KeyDescription { keycode, levels, other_groups, sets }
}

/// The fewest real modifiers that choose a level of a key type, given what is locked.
fn modifiers_for(kind: &xkb::KeyType, level: u8, locked: u8) -> Option<u8> {
    let whole = u16::from(kind.mods_mask) as u8;
    let entries = || kind.map.iter().filter(|entry| entry.active);
    let level_of = |modifiers: u8| {
        entries()
            .find(|entry| u16::from(entry.mods_mask) as u8 == modifiers & whole)
            .map_or(0, |entry| entry.level)
    };
    std::iter::once(0)
        .chain(entries().map(|entry| u16::from(entry.mods_mask) as u8))
        .filter(|modifiers| level_of(modifiers | locked) == level)
        .min_by_key(|modifiers| modifiers.count_ones())
}

fn modifier_keycodes(keymap: &Keymap, modifiers: &[Keysym]) -> Result<Vec<u8>> {
    modifiers
        .iter()
        .map(|keysym| {
            let stroke = keymap.stroke(*keysym).filter(|stroke| stroke.modifiers == 0);
            Ok(stroke.ok_or(WindowSystemError::NoSuchKey { keysym: *keysym })?.keycode)
        })
        .collect()
}

fn same_modifier(keymap: &Keymap, one: u8, other: u8) -> bool {
    let sets = |keycode: u8| {
        keymap
            .modifier_keycodes
            .iter()
            .find(|(candidate, _)| *candidate == keycode)
            .map_or(0, |(_, sets)| *sets)
    };
    one == other || sets(one) & sets(other) != 0
}

/// A point on the way, rounded to the nearest pixel; the last step is the target itself.
fn between(from: Point, to: Point, step: u64, steps: u64) -> Point {
    let part = |from: i32, to: i32| {
        let way = i64::from(to) - i64::from(from);
        let moved = (way as f64 * step as f64 / steps as f64).round() as i64;
        (i64::from(from) + moved) as i32
    };
    Point { x: part(from.x, to.x), y: part(from.y, to.y) }
}

/// Keys or a button that are down until this is dropped.
struct Press<'connection> {
    server: &'connection X11,
    /// In the order they went down.
    keys: Vec<u8>,
    button: Option<u8>,
    /// Where a drag began; the button comes up there when it breaks off.
    origin: Option<Point>,
}

impl<'connection> Press<'connection> {
    fn keys(server: &'connection X11, keys: &[u8]) -> Outcome<Self> {
        let mut press = Self { server, keys: Vec::new(), button: None, origin: None };
        for key in keys {
            // Noted first: if sending fails half-way, releasing a key that is up does no harm.
            press.keys.push(*key);
            server.fake(KEY_PRESS_EVENT, *key)?;
        }
        Ok(press)
    }

    fn button(server: &'connection X11, number: u8) -> Outcome<Self> {
        let press = Self { server, keys: Vec::new(), button: Some(number), origin: None };
        server.fake(BUTTON_PRESS_EVENT, number)?;
        server.sync()?;
        Ok(press)
    }

    /// Releases, and waits until the server has done so: requests that are still on their way when the process ends are
    /// dropped with its connection, and nobody else would release what is down.
    fn release(mut self) -> Outcome<()> {
        self.release_now()?;
        self.server.sync()
    }

    /// Releases keys in the middle of a text; what follows them waits for the server.
    fn release_soon(mut self) -> Outcome<()> {
        self.release_now()
    }

    /// Noted as released only once that has left us; releasing a second time does no harm.
    fn release_now(&mut self) -> Outcome<()> {
        if let Some(origin) = self.origin {
            self.server.motion(origin)?;
            self.origin = None;
        }
        if let Some(number) = self.button {
            self.server.fake(BUTTON_RELEASE_EVENT, number)?;
            self.server.sync()?;
            self.button = None;
        }
        while let Some(key) = self.keys.last() {
            self.server.fake(KEY_RELEASE_EVENT, *key)?;
            self.keys.pop();
        }
        Ok(())
    }
}

impl Drop for Press<'_> {
    fn drop(&mut self) {
        if self.button.is_none() && self.keys.is_empty() {
            return;
        }
        self.server.begin_cleanup();
        let _ = self.release_now().and_then(|()| self.server.sync());
    }
}

/// The keyboard without held or latched modifiers and without `CapsLock`; the lock comes back when this is dropped.
struct Neutral<'connection> {
    server: &'connection X11,
    keymap: Keymap,
    table: SymbolTable,
    locked: u8,
}

impl<'connection> Neutral<'connection> {
    fn start(server: &'connection X11) -> Outcome<Self> {
        let (keymap, table) = server.read_keymap()?;
        let mut neutral = Self { server, keymap, table, locked: 0 };
        let down = server.wire.query_keymap()?;
        let core = u16::from(xkb::ID::USE_CORE_KBD);
        let state = server.extensions.xkb.then(|| server.wire.xkb_get_state(core)).transpose()?;
        let down = down.reply()?.keys;
        for (keycode, _) in &neutral.keymap.modifier_keycodes {
            if down[usize::from(keycode / 8)] & (1 << (keycode % 8)) != 0 {
                server.fake(KEY_RELEASE_EVENT, *keycode)?;
            }
        }
        if let Some(state) = state {
            let state = state.reply()?;
            neutral.locked = u16::from(state.locked_mods) as u8 & !neutral.keymap.number_lock;
            let latched = u16::from(state.latched_mods) as u8;
            if neutral.locked | latched != 0 {
                lock(server, neutral.locked, 0, latched)?;
            }
        }
        server.sync()?;
        // Levels were looked up under the old locks.
        if neutral.locked != 0 {
            (neutral.keymap, neutral.table) = server.read_keymap()?;
        }
        Ok(neutral)
    }
}

impl Drop for Neutral<'_> {
    fn drop(&mut self) {
        self.server.begin_cleanup();
        if self.locked != 0 {
            let _ = lock(self.server, self.locked, self.locked, 0);
        }
        // Not only sent: what the server has not read when the process ends is lost, released keys included.
        let _ = self.server.sync();
    }
}

/// Sets the locks named in `affected` to `locks` and takes away the latches named.
fn lock(server: &X11, affected: u8, locks: u8, latches: u8) -> Outcome<()> {
    let core = u16::from(xkb::ID::USE_CORE_KBD);
    let [affected, locks, latches] = [affected, locks, latches].map(|mask| ModMask::from(u16::from(mask)));
    server.wire.xkb_latch_lock_state(core, affected, locks, false, xkb::Group::M1, latches, false, 0)?;
    Ok(())
}

/// The symbols of all keys as XKB has them; no keys on servers without XKB.
struct SymbolTable {
    /// Keycode of the first of `keys`.
    first: u8,
    keys: Vec<xkb::KeySymMap>,
    /// Key type for spare keycodes.
    spare_type: u8,
    /// How many levels that has.
    spare_width: usize,
}

impl Default for SymbolTable {
    fn default() -> Self {
        Self { first: 0, keys: Vec::new(), spare_type: 0, spare_width: 1 }
    }
}

/// The key type for spare keycodes, with the modifiers for each of its levels: most levels, but no lock may matter.
///
/// With four levels on nineteen spare keycodes all of Cyrillic or Greek fits into one map change. Type 0 has one level in
/// every keymap.
fn spare_type(types: &[xkb::KeyType]) -> (u8, Vec<u8>) {
    let mut best = (0, vec![0]);
    for (index, kind) in types.iter().enumerate() {
        let mask = u16::from(kind.mods_mask) as u8;
        let is_simple = mask & LOCK == 0 && kind.num_levels <= MAXIMUM_SPARE_LEVELS;
        let levels: Option<Vec<u8>> =
            (0..kind.num_levels).map(|level| modifiers_for(kind, level, 0)).collect();
        let Some(levels) = levels.filter(|_| is_simple) else { continue };
        let uses_third_or_shift = levels.iter().all(|modifiers| modifiers & !(SHIFT | HIGH_MODIFIERS) == 0);
        if uses_third_or_shift && levels.len() > best.1.len() {
            best = (index as u8, levels);
        }
    }
    best
}

/// Symbols on spare keycodes until this is dropped.
struct Bindings<'keyboard> {
    server: &'keyboard X11,
    table: &'keyboard SymbolTable,
    /// Every keycode that has been given symbols, with those it has now by level; none: spare again.
    symbols: BTreeMap<u8, Vec<Keysym>>,
}

impl<'keyboard> Bindings<'keyboard> {
    fn new(server: &'keyboard X11, table: &'keyboard SymbolTable) -> Self {
        Self { server, table, symbols: BTreeMap::new() }
    }

    /// Replaces what was bound before.
    fn bind(&mut self, bindings: &[(Slot, Keysym)]) -> Outcome<()> {
        self.symbols.values_mut().for_each(Vec::clear);
        for (slot, symbol) in bindings {
            let levels = self.symbols.entry(slot.keycode).or_default();
            levels.resize(levels.len().max(self.table.spare_width), 0);
            levels[slot.level] = *symbol;
        }
        self.write()?;
        self.server.sync()
    }

    /// Each request makes every client read the map again and the window manager grab its shortcuts again (openbox
    /// needs 60 ms of CPU for that), and spare keycodes lie scattered. So XKB gets one request that spans them all and
    /// repeats what lies between.
    fn write(&self) -> Outcome<()> {
        let (Some(first), Some(last)) = (self.symbols.keys().next(), self.symbols.keys().next_back()) else {
            return Ok(());
        };
        if self.table.keys.is_empty() {
            return self.write_core();
        }
        let from = usize::from(first.saturating_sub(self.table.first));
        let to = usize::from(last.saturating_sub(self.table.first)).min(self.table.keys.len() - 1);
        let mut keys = self.table.keys[from..=to].to_vec();
        for (keycode, levels) in &self.symbols {
            let Some(key) = keys.get_mut(usize::from(keycode - first)) else { continue };
            if !levels.is_empty() {
                *key = xkb::KeySymMap {
                    kt_index: [self.table.spare_type; 4],
                    group_info: 1,
                    width: levels.len() as u8,
                    syms: levels.clone(),
                };
            }
        }
        let total = keys.iter().map(|key| key.syms.len() as u16).sum();
        let count = keys.len() as u8;
        let parts = xkb::SetMapAux { syms: Some(keys), ..Default::default() };
        let core = u16::from(xkb::ID::USE_CORE_KBD);
        let (lowest, highest) = {
            let setup = self.server.wire.setup();
            (setup.min_keycode, setup.max_keycode)
        };
        let request = self.server.wire.xkb_set_map(
            core,
            xkb::SetMapFlags::default(),
            lowest,
            highest,
            0,
            0,
            *first,
            count,
            total,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            xkb::VMod::default(),
            &parts,
        )?;
        request.check()?;
        Ok(())
    }

    /// One request for each run of neighbours; both levels get the symbol.
    fn write_core(&self) -> Outcome<()> {
        for run in runs(self.symbols.keys().copied()) {
            let symbol = |keycode: &u8| self.symbols[keycode].first().copied().unwrap_or(0);
            let symbols: Vec<Keysym> = run.iter().flat_map(|keycode| [symbol(keycode); 2]).collect();
            self.server.wire.change_keyboard_mapping(run.len() as u8, run[0], 2, &symbols)?;
        }
        Ok(())
    }
}

impl Drop for Bindings<'_> {
    fn drop(&mut self) {
        if self.symbols.is_empty() {
            return;
        }
        self.server.begin_cleanup();
        self.symbols.values_mut().for_each(Vec::clear);
        let _ = self.write();
        let _ = self.server.sync();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drag_ends_on_its_target() {
        let (from, to) = (Point { x: 10, y: 20 }, Point { x: -3, y: 1000 });
        assert_eq!(between(from, to, 7, 7), to);
        assert_eq!(between(from, to, 0, 7), from);
        assert_eq!(between(from, from, 3, 7), from);
    }

    fn kind(mods: u8, entries: &[(u8, u8)]) -> xkb::KeyType {
        let mask = |bits: u8| ModMask::from(u16::from(bits));
        xkb::KeyType {
            mods_mask: mask(mods),
            mods_mods: mask(mods),
            mods_vmods: xkb::VMod::default(),
            num_levels: 4,
            has_preserve: false,
            map: entries
                .iter()
                .map(|(bits, level)| xkb::KTMapEntry {
                    active: true,
                    mods_mask: mask(*bits),
                    level: *level,
                    mods_mods: mask(*bits),
                    mods_vmods: xkb::VMod::default(),
                })
                .collect(),
            preserve: Vec::new(),
        }
    }

    #[test]
    fn levels_are_chosen_by_the_fewest_modifiers() {
        let alphabetic = kind(0b11, &[(0b01, 1), (0b10, 1)]);
        assert_eq!(modifiers_for(&alphabetic, 0, 0), Some(0));
        assert_eq!(modifiers_for(&alphabetic, 1, 0), Some(0b01));
        assert_eq!(modifiers_for(&alphabetic, 2, 0), None);
        let four = kind(0b1000_0001, &[(1, 1), (0x80, 2), (0x81, 3)]);
        assert_eq!(modifiers_for(&four, 3, 0), Some(0x81));
    }

    #[test]
    fn a_locked_number_lock_turns_the_keypad_around() {
        let keypad = kind(0b1_0001, &[(0b1_0000, 1), (0b0_0001, 1)]);
        assert_eq!(modifiers_for(&keypad, 1, 0b1_0000), Some(0));
        assert_eq!(modifiers_for(&keypad, 0, 0b1_0000), Some(0b0_0001));
    }

    #[test]
    fn groups_out_of_range_wrap_or_clamp() {
        let key =
            |group_info| xkb::KeySymMap { kt_index: [0; 4], group_info, width: 1, syms: vec![0x61, 0x62] };
        let types = [kind(0, &[])];
        let symbol = |info, group| describe(&key(info), 9, 0, &types, group, 0).levels[0].keysym;
        assert_eq!(symbol(0x02, 1), 0x62);
        assert_eq!(symbol(0x02, 2), 0x61);
        assert_eq!(symbol(0x42, 3), 0x62);
        assert_eq!(symbol(0x92, 3), 0x62);
        assert_eq!(symbol(0x82, 3), 0x61);
    }
}
