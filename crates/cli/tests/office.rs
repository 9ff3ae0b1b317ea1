//! Writer and Calc, operated with the built binary. Always under a memory limit: a reader that lists the cells
//! of a sheet makes it grow to 20 GB.

use std::time::{Duration, Instant};

use agent_desktop_testkit::cli::{Cli, find_nodes, nodes};
use agent_desktop_testkit::{desktop_test, wait_until};
use serde_json::Value;

fn cells(tree: &Value) -> Vec<&Value> {
    nodes(tree).into_iter().filter(|node| node["role"] == "cell").collect()
}

fn names(cells: &[&Value]) -> Vec<String> {
    cells.iter().map(|cell| cell["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Letters and number of an address.
fn split(address: &str) -> (String, u32) {
    let digits = address.find(|character: char| character.is_ascii_digit()).expect("an address has a row");
    (address[..digits].to_owned(), address[digits..].parse().expect("a row is a number"))
}

/// Saves with the keyboard, and answers that the format is to be kept if that is asked, until `is_saved`.
fn save(cli: &Cli, is_saved: impl Fn() -> bool) {
    cli.ok(&["press", "ctrl+s", "--app", "soffice", "--headed"]);
    wait_until("the file to be saved", Duration::from_secs(20), || {
        if is_saved() {
            return true;
        }
        let reply = cli.run(&["snapshot", "--app", "soffice", "-i"]);
        if reply.envelope()["ok"] == true {
            let tree = reply.ok()["tree"].take();
            let is_keep = |node: &&Value| {
                node["role"] == "button" && node["name"].as_str().is_some_and(|name| name.starts_with("Use "))
            };
            if let Some(keep) = nodes(&tree).into_iter().find(is_keep) {
                cli.run(&["click", keep["ref_id"].as_str().expect("a button has a ref")]);
            }
        }
        false
    });
}

desktop_test! {
    /// The sheet has 17 billion cells, all of them children of one object.
    fn an_empty_sheet_lists_exactly_the_cells_in_view(desktop: &Desktop) {
        let app = desktop.calc(&desktop.sheet("empty", &[]));
        let before = app.memory();
        let started = Instant::now();
        let tree = desktop.cli().ok(&["snapshot", "--app", "soffice", "--max-depth", "50"])["tree"].take();
        let elapsed = started.elapsed();
        let cells = cells(&tree);
        let names = names(&cells);
        assert_eq!(names.first().map(String::as_str), Some("A1"));
        let (columns, rows): (Vec<_>, Vec<_>) = names.iter().map(|name| split(name)).unzip();
        let distinct = |mut values: Vec<String>| {
            values.sort();
            values.dedup();
            values.len()
        };
        let width = distinct(columns);
        let height = distinct(rows.iter().map(u32::to_string).collect());
        assert_eq!(cells.len(), width * height, "a full rectangle of cells: {width} x {height}");
        assert!((5..60).contains(&width) && (10..120).contains(&height), "{width} x {height}");
        // Generous, because the machine is shared; a walk would take hours.
        assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
        assert!(app.memory() < before + 300_000_000, "Calc grew from {before} to {}", app.memory());
    }

    /// Row 50,000: the index of a cell does not tell its place any more, its name does.
    fn a_cell_far_away_is_set_by_its_address_and_saved(desktop: &Desktop) {
        let sheet = desktop.sheet("far", &["A1=x", "@ZZ50000"]);
        let _app = desktop.calc(&sheet);
        let cli = desktop.cli();
        let tree = cli.ok(&["snapshot", "--app", "soffice", "--max-depth", "50"])["tree"].take();
        let rows: Vec<u32> = names(&cells(&tree)).iter().map(|name| split(name).1).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| (49_900..50_100).contains(row)), "{rows:?}");
        for (address, value) in [("ZZ50000", "hello äöü"), ("ZZ50001", "42.5"), ("ZZ50002", "=ZZ50001*2")] {
            let cell = cli.find("soffice", "cell", address);
            cli.ok(&["set-value", &cell, value]);
        }
        let formula = cli.find("soffice", "cell", "ZZ50002");
        assert_eq!(cli.ok(&["get", &formula, "--property", "value"])["value"], "85");
        save(&cli, || desktop.saved_cell(&sheet, "ZZ50000") == "hello äöü");
        assert_eq!(desktop.saved_cell(&sheet, "ZZ50001"), "42.5");
        assert_eq!(desktop.saved_cell(&sheet, "ZZ50002"), "85");
    }

    fn a_paragraph_of_writer_is_read_and_replaced(desktop: &Desktop) {
        const TEXT: &str = "Hello, World! äöüß é П 你好";
        let document = desktop.text_document("letter", 1);
        let _app = desktop.writer(&document);
        let cli = desktop.cli();
        let tree = cli.ok(&["snapshot", "--app", "soffice", "--max-depth", "50"])["tree"].take();
        assert!(!find_nodes(&tree, "menuitem", "File").is_empty(), "the menu bar is read");
        let paragraph = nodes(&tree)
            .into_iter()
            .find(|node| node["role"] == "paragraph" && node["value"].as_str().is_some_and(|text| !text.is_empty()))
            .expect("a paragraph with text");
        let reference = paragraph["ref_id"].as_str().expect("a paragraph can be edited").to_owned();
        cli.ok(&["set-value", &reference, TEXT]);
        assert_eq!(cli.ok(&["get", &reference, "--property", "value"])["value"], TEXT);
        save(&cli, || desktop.saved_paragraphs(&document).iter().any(|text| text == TEXT));
    }
}
