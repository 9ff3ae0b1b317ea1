//! Key chords: whatever is accepted prints back to itself.
#![no_main]

use agent_desktop_core::key::Chord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(chord) = Chord::parse(text) {
        assert!(chord.modifiers.is_sorted_by(|one, other| one < other));
        assert_eq!(Chord::parse(&chord.to_string()), Ok(chord.clone()));
        assert!(chord.is_one_of(&[text]));
    }
});
