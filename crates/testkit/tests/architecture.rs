//! The shape of the workspace: which way its arrows point, what its core keeps away from, and that every word programs
//! branch on is documented.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What a crate names under its dependencies, those of tests aside.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = agent_desktop_testkit::root().join("crates").join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).expect("the crate has a manifest");
    let mut found = BTreeSet::new();
    let mut counts = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            let plain = section == "dependencies" || section == "build-dependencies";
            counts = plain || (section.starts_with("target.") && section.ends_with(".dependencies"));
            // `[dependencies.name]` would pass unseen.
            assert!(!section.starts_with("dependencies."), "{name}: write {section} as a line");
        } else if counts
            && !line.starts_with('#')
            && let Some((dependency, _)) = line.split_once(['.', ' ', '='])
        {
            found.insert(dependency.to_owned());
        }
    }
    found
}

fn sources(name: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("the file can be read");
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&agent_desktop_testkit::root().join("crates").join(name).join("src"), &mut found);
    assert!(!found.is_empty());
    found
}

#[test]
fn the_arrows_point_one_way() {
    assert_eq!(dependencies("core"), BTreeSet::from(["serde".to_owned()]), "core stands on nothing");
    let engine = dependencies("engine");
    assert!(engine.contains("agent-desktop-core"));
    for system in ["agent-desktop-linux", "agent-desktop-macos", "agent-desktop-windows"] {
        assert!(!engine.contains(system), "engine runs on any platform and knows none");
    }
    for other in ["agent-desktop-engine", "agent-desktop", "serde_json", "clap"] {
        assert!(!dependencies("linux").contains(other), "linux must not know {other}");
    }
    for (name, below) in [("core", true), ("linux", true), ("testkit", false)] {
        assert!(!dependencies(name).contains("agent-desktop"), "{name} must not know the door");
        if below {
            for (path, text) in sources(name) {
                assert!(!text.contains("serde_json"), "{} is below the engine", path.display());
            }
        }
    }
    let names: Vec<String> = ["core", "engine", "linux", "cli"].map(str::to_owned).into();
    for name in names {
        assert!(!dependencies(&name).contains("agent-desktop-testkit"), "{name} ships without the testkit");
    }
}

#[test]
fn core_has_no_disk_no_processes_no_environment_and_no_clock() {
    for (path, text) in sources("core") {
        let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for word in
            ["std::fs", "std::process", "std::env", "std::net", "std::thread", "Instant::now", "SystemTime"]
        {
            assert!(!shipped.contains(word), "{} mentions {word}", path.display());
        }
        // Not in its tests either: they run on handed-in time.
        for word in ["std::fs", "std::process", "std::env"] {
            assert!(!text.contains(word), "{} mentions {word}", path.display());
        }
    }
}

/// The texts in quotes.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

/// From the opening parenthesis at the start to its closing one.
fn in_parentheses(text: &str) -> &str {
    let mut depth = 0_i32;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..at];
        }
    }
    text
}

/// Every word that the code can put into `details.kind`, and where.
fn kinds() -> BTreeMap<String, PathBuf> {
    let mut kinds = BTreeMap::new();
    for name in ["core", "engine", "linux", "cli"] {
        for (path, text) in sources(name) {
            if path.file_name().is_some_and(|name| name.to_string_lossy().contains("test")) {
                continue;
            }
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let mut add = |part: &str| {
                for literal in literals(part) {
                    kinds.insert(literal.to_owned(), path.clone());
                }
            };
            for (at, call) in text.match_indices(".kind(") {
                add(in_parentheses(&text[at + call.len() - 1..]));
            }
            // Words that come from a function: `fn kind(&self) -> &'static str`.
            for (at, _) in text.match_indices("fn kind(&self) -> &'static str {") {
                add(text[at..].split("\n    }").next().unwrap_or_default());
            }
            // Words that are handed to a function: `fn timeout(kind: &'static str, …`.
            for (at, _) in text.match_indices("(kind: &'static str") {
                let function = text[..at].rsplit(' ').next().unwrap_or_default();
                for (call, found) in text.match_indices(&format!("{function}(\"")) {
                    add(in_parentheses(&text[call + found.len() - 2..])
                        .split(',')
                        .next()
                        .unwrap_or_default());
                }
            }
        }
    }
    kinds
}

#[test]
fn every_kind_that_the_code_produces_is_documented_and_no_other() {
    let kinds = kinds();
    assert!(kinds.len() > 15, "the search for kinds is broken: {kinds:?}");
    let page = std::fs::read_to_string(agent_desktop_testkit::root().join("docs/contract.md")).unwrap();
    let section = page.split("<!-- kinds -->").nth(1).expect("docs/contract.md has a table of kinds");
    let documented: BTreeSet<&str> = section
        .split("<!-- kinds end -->")
        .next()
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .collect();
    for (kind, path) in &kinds {
        assert!(documented.contains(kind.as_str()), "{kind} of {} is not documented", path.display());
    }
    for kind in documented {
        assert!(kinds.contains_key(kind), "{kind} is documented, and nothing produces it");
    }
}
