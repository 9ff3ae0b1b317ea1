//! `text` in every toolkit. The judge is another reader, or the page's own script.

use std::time::Duration;

use agent_desktop_testkit::cli::{find_nodes, nodes};
use agent_desktop_testkit::{App, Cli, Desktop, desktop_test, look, wait_until};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(5);
/// Characters of one, two, three and four bytes, and a last line without an end.
const TEXT: &str = "aé 🙂 one, П 你 two\nthe two end";

/// What another reader finds in the text of that name.
fn seen(app: &App, name: &str) -> String {
    let found = look::find(app.name(), None, Some(name));
    found.into_iter().find_map(|object| object.text).unwrap_or_default()
}

fn get(cli: &Cli, reference: &str, more: &[&str]) -> Value {
    cli.ok(&[&["text", "get", reference][..], more].concat())
}

/// Everything that can be done with parts of a text, in a field that takes text through its interface.
fn work_on(cli: &Cli, app: &App, field: &str, name: &str) {
    cli.ok(&["set-value", field, TEXT]);
    let length = TEXT.chars().count();
    let whole = get(cli, field, &[]);
    assert_eq!((&whole["text"], &whole["length"]), (&TEXT.into(), &length.into()), "{whole:#}");
    let part = get(cli, field, &["--start", "1", "--end", "4"]);
    assert_eq!(part["text"], "é 🙂", "{part:#}");

    // Twice there: a question, not a guess.
    let error = cli.fails(&["text", "select", field, "--pattern", "two"]);
    assert_eq!(
        (&error["code"], &error["details"]["candidate_count"]),
        (&"AMBIGUOUS_TARGET".into(), &2.into()),
        "{error:#}"
    );
    assert_eq!(error["disposition"]["delivery"], "not_delivered");
    let done = cli.ok(&["text", "select", field, "--pattern", "two", "--nth", "1"]);
    assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{done:#}");
    let start = TEXT.rfind("two").map(|at| TEXT[..at].chars().count()).expect("it is there");
    let selected = &get(cli, field, &[])["selections"];
    assert_eq!(selected[0]["text"], "two", "{selected}");
    assert_eq!(
        (&selected[0]["start"], &selected[0]["end"]),
        (&start.into(), &(start + 3).into()),
        "{selected}"
    );

    let done = cli.ok(&["text", "caret", field, "--after", "П 你"]);
    assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{done:#}");
    let word = get(cli, field, &["--unit", "word"]);
    assert_eq!(word["text"], "你", "{word:#}");
    let line = get(cli, field, &["--unit", "paragraph", "--at", &(start + 1).to_string()]);
    assert_eq!(line["text"], "the two end", "{line:#}");
    let line = get(cli, field, &["--unit", "line", "--at", "0"]);
    assert!(line["text"].as_str().expect("a line").starts_with("aé 🙂"), "{line:#}");

    let done = cli.ok(&["text", "replace", field, "2🙂2", "--pattern", "one"]);
    assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{done:#}");
    let expected = TEXT.replace("one", "2🙂2");
    assert_eq!(seen(app, name), expected);
    // An insertion and a deletion.
    cli.ok(&["text", "replace", field, "ß", "--start", "0", "--end", "0"]);
    cli.ok(&["text", "replace", field, "", "--pattern", " end"]);
    assert_eq!(seen(app, name), format!("ß{}", expected.trim_end_matches(" end")));

    for args in [
        &["text", "select", field, "--pattern", "nowhere"][..],
        &["text", "replace", field, "x", "--start", "999"],
        &["text", "caret", field, "--offset", "999"],
    ] {
        let error = cli.fails(args);
        assert_eq!(error["disposition"]["delivery"], "not_delivered", "{args:?} {error:#}");
    }
    assert_eq!(seen(app, name), format!("ß{}", expected.trim_end_matches(" end")), "a refusal changed it");
}

/// The field of that name in a snapshot.
fn field(cli: &Cli, app: &App, name: &str) -> String {
    let tree = cli.ok(&["snapshot", "--app", app.name(), "--max-depth", "30"])["tree"].clone();
    let found = find_nodes(&tree, "textfield", name);
    let found = found.first().and_then(|node| node["ref_id"].as_str()).map(str::to_owned);
    found.unwrap_or_else(|| {
        panic!("no {name:?} among {:?}", nodes(&tree).iter().map(|node| &node["name"]).collect::<Vec<_>>())
    })
}

desktop_test! {
    fn parts_of_texts_are_worked_on_in_gtk3(desktop: &Desktop) {
        let app = desktop.gtk3("texts");
        let cli = desktop.cli();
        work_on(&cli, &app, &field(&cli, &app, "Notes"), "Notes");
    }

    fn parts_of_texts_are_worked_on_in_gtk4(desktop: &Desktop) {
        let app = desktop.gtk4("texts");
        let cli = desktop.cli();
        work_on(&cli, &app, &field(&cli, &app, "Notes"), "Notes");
    }

    fn parts_of_texts_are_worked_on_in_qt6(desktop: &Desktop) {
        let app = desktop.qt6("texts");
        let cli = desktop.cli();
        work_on(&cli, &app, &field(&cli, &app, "Notes"), "Notes");
    }

    fn the_text_of_a_password_is_never_shown(desktop: &Desktop) {
        for app in [desktop.gtk3("texts"), desktop.gtk4("texts"), desktop.qt6("texts")] {
            let cli = desktop.cli();
            let tree = cli.ok(&["snapshot", "--app", app.name()])["tree"].clone();
            let secret = nodes(&tree)
                .into_iter()
                .find(|node| node["states"].to_string().contains("secure"))
                .and_then(|node| node["ref_id"].as_str())
                .unwrap_or_else(|| panic!("{} has a password field", app.name()));
            cli.ok(&["set-value", secret, "hunter2"]);
            let reply = cli.run(&["text", "get", secret]);
            assert!(!reply.envelope().to_string().contains("hunter"), "{}", reply.envelope());
            let error = cli.fails(&["text", "select", secret, "--pattern", "hunter"]);
            assert_eq!(error["code"], "ACTION_NOT_SUPPORTED", "{error:#}");
        }
    }

    fn parts_of_texts_are_replaced_in_chromium(desktop: &Desktop) {
        let page = desktop.file("form.html", include_str!("../../testkit/fixtures/form.html"));
        in_a_page(desktop, &desktop.chromium(&page));
    }

    fn parts_of_texts_are_replaced_in_firefox(desktop: &Desktop) {
        let page = desktop.file("form.html", include_str!("../../testkit/fixtures/form.html"));
        in_a_page(desktop, &desktop.firefox(&page));
    }

    fn a_paragraph_is_worked_on_in_writer(desktop: &Desktop) {
        let app = desktop.writer(&desktop.file("note.txt", "aé 🙂 one\nlast one\n"));
        let cli = desktop.cli();
        let found = cli.ok(&["find", "--app", app.name(), "--text", "aé 🙂 one", "--role", "paragraph", "--first"]);
        let paragraph = found["match"]["ref_id"].as_str().unwrap_or_else(|| panic!("{found:#}")).to_owned();
        assert_eq!(get(&cli, &paragraph, &["--start", "3", "--end", "8"])["text"], "🙂 one");
        let done = cli.ok(&["text", "replace", &paragraph, "П🙂", "--pattern", "🙂 o"]);
        assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{done:#}");
        assert_eq!(get(&cli, &paragraph, &[])["text"], "aé П🙂ne");
        let texts: Vec<_> = look::find(app.name(), None, None).into_iter().filter_map(|object| object.text).collect();
        assert!(texts.iter().any(|text| text == "aé П🙂ne"), "{texts:?}");
        cli.ok(&["text", "caret", &paragraph, "--after", "П"]);
        assert_eq!(get(&cli, &paragraph, &[])["caret"], 4);
    }
}

/// A page takes text from the keyboard only, and its script sees every change.
fn in_a_page(desktop: &Desktop, app: &App) {
    let cli = desktop.cli();
    let remarks = field(&cli, app, "Remarks");
    cli.ok(&["type", &remarks, "one 🙂 two", "--headed"]);
    assert_eq!(get(&cli, &remarks, &[])["text"], "one 🙂 two");
    let done = cli.ok(&["text", "replace", &remarks, "2🙂", "--pattern", "two", "--headed"]);
    assert_eq!(done["disposition"]["delivery"], "delivered_verified", "{done:#}");
    assert_eq!(get(&cli, &remarks, &[])["text"], "one 🙂 2🙂");
    wait_until("the page to have seen it", SOON, || {
        desktop.windows().iter().any(|window| window.title.contains("remarks=one 🙂 2🙂"))
    });
    // Headless nothing is claimed.
    let error = cli.fails(&["text", "replace", &remarks, "x", "--pattern", "one"]);
    assert_ne!(error["disposition"]["delivery"], "delivered_verified", "{error:#}");
    assert_eq!(get(&cli, &remarks, &[])["text"], "one 🙂 2🙂");
}
