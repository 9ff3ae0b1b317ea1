//! A trace as one page for a browser: everything is in the file, nothing is fetched.
//!
//! The page shows what was on the screen, where the session kept that: it is written for its user alone. The data stands
//! in the page as JSON that cannot end its element; the page's own script makes text of it, never markup.

use std::collections::BTreeMap;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::outline;
use agent_desktop_core::refs::{self, MAX_MAP_BYTES, RefEntry, RefMap};
use agent_desktop_core::state::State;
use base64::Engine as _;
use serde::Serialize;
use serde_json::{Map, Value};

use super::read::{Reading, Segment, Warning};
use super::steps::{Step, steps};
use crate::artifacts::{MAPS, SCREENS};
use crate::picture;
use crate::private_files::Directory;
use crate::session::{Manifest, unix_ms};
use crate::store;

/// Bytes of the data of a page.
pub(crate) const MAX_DATA: usize = 200 * 1024 * 1024;
/// Bytes of the page around them.
pub(crate) const MAX_PAGE: usize = 512 * 1024;
/// Bytes of the pictures in it, as they are on disk.
pub(crate) const MAX_PICTURES: usize = 100 * 1024 * 1024;
/// Characters of one text of a tree.
const TEXT: usize = 200;

const PAGE: &str = include_str!("page.html");
const _: () = assert!(PAGE.len() <= MAX_PAGE, "the page is larger than it may be");
/// Where the data go.
const DATA: &str = "@DATA@";
/// Where the id goes.
const TITLE: &str = "@ID@";

/// A page, and what is in it.
pub(crate) struct Exported {
    pub(crate) page: String,
    pub(crate) embedded: usize,
    pub(crate) skipped: usize,
}

#[derive(Serialize)]
struct Data<'a> {
    program: &'static str,
    exported_at: u64,
    session: SessionFacts<'a>,
    total_events: usize,
    segments: &'a [Segment],
    warnings: &'a [Warning],
    steps: &'a [Step],
    events: Vec<&'a Map<String, Value>>,
    trees: BTreeMap<&'a str, Vec<TreeNode>>,
    images: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct SessionFacts<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<u64>,
}

/// An element of a tree, as far as its ref knows it.
#[derive(Debug, PartialEq, Serialize)]
struct TreeNode {
    #[serde(rename = "ref")]
    reference: String,
    depth: usize,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    states: Vec<&'static str>,
}

/// Makes the page.
///
/// # Errors
/// `INVALID_ARGS` when it would be too large.
pub(crate) fn page(
    trace: &Directory,
    id: &str,
    manifest: Option<&Manifest>,
    reading: &Reading,
    total_events: usize,
) -> Result<Exported> {
    let steps = steps(reading);
    let Pictures { images, skipped } = Pictures::of(trace, &steps);
    let data = Data {
        program: concat!("agent-desktop ", env!("CARGO_PKG_VERSION")),
        exported_at: unix_ms(),
        session: SessionFacts {
            id,
            name: manifest.and_then(|manifest| manifest.name.as_deref()),
            created_at: manifest.map(|manifest| manifest.created_at),
            ended_at: manifest.and_then(|manifest| manifest.ended_at),
        },
        total_events,
        segments: &reading.segments,
        warnings: &reading.warnings,
        events: reading.events.iter().map(|event| &event.fields).collect(),
        trees: trees(trace, &steps),
        images: &images,
        steps: &steps,
    };
    let text = serde_json::to_string(&data).map_err(|error| {
        Error::internal("the trace cannot be written as JSON").platform_detail(error.to_string())
    })?;
    let text = island(&text);
    if text.len() > MAX_DATA {
        return Err(Error::invalid(format!("the page would have more than {MAX_DATA} bytes"))
            .hint("export less of it with --limit")
            .delivery(Delivery::NotDelivered));
    }
    let page = PAGE.replace(TITLE, id);
    let (before, after) = page.split_once(DATA).unwrap_or((&page, ""));
    let mut whole = String::with_capacity(page.len() + text.len());
    whole.push_str(before);
    whole.push_str(&text);
    whole.push_str(after);
    Ok(Exported { page: whole, embedded: images.len(), skipped })
}

/// JSON that can stand inside of a script element, whatever its texts are.
fn island(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // Outside of texts JSON has none of these.
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

#[derive(Default)]
struct Pictures {
    images: BTreeMap<String, String>,
    skipped: usize,
}

impl Pictures {
    /// The pictures that the steps name, as many as fit; the newest go first.
    fn of(trace: &Directory, steps: &[Step]) -> Pictures {
        let mut pictures = Pictures::default();
        let screens = trace.child(SCREENS, false).ok().flatten();
        let mut left = MAX_PICTURES;
        let mut seen = std::collections::BTreeSet::new();
        for name in steps.iter().rev().flat_map(|step| [&step.post, &step.pre]).flatten() {
            if !seen.insert(name) {
                continue;
            }
            let read = screens
                .as_ref()
                .zip(file_name(name))
                .and_then(|(screens, file)| screens.read(file, picture::MAX_PNG.min(left)).ok().flatten());
            match read.filter(|bytes| bytes.starts_with(b"\x89PNG\r\n\x1a\n")) {
                Some(bytes) => {
                    left -= bytes.len();
                    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
                    pictures.images.insert(name.clone(), text);
                }
                None => pictures.skipped += 1,
            }
        }
        pictures
    }
}

/// `screens/41-1700-0-pre.png` as the name of a file of ours.
fn file_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix(SCREENS)?.strip_prefix('/')?;
    let is_ours =
        |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase() || byte == b'-' || byte == b'.';
    (name.bytes().all(is_ours) && !name.starts_with('.')).then_some(name)
}

fn trees<'a>(trace: &Directory, steps: &'a [Step]) -> BTreeMap<&'a str, Vec<TreeNode>> {
    let mut trees = BTreeMap::new();
    let Ok(Some(maps)) = trace.child(MAPS, false) else { return trees };
    for id in steps.iter().flat_map(|step| [&step.snapshot_id, &step.taken]).flatten() {
        if trees.contains_key(id.as_str()) || refs::check_snapshot_id(id).is_err() {
            continue;
        }
        let text = maps.read(&format!("{id}.json"), MAX_MAP_BYTES).ok().flatten();
        if let Some(map) = text.and_then(|text| store::decode(&text, maps.path()).ok()) {
            trees.insert(id.as_str(), tree(&map));
        }
    }
    trees
}

/// The elements of a map in the order of the screen, each below the nearest one that holds it.
fn tree(map: &RefMap) -> Vec<TreeNode> {
    let mut all: Vec<(Vec<u32>, u32, &RefEntry)> =
        map.entries.iter().map(|(&number, entry)| (path(map, entry), number, entry)).collect();
    all.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    let mut above: Vec<Vec<u32>> = Vec::new();
    let mut nodes = Vec::new();
    for (path, number, entry) in all {
        while above.last().is_some_and(|holder| !path.starts_with(holder) || *holder == path) {
            above.pop();
        }
        let cut = |text: &Option<String>| text.as_ref().map(|text| outline::cut(text, TEXT));
        nodes.push(TreeNode {
            reference: refs::bare(number),
            depth: above.len(),
            role: entry.role.as_str(),
            name: cut(&entry.name),
            value: cut(&entry.value).filter(|_| entry.value != entry.name),
            states: entry.states.iter().map(State::as_str).collect(),
        });
        above.push(path);
    }
    nodes
}

/// Where an element is in its window; of one found by a drill, that of the root goes before.
fn path(map: &RefMap, entry: &RefEntry) -> Vec<u32> {
    let mut path = entry.path.clone();
    let mut here = entry;
    // Drills go down at most as far as there are entries.
    for _ in 0..map.entries.len() {
        let root = here.root_ref.as_deref().filter(|_| !here.path_is_absolute).and_then(refs::parse_bare);
        match root.and_then(|number| map.entries.get(&number)) {
            Some(root) => {
                path.splice(0..0, root.path.iter().copied());
                here = root;
            }
            None => break,
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_the_island() {
        let json = serde_json::to_string(&["</script><!--<script>&amp;\u{2028}"]).unwrap();
        let text = island(&json);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            serde_json::from_str::<Value>(&json).unwrap()
        );
    }

    #[test]
    fn only_files_of_ours_are_pictures() {
        assert_eq!(file_name("screens/41-17-0-pre.png"), Some("41-17-0-pre.png"));
        for bad in
            ["41.png", "screens/../x", "screens/.png", "/etc/passwd", "screens/", "screens/a/b", "screensx"]
        {
            assert!(file_name(bad).is_none_or(str::is_empty), "{bad}");
        }
    }

    /// What the page promises to every reader, seen in its source.
    #[test]
    fn the_page_is_whole_and_asks_nobody() {
        assert_eq!(PAGE.matches(DATA).count(), 1);
        for word in ["http://", "https://", "src=\"", "@import", "url(", "innerHTML", "fetch(", "eval("] {
            assert!(!PAGE.contains(word), "{word}");
        }
        for word in
            ["default-src 'none'", "color-scheme", "prefers-color-scheme", "<main", "<nav", "lang=\"en\""]
        {
            assert!(PAGE.contains(word), "{word}");
        }
    }
}
