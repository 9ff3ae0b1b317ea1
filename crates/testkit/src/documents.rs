//! Documents and pages for the office and the browsers: made before a test, read after it.

use std::path::{Path, PathBuf};

use crate::{Desktop, fixture};

#[track_caller]
fn python(desktop: &Desktop, script: &str, args: &[&str]) -> String {
    let script = fixture(script).to_string_lossy().into_owned();
    let words: Vec<&str> = std::iter::once(script.as_str()).chain(args.iter().copied()).collect();
    desktop.tool("/usr/bin/python3", &words)
}

impl Desktop {
    /// A sheet with these cells (`A1=near`, `ZZ50000=7`); `@ZZ50000` puts the cursor there.
    #[track_caller]
    pub fn sheet(&self, name: &str, cells: &[&str]) -> PathBuf {
        let path = self.path(name);
        let text = path.to_string_lossy().into_owned();
        let args: Vec<&str> = ["sheet", text.as_str()].into_iter().chain(cells.iter().copied()).collect();
        python(self, "documents.py", &args);
        path
    }

    /// A text document of about that many pages; 0: a heading and two paragraphs.
    #[track_caller]
    pub fn text_document(&self, name: &str, pages: u32) -> PathBuf {
        let path = self.path(name);
        python(self, "documents.py", &["text", &path.to_string_lossy(), &pages.to_string()]);
        path
    }

    /// The text of a cell in a saved sheet.
    #[track_caller]
    pub fn saved_cell(&self, sheet: &Path, address: &str) -> String {
        python(self, "documents.py", &["cell", &sheet.to_string_lossy(), address])
    }

    /// The paragraphs of a saved text document.
    #[track_caller]
    pub fn saved_paragraphs(&self, document: &Path) -> Vec<String> {
        python(self, "documents.py", &["paragraphs", &document.to_string_lossy()])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// A page of about that many accessible objects.
    #[track_caller]
    pub fn page(&self, nodes: u32) -> PathBuf {
        let path = self.path(&format!("page-{nodes}.html"));
        python(self, "page.py", &[&nodes.to_string(), &path.to_string_lossy()]);
        path
    }

    /// The page with a form, whose title tells the last event that its script saw.
    pub fn form(&self) -> PathBuf {
        fixture("form.html")
    }
}
