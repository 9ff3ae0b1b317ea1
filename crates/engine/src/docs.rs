//! Keeps the tables of `docs/contract.md` equal to the code. `BLESS=1 cargo test -p agent-desktop-engine docs` rewrites
//! them; the tables of commands, variables and protected things are those of the command line door.

use std::fmt::Write;
use std::time::Duration;

use agent_desktop_core::action::{Action, Capabilities, Capability};
use agent_desktop_core::actionability as checks;
use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::ErrorCode;
use agent_desktop_core::platform::{Limits, SurfaceKind};
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::{query, refs};
use agent_desktop_testkit::golden::{blocks, table};

use crate::act::{self, dispatch, evidence};
use crate::commands::{
    batch, choose_file, close_app, doctor, drag, find, focus_window, launch, menu, mouse_click, mouse_wheel,
    scroll, set_value, snapshot, trace as trace_command, type_text, wait, window_change,
};
use crate::trace::export;
use crate::{
    artifacts, audit, clipboard, context, lease, notifications, observe, picture, pointer, private_files,
    resolve, rules, session, store, trace, wait_for,
};

fn code(word: &str) -> String {
    format!("`{word}`")
}

fn codes(words: impl IntoIterator<Item = &'static str>) -> String {
    words.into_iter().map(code).collect::<Vec<_>>().join(" ")
}

fn yes(is_so: bool) -> String {
    (if is_so { "yes" } else { "–" }).to_owned()
}

fn error_codes() -> String {
    let row = |&error: &ErrorCode| {
        let recovery = error.recovery().map_or_else(
            || "–".to_owned(),
            |recovery| {
                let mut text = code(recovery.strategy);
                if recovery.requires_fresh_snapshot {
                    text.push_str(", fresh snapshot");
                }
                if let Some(ms) = recovery.retry_after_ms {
                    let _ = write!(text, ", after {ms} ms");
                }
                text
            },
        );
        let delivery = code(error.default_delivery().as_str());
        vec![code(error.as_str()), error.meaning().to_owned(), delivery, recovery]
    };
    table(&["code", "meaning", "delivery unless said otherwise", "recovery"], ErrorCode::ALL.iter().map(row))
}

fn deliveries() -> String {
    let meanings = [
        (Delivery::NotDelivered, "Nothing reached the application."),
        (
            Delivery::Uncertain,
            "It may have reached the application: the answer was lost, or the time ended during the call.",
        ),
        (Delivery::Unverified, "It was sent and taken; nobody saw an effect."),
        (Delivery::Verified, "It was sent, and its effect was seen by another way than it was sent."),
        (Delivery::Unknown, "No statement is possible."),
    ];
    let row = |(delivery, meaning): (Delivery, &str)| {
        vec![code(delivery.as_str()), meaning.to_owned(), code(delivery.retry())]
    };
    table(&["`delivery`", "meaning", "`retry`"], meanings.into_iter().map(row))
}

fn roles() -> String {
    codes(Role::ALL.iter().map(|role| role.as_str()))
}

/// Whether a role is in a set.
type Members = fn(Role) -> bool;

fn role_sets() -> String {
    let sets: [(&str, &str, Members); 6] = [
        ("interactive", "A person operates it directly; it always gets a ref.", Role::is_interactive),
        ("toggleable", "`checked` is a question one can ask of it.", Role::is_toggleable),
        ("expandable", "`expanded` is a question one can ask of it.", Role::is_expandable),
        (
            "mutable value",
            "Its value changes in normal use, so the value does not identify it.",
            Role::has_mutable_value,
        ),
        ("editable", "Text can be entered without it offering `SetValue`.", Role::is_editable),
        ("numeric", "Its value is a number.", Role::is_numeric),
    ];
    let row = |(name, meaning, has): (&str, &str, Members)| {
        let members = Role::ALL.iter().filter(|&&role| has(role)).map(|role| role.as_str());
        vec![name.to_owned(), meaning.to_owned(), codes(members)]
    };
    table(&["set", "meaning", "roles"], sets.into_iter().map(row))
}

fn role_aliases() -> String {
    table(
        &["written", "means"],
        Role::ALIASES.iter().map(|(alias, role)| vec![code(alias), code(role.as_str())]),
    )
}

fn states() -> String {
    let row = |state: &State| vec![code(state.as_str()), state.meaning().to_owned()];
    table(&["state", "meaning"], State::ALL.iter().map(row))
}

fn capabilities() -> String {
    let row = |&capability: &Capability| {
        let users = Action::ALL.iter().filter(|action| action.requirements().any_of.contains(&capability));
        let users = codes(users.map(|action| action.as_str()));
        let is_enough = Capabilities::NONE.with(capability).makes_operable();
        vec![code(capability.as_str()), if users.is_empty() { "–".to_owned() } else { users }, yes(is_enough)]
    };
    table(&["capability", "used by", "alone worth a ref"], Capability::ALL.iter().map(row))
}

fn actions() -> String {
    let head = [
        "action",
        "needs one of",
        "visible",
        "stable",
        "enabled",
        "editable",
        "receives events",
        "scrolled into view",
        "may open a surface",
        "only with `--headed`",
    ];
    let row = |&action: &Action| {
        let needs = action.requirements();
        let any = codes(needs.any_of.iter().map(|capability| capability.as_str()));
        let mut cells = vec![code(action.as_str()), if any.is_empty() { "–".to_owned() } else { any }];
        cells.extend(
            [
                needs.visible,
                needs.stable,
                needs.enabled,
                needs.editable,
                needs.receives_events,
                needs.scrolls_into_view,
                needs.may_open_surface,
                action.is_physical_only() || action == Action::PressKey,
            ]
            .map(yes),
        );
        cells
    };
    table(&head, Action::ALL.iter().map(row))
}

fn surfaces() -> String {
    let row = |kind: &SurfaceKind| vec![code(kind.as_str()), code(kind.as_json())];
    table(&["`--surface`", "in JSON"], SurfaceKind::ALL.iter().map(row))
}

fn ms(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

fn limits() -> [(&'static str, Vec<(&'static str, String)>); 6] {
    let observation = Limits::default();
    let millis = |number: u64| format!("{number} ms");
    [
        (
            "deadlines",
            vec![
                ("`snapshot`", millis(context::SNAPSHOT_MS)),
                ("`batch`", millis(batch::BATCH_MS)),
                ("`menu`", millis(menu::WALK_MS)),
                ("`choose-file`", millis(choose_file::CHOOSE_MS)),
                ("every other command, except the two below", millis(context::OPERATION_MS)),
                ("`launch` (`--timeout`)", millis(launch::LAUNCH_MS)),
                ("`wait` (`--timeout`)", millis(wait::WAIT_MS)),
                ("`--wait-timeout`", millis(wait_for::WAIT_MS)),
                ("longest that can be asked for", millis(context::MAX_TIMEOUT_MS)),
            ],
        ),
        (
            "waiting",
            vec![
                ("between two looks at an element that cannot be acted on yet", ms(act::POLL)),
                ("the same when it only moves", ms(act::POLL_STABILITY)),
                ("between two samples of the bounds of a moving element", ms(checks::SAMPLE_INTERVAL)),
                ("equal samples in a row that make it stable", checks::SAMPLES_NEEDED.to_string()),
                ("time that they span at least", ms(checks::SPAN_NEEDED)),
                ("how much equal samples may differ", format!("{} pixels", checks::TOLERANCE)),
                (
                    "one attempt to find the element of a ref (or a quarter of the deadline, if that is longer)",
                    ms(resolve::ATTEMPT),
                ),
                ("between two attempts that could not read enough", ms(resolve::RETRY)),
                ("focus of a window, under `--headed`", ms(act::FOCUS_LIMIT)),
                ("between its two confirmations", ms(act::FOCUS_CONFIRM)),
                ("`focus-window`: focus of the window", ms(focus_window::LIMIT)),
                ("`focus-window`: between two looks", ms(focus_window::POLL)),
                ("place, size or state of a window after it was changed", ms(window_change::LIMIT)),
                ("between two looks at it", ms(window_change::POLL)),
                ("effect of an action on state, value or text", ms(evidence::STATE_LIMIT)),
                ("effect of a click", ms(evidence::CLICK_LIMIT)),
                ("context menu of `right-click`", ms(dispatch::MENU_LIMIT)),
                ("how much equal numbers may differ", format!("{}", dispatch::NUMBER_TOLERANCE)),
                ("`wait --element`: between two looks", ms(wait::ELEMENT_POLL)),
                ("`wait --element`: one attempt to find it", ms(wait::RESOLVE)),
                ("`wait --window`: between two looks", ms(wait::WINDOW_POLL)),
                ("`wait --menu`, `--menu-closed`: between two looks", ms(wait::MENU_POLL)),
                (
                    "`wait --text`: between two looks, doubling up to",
                    format!("{} to {}", ms(wait::TEXT_POLL), ms(wait::MAX_TEXT_POLL)),
                ),
                ("`session start`: for its listener to notifications", ms(notifications::START)),
                (
                    "that listener: between two looks whether the session has ended",
                    ms(notifications::SESSION_POLL),
                ),
                ("the journal of notifications after one was dismissed", ms(notifications::CATCH_UP)),
                ("between two looks at that journal", ms(notifications::CATCH_UP_POLL)),
                (
                    "`doctor`: how long another process holds the lease before it is told",
                    ms(doctor::LEASE_PATIENCE),
                ),
                ("`--wait-for`, `--wait-for-gone`: between two looks", ms(wait_for::POLL)),
                ("the snapshot that shows why such a wait was in vain", ms(wait_for::DIAGNOSTIC)),
                (
                    "`find`: between two searches while answers are missing, doubling up to",
                    format!("{} to {}", ms(find::RETRY), ms(find::MAX_RETRY)),
                ),
                (
                    "content that is published only to readers: between two looks, doubling up to",
                    format!("{} to {}", ms(observe::ACTIVATION_PAUSE), ms(observe::MAX_ACTIVATION_PAUSE)),
                ),
                ("tree of a window that is on the screen already", ms(observe::TREE_PATIENCE)),
                (
                    "`launch`: between two looks for a window, growing up to",
                    format!("{} to {}", ms(launch::POLL), ms(launch::MAX_POLL)),
                ),
                ("`launch`: window after the started process has ended", ms(launch::HANDOVER)),
                ("`launch`: until a window of an unknown new process counts", ms(launch::SETTLED)),
                ("`close-app`: between two looks", ms(close_app::POLL)),
                ("`close-app`: for listing what is open when it did not end", ms(close_app::EXPLAIN)),
                ("lease: between two attempts at the file", ms(lease::FILE_POLL)),
                ("lease: between two attempts inside a process", ms(lease::PROCESS_POLL)),
                ("a picture before or after an action", ms(artifacts::CAPTURE)),
                ("what the picture before leaves to the action", ms(artifacts::DISPATCH)),
                ("lock of the store", ms(store::LOCK_TIMEOUT)),
                ("lock of the trace file", ms(trace::LOCK_TIMEOUT)),
            ],
        ),
        (
            "observation",
            vec![
                ("levels shown, unless `--max-depth` says otherwise", snapshot::DEPTH.to_string()),
                ("`--max-depth` at most", snapshot::MAX_DEPTH.to_string()),
                ("levels of `--skeleton`", snapshot::SKELETON_DEPTH.to_string()),
                (
                    "levels that `find`, `wait --text` and `--wait-for` look through",
                    wait_for::MATCH_DEPTH.to_string(),
                ),
                ("levels as the application counts them", observation.max_raw_depth.to_string()),
                ("nodes", observation.nodes.to_string()),
                ("children of one node", observation.children.to_string()),
                ("bytes of one text", observation.text_bytes.to_string()),
                ("bytes of all texts", observation.total_text_bytes.to_string()),
            ],
        ),
        (
            "refs and queries",
            vec![
                ("bytes of one text of a stored entry", refs::MAX_TEXT.to_string()),
                ("length of a stored path", refs::MAX_PATH.to_string()),
                ("bytes of a stored map", refs::MAX_MAP_BYTES.to_string()),
                ("candidates that an ambiguity lists", refs::MAX_CANDIDATES.to_string()),
                ("clauses of a query", query::MAX_CLAUSES.to_string()),
                ("bytes of one text of a query", query::MAX_FIELD.to_string()),
                ("bytes of all texts of a query", query::MAX_TOTAL.to_string()),
                ("matches that `find` lists, unless `--limit` says otherwise", find::LIMIT.to_string()),
            ],
        ),
        (
            "arguments",
            vec![
                ("characters of `type`, and of the item of `select`", type_text::MAX_CHARACTERS.to_string()),
                ("characters of `set-value`", set_value::MAX_CHARACTERS.to_string()),
                (
                    "characters of a value that the reply of an action repeats",
                    evidence::MOST_VALUE.to_string(),
                ),
                ("bytes of the path of `choose-file`", choose_file::MAX_PATH.to_string()),
                ("steps of `scroll`", scroll::MAX_AMOUNT.to_string()),
                ("clicks of `mouse-click`", mouse_click::MAX_COUNT.to_string()),
                ("lines of `mouse-wheel`, each axis", mouse_wheel::MAX_LINES.to_string()),
                ("coordinates, either way", pointer::MAX_COORDINATE.to_string()),
                ("`drag`: the move, by default", millis(drag::DURATION_MS)),
                ("`drag`: the move, at most", millis(drag::MAX_DURATION_MS)),
                ("`drag`: the stay over the target, by default", millis(drag::DROP_DELAY_MS)),
                ("`drag`: the stay over the target, at most", millis(drag::MAX_DROP_DELAY_MS)),
                ("`drag`: picking up", millis(drag::PICKUP_MS)),
                ("UTF-16 units of a text in the clipboard", clipboard::MAX_TEXT.to_string()),
                ("files in the clipboard", clipboard::MAX_FILES.to_string()),
                ("bytes of the address of such a file", clipboard::MAX_ADDRESS.to_string()),
                ("entries of `batch`", batch::MAX_ENTRIES.to_string()),
                ("bytes of its input", batch::MAX_INPUT.to_string()),
                (
                    "bytes of its output, of which some are kept for what it says itself",
                    format!("{}, {}", batch::MAX_OUTPUT, batch::RESERVE),
                ),
                ("`launch`: arguments, and variables", launch::MAX_ITEMS.to_string()),
                ("`launch`: bytes of all of them", launch::MAX_BYTES.to_string()),
            ],
        ),
        (
            "files",
            vec![
                ("snapshots of a namespace before old ones are removed", store::MOST.to_string()),
                ("snapshots that stay then", store::KEPT.to_string()),
                ("age of a temporary file that is removed", ms(store::ORPHAN)),
                (
                    "files and directories whose modes `doctor` looks at",
                    private_files::MOST_AUDITED.to_string(),
                ),
                ("bytes of the pointer to the latest snapshot", store::MAX_LATEST.to_string()),
                ("bytes of the manifest of a session", session::MAX_MANIFEST.to_string()),
                ("bytes of the name of a session", session::MAX_NAME.to_string()),
                ("what happened more recently keeps a session", ms(session::RECENT)),
                ("notifications in the journal of a session", notifications::KEPT.to_string()),
                ("bytes of that journal", notifications::MAX_JOURNAL.to_string()),
                ("bytes of a policy file", rules::MAX_FILE.to_string()),
                ("targets that a line of the audit log names", audit::MAX_TARGETS.to_string()),
                ("bytes of a trace file", trace::MAX_FILE.to_string()),
                ("bytes of a line of a trace", trace::MAX_EVENT.to_string()),
                ("pictures of a session", artifacts::MAX_PICTURES.to_string()),
                ("bytes of all of them", artifacts::MAX_PICTURE_BYTES.to_string()),
                ("bytes of all copies of refs of a session", artifacts::MAX_MAP_BYTES.to_string()),
                ("bytes of a line, to be read", trace::read::MAX_LINE.to_string()),
                ("bytes of all segments that are read, the newest first", trace::read::MAX_TOTAL.to_string()),
                ("segments and warnings that are listed", trace::read::MAX_LISTED.to_string()),
                ("events of `trace show`, unless `--limit` says otherwise", trace_command::SHOWN.to_string()),
                (
                    "events of `trace export`, unless `--limit` says otherwise",
                    trace_command::EXPORTED.to_string(),
                ),
                (
                    "bytes of an exported page: data, pictures among them, the rest",
                    format!("{}, {}, {}", export::MAX_DATA, export::MAX_PICTURES, export::MAX_PAGE),
                ),
                ("pixels of a picture", picture::MAX_PIXELS.to_string()),
                ("bytes of a PNG", picture::MAX_PNG.to_string()),
            ],
        ),
    ]
}

#[test]
fn the_tables_of_the_contract_are_those_of_the_code() {
    let mut generated = vec![
        ("codes", error_codes()),
        ("deliveries", deliveries()),
        ("roles", roles()),
        ("role sets", role_sets()),
        ("role aliases", role_aliases()),
        ("states", states()),
        ("capabilities", capabilities()),
        ("actions", actions()),
        ("surfaces", surfaces()),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text))
    .collect::<Vec<_>>();
    for (name, rows) in limits() {
        let rows = rows.into_iter().map(|(what, value)| vec![what.to_owned(), value]);
        generated.push((format!("limits: {name}"), table(&["what", "limit"], rows)));
    }
    blocks(&agent_desktop_testkit::root().join("docs/contract.md"), &generated);
}
