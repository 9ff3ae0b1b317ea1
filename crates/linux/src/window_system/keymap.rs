//! Which keys to press for which characters. Pure: the server's tables come in, a plan goes out.
//!
//! A character that the current layout has is typed by its own key, with the Shift and `AltGr` its level needs. One that it
//! lacks is put on a spare keycode (one without any symbol) as a Unicode keysym; a plan is cut into batches so that
//! each needs no more spare keycodes than there are. Dead keys and compose sequences are never used: what they
//! give depends on the application's input method.

use std::collections::HashMap;

use xkeysym::key;

/// A symbol on a key, as X numbers them: `0x61` is `a`, `0xff0d` is Return, `0x0100_0000 + code point` any other
/// character.
///
/// <https://www.x.org/releases/current/doc/xproto/x11protocol.html#keysym_encoding>
pub type Keysym = u32;

/// First keysym of the Unicode range.
const UNICODE: Keysym = 0x0100_0000;

/// Bits of the real modifiers.
pub(super) const SHIFT: u8 = 1;
pub(super) const LOCK: u8 = 1 << 1;
const CONTROL: u8 = 1 << 2;

/// The keysym that stands for a character; `None` for control characters other than newline and tabulator.
///
/// `'\n'` and `'\r'` give Return, `'\t'` gives Tab.
pub fn keysym_for_character(character: char) -> Option<Keysym> {
    match character {
        '\n' | '\r' => Some(key::Return),
        '\t' => Some(key::Tab),
        control if control.is_control() => None,
        // Latin-1 characters are their own keysyms.
        latin if u32::from(latin) <= 0xff => Some(u32::from(latin)),
        other => Some(UNICODE + u32::from(other)),
    }
}

/// The keysym of a named key or modifier of the `press` command, for example `return`, `pageup`, `f5`, `ctrl`, `k`.
///
/// Case does not matter. Single letters give the lower-case symbol; whether Shift is held is the chord's business.
pub fn keysym_for_name(name: &str) -> Option<Keysym> {
    let name = name.to_ascii_lowercase();
    if let [character @ (b'a'..=b'z' | b'0'..=b'9')] = name.as_bytes() {
        return Some(Keysym::from(*character));
    }
    Some(match name.as_str() {
        "cmd" | "command" | "meta" | "super" => key::Super_L,
        "ctrl" | "control" => key::Control_L,
        "alt" | "option" => key::Alt_L,
        "shift" => key::Shift_L,
        "return" | "enter" => key::Return,
        "escape" | "esc" => key::Escape,
        "tab" => key::Tab,
        "space" => key::space,
        "delete" | "backspace" => key::BackSpace,
        "forwarddelete" => key::Delete,
        "home" => key::Home,
        "end" => key::End,
        "pageup" => key::Page_Up,
        "pagedown" => key::Page_Down,
        "left" => key::Left,
        "right" => key::Right,
        "up" => key::Up,
        "down" => key::Down,
        "insert" => key::Insert,
        "menu" => key::Menu,
        "print" => key::Print,
        function => {
            let number: u32 = function.strip_prefix('f')?.parse().ok()?;
            return (1..=24).contains(&number).then(|| key::F1 + number - 1);
        }
    })
}

/// The character that a key's symbol types by itself. `None` for keypad, function, dead and modifier keys.
fn character_of(keysym: Keysym) -> Option<char> {
    match keysym {
        0x20..=0x7e | 0xa0..=0xff => char::from_u32(keysym),
        UNICODE..=0x0110_ffff => char::from_u32(keysym - UNICODE).filter(|character| !character.is_control()),
        // The old sets of single alphabets, from Latin-2 to Korean and the currency signs.
        0x100..=0x20ff => xkeysym::Keysym::new(keysym).key_char(),
        _ => None,
    }
}

/// A key and the real modifiers (as a mask) to hold while it is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stroke {
    pub(super) keycode: u8,
    pub(super) modifiers: u8,
}

/// One level of one key: its symbol, and the modifiers that choose the level. `None`: cannot be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) keysym: Keysym,
    pub(super) modifiers: Option<u8>,
}

/// A key as the server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct KeyDescription {
    pub(super) keycode: u8,
    /// The levels in the current group.
    pub(super) levels: Vec<Level>,
    /// All symbols of the other groups, lowest level first.
    pub(super) other_groups: Vec<Keysym>,
    /// The real modifiers this key sets.
    pub(super) sets: u8,
}

/// The keyboard as far as typing needs it.
#[derive(Debug, Default)]
pub(super) struct Keymap {
    by_keysym: HashMap<Keysym, Stroke>,
    by_character: HashMap<char, Stroke>,
    elsewhere: HashMap<Keysym, u8>,
    /// For each real modifier the key that holds it while pressed.
    modifier_keys: [Option<u8>; 8],
    /// Every key that sets a modifier, with what it sets.
    pub(super) modifier_keycodes: Vec<(u8, u8)>,
    /// The real modifier of `NumLock`, which typing leaves alone.
    pub(super) number_lock: u8,
    /// Places for symbols that the layout lacks, those without modifiers first.
    pub(super) slots: Vec<Slot>,
}

/// A level of a keycode without symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) keycode: u8,
    /// Counted from 0.
    pub(super) level: usize,
    /// What to hold to reach it.
    pub(super) modifiers: u8,
}

impl Slot {
    pub(super) fn stroke(self) -> Stroke {
        Stroke { keycode: self.keycode, modifiers: self.modifiers }
    }
}

/// Symbols to put on spare keycodes, and what to press once they are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Batch {
    pub(super) bindings: Vec<(Slot, Keysym)>,
    pub(super) strokes: Vec<Stroke>,
}

impl Keymap {
    /// Orders the server's description by what is looked up. `spare_levels` are the modifiers for each level that a
    /// spare keycode can be given.
    pub(super) fn new(keys: &[KeyDescription], spare_levels: &[u8]) -> Self {
        let mut map = Self::default();
        let mut spare = Vec::new();
        for key in keys {
            if key.sets != 0 {
                map.modifier_keycodes.push((key.keycode, key.sets));
            }
            let first = key.levels.first().map_or(0, |level| level.keysym);
            for bit in 0..8 {
                let is_only = key.sets == 1 << bit;
                if is_only && is_momentary(first) && map.modifier_keys[bit].is_none() {
                    map.modifier_keys[bit] = Some(key.keycode);
                }
            }
            if first == key::Num_Lock {
                map.number_lock |= key.sets;
            }
            let is_empty = key.levels.iter().all(|level| level.keysym == 0)
                && key.other_groups.iter().all(|keysym| *keysym == 0);
            if is_empty && key.sets == 0 {
                spare.push(key.keycode);
            }
        }
        for key in keys {
            for level in &key.levels {
                let Some(modifiers) = level.modifiers.filter(|mask| map.can_hold(*mask)) else { continue };
                let stroke = Stroke { keycode: key.keycode, modifiers };
                keep_simplest(map.by_keysym.entry(level.keysym).or_insert(stroke), stroke);
                if let Some(character) = character_of(level.keysym) {
                    keep_simplest(map.by_character.entry(character).or_insert(stroke), stroke);
                }
            }
            for keysym in &key.other_groups {
                map.elsewhere.entry(*keysym).or_insert(key.keycode);
            }
        }
        map.by_keysym.remove(&0);
        map.elsewhere.remove(&0);
        // Without XKB a map change is announced for each run of neighbouring keycodes, so long runs come first.
        let spare = longest_runs_first(&spare);
        for (level, modifiers) in spare_levels.iter().copied().enumerate() {
            if map.can_hold(modifiers) {
                map.slots.extend(spare.iter().map(|keycode| Slot { keycode: *keycode, level, modifiers }));
            }
        }
        map
    }

    fn can_hold(&self, modifiers: u8) -> bool {
        modifiers & (LOCK | CONTROL) == 0
            && (0..8).all(|bit| modifiers & (1 << bit) == 0 || self.modifier_keys[bit].is_some())
    }

    /// The keys to hold for a modifier mask.
    pub(super) fn keys_for(&self, modifiers: u8) -> Vec<u8> {
        (0..8).filter(|bit| modifiers & (1 << bit) != 0).filter_map(|bit| self.modifier_keys[bit]).collect()
    }

    /// The key for a symbol in the current group, else the key that has it in another group (shortcuts are looked up in
    /// all groups by toolkits, so Ctrl+C works while a Cyrillic layout is on).
    pub(super) fn stroke(&self, keysym: Keysym) -> Option<Stroke> {
        self.by_keysym
            .get(&keysym)
            .copied()
            .or_else(|| self.elsewhere.get(&keysym).map(|keycode| Stroke { keycode: *keycode, modifiers: 0 }))
    }

    fn stroke_for_character(&self, character: char) -> Option<Stroke> {
        match character {
            '\n' | '\t' => self.by_keysym.get(&keysym_for_character(character)?).copied(),
            _ => self.by_character.get(&character).copied(),
        }
    }

    /// What to press for `text`, in batches.
    ///
    /// The strokes of all batches together are one for each character; a carriage return before a newline is gone
    /// from `text` by now.
    ///
    /// # Errors
    /// The index of the first character that cannot be typed.
    pub(super) fn plan(&self, text: &[char]) -> Result<Vec<Batch>, usize> {
        let mut batches = vec![Batch::default()];
        let mut bound: HashMap<char, Slot> = HashMap::new();
        for (index, character) in text.iter().enumerate() {
            let keysym = keysym_for_character(*character).ok_or(index)?;
            let stroke = if let Some(stroke) = self.stroke_for_character(*character) {
                stroke
            } else if let Some(slot) = bound.get(character) {
                slot.stroke()
            } else {
                if bound.len() == self.slots.len() {
                    bound.clear();
                    batches.push(Batch::default());
                }
                let slot = *self.slots.get(bound.len()).ok_or(index)?;
                bound.insert(*character, slot);
                batches.last_mut().expect("begins with one").bindings.push((slot, keysym));
                slot.stroke()
            };
            batches.last_mut().expect("begins with one").strokes.push(stroke);
        }
        Ok(batches)
    }
}

/// Whether a modifier key works while held, unlike locks, and chooses a level rather than a shortcut.
fn is_momentary(keysym: Keysym) -> bool {
    matches!(keysym, key::Shift_L | key::Shift_R | key::ISO_Level3_Shift | key::ISO_Level5_Shift)
}

/// Fewest modifiers, then the lowest keycode.
fn keep_simplest(best: &mut Stroke, candidate: Stroke) {
    let cost = |stroke: &Stroke| (stroke.modifiers.count_ones(), stroke.modifiers, stroke.keycode);
    if cost(&candidate) < cost(best) {
        *best = candidate;
    }
}

fn longest_runs_first(keycodes: &[u8]) -> Vec<u8> {
    let mut runs = runs(keycodes.iter().copied());
    runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
    runs.concat()
}

/// Cuts ascending keycodes into runs of neighbours.
pub(super) fn runs(keycodes: impl IntoIterator<Item = u8>) -> Vec<Vec<u8>> {
    let mut runs: Vec<Vec<u8>> = Vec::new();
    for keycode in keycodes {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| last.checked_add(1) == Some(keycode)) => {
                run.push(keycode);
            }
            _ => runs.push(vec![keycode]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVEL3: u8 = 1 << 7;

    fn key(keycode: u8, keysyms: &[Keysym]) -> KeyDescription {
        let masks = [0, SHIFT, LEVEL3, LEVEL3 | SHIFT];
        let levels = keysyms
            .iter()
            .zip(masks)
            .map(|(keysym, mask)| Level { keysym: *keysym, modifiers: Some(mask) })
            .collect();
        KeyDescription { keycode, levels, ..Default::default() }
    }

    fn modifier(keycode: u8, keysym: Keysym, sets: u8) -> KeyDescription {
        KeyDescription { sets, ..key(keycode, &[keysym]) }
    }

    /// A tiny German keyboard with two spare keycodes.
    fn german() -> Keymap {
        Keymap::new(
            &[
                key(24, &[0x71, 0x51, 0x40]),
                key(48, &[0xe4, 0xc4, key::dead_circumflex]),
                key(49, &[key::dead_circumflex, 0xb0]),
                key(36, &[key::Return]),
                key(23, &[key::Tab, key::ISO_Left_Tab]),
                key(87, &[key::KP_End, key::KP_1]),
                modifier(50, key::Shift_L, SHIFT),
                modifier(66, key::Caps_Lock, LOCK),
                modifier(77, key::Num_Lock, 1 << 4),
                modifier(92, key::ISO_Level3_Shift, LEVEL3),
                key(200, &[0, 0]),
                KeyDescription { keycode: 201, ..Default::default() },
            ],
            &[0],
        )
    }

    #[track_caller]
    fn strokes(map: &Keymap, text: &str) -> Vec<(u8, u8)> {
        let text: Vec<char> = text.chars().collect();
        map.plan(&text)
            .unwrap()
            .iter()
            .flat_map(|batch| &batch.strokes)
            .map(|stroke| (stroke.keycode, stroke.modifiers))
            .collect()
    }

    #[test]
    fn uses_the_levels_of_the_layout() {
        let map = german();
        assert_eq!(
            strokes(&map, "qQ@äÄ\n\t"),
            [(24, 0), (24, SHIFT), (24, LEVEL3), (48, 0), (48, SHIFT), (36, 0), (23, 0)]
        );
        assert_eq!(map.number_lock, 1 << 4);
    }

    #[test]
    fn dead_keys_and_the_keypad_do_not_type() {
        let map = german();
        let plan = map.plan(&['^', '1']).unwrap();
        assert_eq!(bindings(&plan[0]), [(200, 0x5e), (201, 0x31)]);
    }

    #[test]
    fn what_is_missing_goes_to_spare_keycodes_in_batches() {
        let map = german();
        let text: Vec<char> = "П你П🙂q🙂".chars().collect();
        let plan = map.plan(&text).unwrap();
        assert_eq!(plan.len(), 2);
        assert_eq!(bindings(&plan[0]), [(200, 0x0100_041f), (201, 0x0100_4f60)]);
        assert_eq!(plan[0].strokes.len(), 3);
        assert_eq!(bindings(&plan[1]), [(200, 0x0101_f642)]);
        assert_eq!(plan[1].strokes.len(), 3);
    }

    fn bindings(batch: &Batch) -> Vec<(u8, Keysym)> {
        batch.bindings.iter().map(|(slot, keysym)| (slot.keycode, *keysym)).collect()
    }

    #[test]
    fn spare_keycodes_have_as_many_levels_as_can_be_reached() {
        let shift = modifier(50, key::Shift_L, SHIFT);
        let empty = |keycode| KeyDescription { keycode, ..Default::default() };
        // No key holds LEVEL3 here.
        let map = Keymap::new(&[shift, empty(200), empty(201)], &[0, SHIFT, LEVEL3]);
        assert_eq!(strokes(&map, "абвга"), [(200, 0), (201, 0), (200, SHIFT), (201, SHIFT), (200, 0)]);
        assert_eq!(map.plan(&['а', 'б', 'в', 'г', 'д']).unwrap().len(), 2);
    }

    #[test]
    fn control_characters_are_refused_with_their_place() {
        assert_eq!(german().plan(&['q', '\u{7}']), Err(1));
        assert_eq!(Keymap::new(&[key(24, &[0x71])], &[0]).plan(&['q', 'x']), Err(1));
    }

    #[test]
    fn old_alphabets_are_recognised() {
        // Cyrillic_PE and Greek_alpha as layouts write them.
        let map = Keymap::new(&[key(42, &[0x6f0]), key(43, &[0x7e1])], &[0]);
        assert_eq!(strokes(&map, "Пα"), [(42, 0), (43, 0)]);
    }

    #[test]
    fn a_level_that_only_a_lock_reaches_is_not_used() {
        let mut caps = key(24, &[0x71]);
        caps.levels.push(Level { keysym: 0x51, modifiers: Some(LOCK) });
        caps.levels.push(Level { keysym: 0x3b1, modifiers: None });
        let map = Keymap::new(&[caps, modifier(66, key::Caps_Lock, LOCK)], &[0]);
        assert_eq!(map.plan(&['Q']), Err(0));
    }

    #[test]
    fn shortcuts_find_letters_of_another_group() {
        let mut russian = key(54, &[0x6d3]);
        russian.other_groups = vec![0x63];
        let map = Keymap::new(&[russian], &[0]);
        assert_eq!(map.stroke(0x63), Some(Stroke { keycode: 54, modifiers: 0 }));
        assert!(map.plan(&['c']).is_err());
    }

    #[test]
    fn names_of_keys() {
        assert_eq!(keysym_for_name("Enter"), Some(key::Return));
        assert_eq!(keysym_for_name("f12"), Some(key::F12));
        assert_eq!(keysym_for_name("K"), Some(0x6b));
        for wrong in ["f0", "f25", "ff", "", "hyper", "ä"] {
            assert_eq!(keysym_for_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn runs_of_neighbours() {
        assert_eq!(runs([1, 2, 5, 254, 255]), [vec![1, 2], vec![5], vec![254, 255]]);
        assert_eq!(longest_runs_first(&[8, 20, 21, 22, 40, 41]), [20, 21, 22, 40, 41, 8]);
    }
}
