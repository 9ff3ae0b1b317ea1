//! Ref strings: whatever is accepted is within the grammar and prints back to itself; errors never repeat the text.
#![no_main]

use agent_desktop_core::refs::{RefTarget, is_snapshot_id, parse_bare};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, Option<&str>)| {
    let (text, snapshot) = input;
    match RefTarget::parse(text, snapshot) {
        Ok(target) => {
            assert!(is_snapshot_id(&target.snapshot_id) && target.number > 0);
            assert_eq!(RefTarget::parse(&target.to_string(), None), Ok(target.clone()));
            assert_eq!(parse_bare(&target.bare()), Some(target.number));
            assert!(snapshot.is_none_or(|id| id == target.snapshot_id));
        }
        // A fixed number of characters, however long the text is.
        Err(error) => assert!(error.message().len() + error.get_hint().map_or(0, str::len) < 256),
    }
});
