//! Replies that once said something that was not so. Each test is named after the fault.
//!
//! The judge is the application's own side: its log, its window's title, its file, the X server, another reader.

use std::time::Duration;

use agent_desktop_testkit::cli::{find_nodes, nodes, outline};
use agent_desktop_testkit::{App, Cli, Desktop, desktop_test, look, wait_until};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(5);

fn delivery(data: &Value) -> &str {
    data["disposition"]["delivery"].as_str().unwrap_or_default()
}

#[track_caller]
fn ref_of(node: &Value) -> String {
    node["ref_id"].as_str().unwrap_or_else(|| panic!("no ref: {node:#}")).to_owned()
}

fn tree(cli: &Cli, app: &App, more: &[&str]) -> Value {
    cli.ok(&[&["snapshot", "--app", app.name()], more].concat())["tree"].clone()
}

/// Scrolling.
mod scrolling {
    use super::*;

    desktop_test! {
        /// "verified", and the bar stood at 0 before and after.
        fn scroll_of_a_calc_sheet_is_verified_only_when_it_moved(desktop: &Desktop) {
            let app = desktop.calc(&desktop.sheet("empty", &[]));
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &["--max-depth", "50"]);
            let bars = find_nodes(&shown, "scrollbar", "Vertical scroll bar");
            let bar = bars.first().unwrap_or_else(|| panic!("no bar in:\n{}", outline(&shown)));
            let first = || {
                let shown = tree(&cli, &app, &["--max-depth", "50"]);
                let cell = nodes(&shown).into_iter().find(|node| node["role"] == "cell").expect("a cell").clone();
                cell["name"].as_str().unwrap_or_default().to_owned()
            };
            assert_eq!(first(), "A1");
            let reply = cli.run(&["scroll", &ref_of(bar), "--direction", "down"]);
            let has_moved = first() != "A1";
            let said = &reply.envelope()["data"]["disposition"]["delivery"];
            assert_eq!(has_moved, said == "delivered_verified", "{reply}");
            if !has_moved {
                assert_eq!(reply.err()["details"]["kind"], "scroll_without_effect", "{reply}");
            }
            // What cannot be moved by a bar needs the wheel, and the reply says so.
            let table = nodes(&shown).into_iter().find(|node| node["role"] == "table").expect("a table");
            let error = cli.fails(&["scroll", &ref_of(table)]);
            assert!(error["suggestion"].to_string().contains("--headed"), "{error:#}");
            cli.ok(&["scroll", &ref_of(table), "--headed"]);
            wait_until("the sheet to move", SOON, || first() != "A1");
        }

        /// The help says "or what contains it"; only scroll areas and bars were taken.
        fn scroll_moves_what_contains_the_element(desktop: &Desktop) {
            let app = desktop.gtk3("scroll");
            let cli = desktop.cli();
            let shown = tree(&cli, &app, &[]);
            let inner = nodes(&shown).into_iter().find(|node| {
                node["role"] == "button" && node["name"].as_str().is_some_and(|name| name.starts_with("Row")) && node["ref_id"].is_string()
            });
            let inner = inner.unwrap_or_else(|| panic!("nothing inside:\n{}", outline(&shown)));
            let done = cli.ok(&["scroll", &ref_of(inner)]);
            assert_eq!(delivery(&done), "delivered_verified", "{done:#}");
            assert!(app.log().contains("scrolled "), "{}", app.log());
        }
    }
}
