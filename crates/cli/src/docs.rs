//! Keeps what users read equal to the code: the tables of commands, variables and protected things in
//! `docs/contract.md`, and the texts of `--help`. `BLESS=1 cargo test -p agent-desktop docs` rewrites them.

use std::fmt::Write;

use agent_desktop_engine::Command;
use agent_desktop_engine::commands::Effects;
use agent_desktop_testkit::golden::{blocks, file, table};
use clap::{Arg, CommandFactory};

use crate::{CommandLine, env};

mod examples;
mod guides;
mod pages;

fn code(word: &str) -> String {
    format!("`{word}`")
}

/// `--flag VALUE`, `-f, --flag`, or `VALUE` for what is told by its place.
fn spelling(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let value = argument.get_value_names().filter(|_| takes_value).map(|names| names.join(" "));
    let words: Vec<String> = argument
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(argument.get_long().map(|long| format!("--{long}")))
        .collect();
    match (words.is_empty(), value) {
        (true, Some(value)) => value,
        (false, Some(value)) => format!("{} {value}", words.join(", ")),
        (_, None) => words.join(", "),
    }
}

fn arguments<'a>(list: impl Iterator<Item = &'a Arg>) -> String {
    let row = |argument: &Arg| {
        let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let takes_value = argument.get_action().takes_values();
        let defaults = argument.get_default_values();
        if takes_value && !defaults.is_empty() {
            let _ = write!(text, " [default: {}]", defaults[0].to_string_lossy());
        }
        let values = argument.get_possible_values();
        if takes_value && !values.is_empty() && values.len() < 6 {
            let words: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
            let _ = write!(text, " [{}]", words.join(", "));
        }
        if argument.is_required_set() {
            text.push_str(" (required)");
        }
        vec![code(&spelling(argument)), text]
    };
    table(&["argument", ""], list.map(row))
}

/// The arguments of a command, or that there are none.
fn shown(command: &clap::Command) -> String {
    if command.get_arguments().any(is_shown) {
        arguments(command.get_arguments().filter(|argument| is_shown(argument)))
    } else {
        "No arguments.\n".to_owned()
    }
}

fn is_shown(argument: &Arg) -> bool {
    !argument.is_global_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

fn effects(effects: Effects, has_timeout: bool) -> String {
    let words: Vec<&str> = [
        (effects.mutates, "changes something"),
        (!effects.mutates, "changes nothing"),
        (effects.accessibility, "needs the accessibility permission"),
        (effects.screen, "needs the screen permission"),
        (effects.takes_lease, "takes the lease"),
        (effects.waits, "takes `--wait-for`"),
        (effects.needs_headed, "fails without `--headed`"),
        (!has_timeout, "has no deadline of its own"),
    ]
    .into_iter()
    .filter_map(|(is_so, word)| is_so.then_some(word))
    .collect();
    words.join("; ")
}

#[test]
fn the_tables_of_the_contract_are_those_of_the_code() {
    let line = CommandLine::command();
    let mut generated = vec![
        (
            "global flags".to_owned(),
            arguments(line.get_arguments().filter(|argument| argument.is_global_set())),
        ),
        (
            "variables".to_owned(),
            table(
                &["variable", "meaning"],
                env::ALL.iter().map(|(name, meaning)| vec![code(name), (*meaning).to_owned()]),
            ),
        ),
    ];
    let mut rows = Vec::new();
    let tick = |is_so: bool| (if is_so { "yes" } else { "–" }).to_owned();
    for spec in Command::SPECS {
        let command = line.find_subcommand(spec.name).expect("every command of the table can be typed");
        let permissions = match (spec.effects.accessibility, spec.effects.screen) {
            (true, true) => "accessibility, screen",
            (true, false) => "accessibility",
            (false, true) => "screen",
            (false, false) => "–",
        };
        rows.push(vec![
            code(spec.name),
            tick(spec.effects.mutates),
            permissions.to_owned(),
            tick(spec.effects.takes_lease),
            tick(spec.effects.waits),
            tick(spec.effects.needs_headed),
        ]);
        let mut text = format!(
            "{}.\n\nIt {}.\n\n",
            command.get_about().map(ToString::to_string).unwrap_or_default().trim_end_matches('.'),
            effects(spec.effects, spec.has_timeout)
        );
        if command.has_subcommands() {
            for action in command.get_subcommands() {
                let about = action.get_about().map(ToString::to_string).unwrap_or_default();
                let name = format!("{} {}", spec.name, action.get_name());
                let _ = write!(
                    text,
                    "**{}**: {}.\n\n{}\n",
                    code(&name),
                    about.trim_end_matches('.'),
                    shown(action)
                );
            }
        } else {
            text.push_str(&shown(command));
        }
        generated.push((format!("command {}", spec.name), text));
    }
    generated.push((
        "commands".to_owned(),
        table(&["command", "changes", "permission", "lease", "`--wait-for`", "needs `--headed`"], rows),
    ));
    if cfg!(target_os = "linux") {
        let platform = crate::native::platform();
        let safety = platform.safety();
        let list = |words: &[&str]| words.iter().map(|word| code(word)).collect::<Vec<_>>().join(" ");
        generated.push(("protected chords on Linux".to_owned(), list(safety.blocked_chords)));
        generated.push(("protected processes on Linux".to_owned(), list(safety.protected_processes)));
        let surfaces: Vec<&str> =
            platform.supported_surfaces().iter().map(|surface| surface.as_str()).collect();
        generated.push(("surfaces on Linux".to_owned(), list(&surfaces)));
    }
    blocks(&agent_desktop_testkit::root().join("docs/contract.md"), &generated);
}

/// What a new user reads first, and all of one command: a change of either is seen in a review.
#[test]
fn the_texts_of_help_are_those_that_were_read() {
    let folder = agent_desktop_testkit::root().join("crates/cli/tests/golden");
    let mut line = CommandLine::command().term_width(100);
    line.build();
    file(&folder.join("help.txt"), &line.render_help().to_string());
    let snapshot = line.find_subcommand_mut("snapshot").expect("there is a snapshot command");
    file(&folder.join("help-snapshot.txt"), &snapshot.render_help().to_string());
}

#[test]
fn every_command_and_every_argument_is_explained() {
    let line = CommandLine::command();
    let all =
        line.get_subcommands().flat_map(|command| [command].into_iter().chain(command.get_subcommands()));
    for command in all {
        assert!(command.get_about().is_some(), "{} has no help", command.get_name());
        for argument in command.get_arguments().filter(|argument| is_shown(argument)) {
            assert!(argument.get_help().is_some(), "{} {}", command.get_name(), spelling(argument));
        }
    }
}

/// Numbers that stand in sentences.
#[test]
fn the_sentences_of_the_contract_have_the_numbers_of_the_code() {
    use agent_desktop_core::refs;
    let page = std::fs::read_to_string(agent_desktop_testkit::root().join("docs/contract.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        format!("message cut to {} characters", crate::MAX_MESSAGE),
        format!("up to {} `candidates`", refs::MAX_CANDIDATES),
        format!("one of the {} below", agent_desktop_core::error::ErrorCode::ALL.len()),
        format!("Version of the contract: **{}**", agent_desktop_engine::envelope::VERSION),
        format!("| `version` | `\"{0}\"` | `\"{0}\"` |", agent_desktop_engine::envelope::VERSION),
    ] {
        assert!(page.contains(&sentence), "docs/contract.md does not say: {sentence}");
    }
    let is_allowed = |length: usize| refs::is_snapshot_id(&"a".repeat(length));
    assert!(page.contains("A snapshot id has 3 to 64 letters"));
    assert_eq!([2, 3, 64, 65].map(is_allowed), [false, true, true, false]);
    let is_allowed =
        |length: usize| agent_desktop_engine::store::check_session_id(&"a".repeat(length)).is_ok();
    assert!(page.contains("an id has 1 to 64 letters"));
    assert_eq!([0, 1, 64, 65].map(is_allowed), [false, true, true, false]);
}
