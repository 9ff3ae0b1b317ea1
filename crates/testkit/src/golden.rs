//! Files that tests compare with what the code says, and rewrite when asked to.
//!
//! `BLESS=1 cargo test …` writes what is expected now; the difference is then read like any other change. Without it a
//! difference fails the test.

use std::fmt::Write;
use std::path::Path;

fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some_and(|value| value == "1")
}

/// Compares a whole file with a text.
///
/// # Panics
/// When they differ, or when the file cannot be written.
#[track_caller]
pub fn file(path: &Path, expected: &str) {
    settle(path, &std::fs::read_to_string(path).unwrap_or_default(), expected);
}

/// Compares the generated blocks of a page with texts.
///
/// A block stands between `<!-- generated: NAME -->` and `<!-- end -->`, each on a line of its own. Every block must be in
/// the page exactly once.
///
/// # Panics
/// When a block differs or is missing.
#[track_caller]
pub fn blocks(path: &Path, blocks: &[(String, String)]) {
    let page = std::fs::read_to_string(path).expect("the page is there");
    let mut expected = page.clone();
    let mut missing = String::new();
    for (name, text) in blocks {
        let start = format!("<!-- generated: {name} -->\n");
        match expected.match_indices(&start).map(|(at, _)| at + start.len()).collect::<Vec<_>>()[..] {
            [at] => {
                let length = expected[at..].find("<!-- end -->").expect("a block has an end");
                expected.replace_range(at..at + length, &format!("{}\n", text.trim_end()));
            }
            ref found => {
                let _ = write!(missing, "\n{} times {}", found.len(), start.trim_end());
            }
        }
    }
    assert!(missing.is_empty(), "{} must have each block once, but has{missing}", path.display());
    settle(path, &page, &expected);
}

/// A table in Markdown.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | ").trim_end())
    };
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let mut text = line(&head);
    let _ = writeln!(text, "|{}", "---|".repeat(head.len()));
    for row in rows {
        text.push_str(&line(&row));
    }
    text
}

#[track_caller]
fn settle(path: &Path, actual: &str, expected: &str) {
    if actual == expected {
        return;
    }
    if is_blessing() {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("the folder can be made");
        }
        std::fs::write(path, expected).expect("the file can be written");
        return;
    }
    let mut lines = actual.lines().zip(expected.lines()).enumerate();
    let difference = match lines.find(|(_, (is, should))| is != should) {
        Some((index, (is, should))) => format!("line {}:\n  is      {is}\n  should  {should}", index + 1),
        None => format!("{} lines, should be {}", actual.lines().count(), expected.lines().count()),
    };
    panic!("{} is not what the code says (BLESS=1 rewrites it)\n{difference}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_up_to_date_passes_and_another_does_not() {
        let folder = std::env::temp_dir().join(format!("agent-desktop-golden-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let page = folder.join("page.md");
        std::fs::write(&page, "a\n<!-- generated: one -->\nx\n<!-- end -->\nb\n").unwrap();
        let check = |name: &str, text: &str| {
            let block = [(name.to_owned(), text.to_owned())];
            std::panic::catch_unwind(|| blocks(&page, &block)).is_ok()
        };
        assert!(check("one", "x"));
        if !is_blessing() {
            assert!(!check("one", "y"));
        }
        assert!(!check("two", "x"), "a missing block");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
