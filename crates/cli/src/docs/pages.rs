//! The pages of `docs/commands`, one a command, and what else is made from the same facts: the index, the table of the
//! README, and the references of the skill.
//!
//! The sentences about replies and errors are those of `docs/contract.md`, so that each is written once.

use std::fmt::Write;
use std::path::PathBuf;

use agent_desktop_core::error::ErrorCode;
use agent_desktop_engine::Command;
use agent_desktop_engine::commands::Spec;
use agent_desktop_testkit::golden::{blocks, file, table};
use clap::CommandFactory;

use super::examples::{Answer, EXAMPLES, Example, PAGES, line as typed};
use super::{code, effects, is_shown, shown, spelling};
use crate::CommandLine;

/// Every command by what one wants to do.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "look",
        &[
            "snapshot",
            "find",
            "get",
            "is",
            "wait",
            "list-apps",
            "list-windows",
            "list-surfaces",
            "list-displays",
            "screenshot",
        ],
    ),
    (
        "act on an element",
        &[
            "click",
            "right-click",
            "type",
            "set-value",
            "clear",
            "focus",
            "select",
            "toggle",
            "check",
            "uncheck",
            "expand",
            "collapse",
            "scroll",
            "scroll-to",
            "text",
            "menu",
            "choose-file",
        ],
    ),
    (
        "act with mouse and keys (`--headed`)",
        &[
            "press",
            "double-click",
            "triple-click",
            "hover",
            "drag",
            "mouse-move",
            "mouse-click",
            "mouse-wheel",
            "key-down",
            "key-up",
            "mouse-down",
            "mouse-up",
        ],
    ),
    (
        "applications and windows",
        &[
            "launch",
            "close-app",
            "focus-window",
            "resize-window",
            "move-window",
            "minimize",
            "maximize",
            "restore",
        ],
    ),
    ("the clipboard", &["clipboard-get", "clipboard-set", "clipboard-clear"]),
    (
        "notifications",
        &["list-notifications", "dismiss-notification", "dismiss-all-notifications", "notification-action"],
    ),
    ("several at once", &["batch"]),
    ("a run of an agent", &["session", "trace"]),
    ("itself", &["status", "doctor", "permissions", "skills", "version"]),
];

/// Which groups a reference of the skill holds.
const REFERENCES: &[(&str, &str, &[&str])] = &[
    ("commands-observation", "Commands that look", &["look"]),
    (
        "commands-interaction",
        "Commands that act",
        &["act on an element", "act with mouse and keys (`--headed`)", "applications and windows"],
    ),
    (
        "commands-system",
        "The clipboard, notifications, several commands at once, sessions, the program itself",
        &["the clipboard", "notifications", "several at once", "a run of an agent", "itself"],
    ),
];

/// Names that the parser knows and that are reserved: left out where space is short.
const RESERVED: &[&str] = &["key-down", "key-up", "mouse-down", "mouse-up"];

fn of_group(group: &str) -> &'static [&'static str] {
    let found = GROUPS.iter().find(|(name, _)| *name == group);
    found.unwrap_or_else(|| panic!("there is no group {group}")).1
}

fn contract() -> String {
    std::fs::read_to_string(agent_desktop_testkit::root().join("docs/contract.md")).unwrap()
}

/// What the contract says of a command by hand: what stands in its section beside the generated block.
fn section<'a>(contract: &'a str, command: &str) -> &'a str {
    let heading = format!("\n### `{command}`\n");
    let (_, rest) =
        contract.split_once(&heading).unwrap_or_else(|| panic!("no section {command} in the contract"));
    let length = rest.find("\n### ").or_else(|| rest.find("\n## ")).unwrap_or(rest.len());
    let (_, text) = rest[..length].split_once("<!-- end -->").expect("a section has a generated block");
    text.trim()
}

fn find(line: &clap::Command, name: &str) -> clap::Command {
    line.find_subcommand(name).unwrap_or_else(|| panic!("{name} cannot be typed")).clone()
}

fn about(command: &clap::Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default().trim_end_matches('.').to_owned()
}

fn has(command: &clap::Command, names: &[&str]) -> bool {
    let own = |command: &clap::Command| {
        command.get_arguments().any(|argument| names.contains(&spelling(argument).as_str()))
    };
    own(command) || command.get_subcommands().any(own)
}

/// The codes that a command may answer: those of every command, those of its kind, those that its section names.
fn codes(spec: Spec, command: &clap::Command, text: &str) -> Vec<ErrorCode> {
    let is_ref_action = text.contains("[ref action](#acting)");
    let takes_ref = has(command, &["REF", "--ref REF", "--root REF", "--element REF", "--from REF"]);
    let takes_app = has(command, &["--app NAME", "--window-id ID", "APP"]);
    let is_so = |error: ErrorCode| match error {
        ErrorCode::InvalidArgs | ErrorCode::Internal => true,
        ErrorCode::Timeout | ErrorCode::AppUnresponsive | ErrorCode::PlatformNotSupported => {
            spec.effects.accessibility || spec.effects.screen || spec.has_timeout || spec.effects.takes_lease
        }
        ErrorCode::PermDenied => spec.effects.accessibility || spec.effects.screen,
        ErrorCode::SnapshotNotFound | ErrorCode::StaleRef => takes_ref,
        ErrorCode::AmbiguousTarget => takes_ref || takes_app,
        ErrorCode::AppNotFound | ErrorCode::WindowNotFound => takes_app,
        ErrorCode::PolicyDenied => spec.effects.needs_headed || is_ref_action,
        ErrorCode::ActionFailed | ErrorCode::ActionNotSupported => is_ref_action,
        _ => false,
    };
    let is_named = |error: ErrorCode| text.contains(&code(error.as_str()));
    ErrorCode::ALL.iter().copied().filter(|&error| is_so(error) || is_named(error)).collect()
}

/// An example as it is read: what it needs, what is typed, what comes back, what was seen.
fn example_text(example: &Example) -> String {
    let mut text = format!("{}.", example.shows.trim_end_matches('.'));
    for (word, role, name) in example.elements {
        let what = match *word {
            "SESSION" => format!("the id of a session “{name}”"),
            "INDEX" => {
                format!("the index of the notification “{name}” of “{role}” in the session that is selected")
            }
            "XY" => format!("the middle of the {role} “{name}”"),
            "X" | "Y" => format!("the {word} of the middle of the {role} “{name}”"),
            _ => format!("the ref of the {role} “{name}”"),
        };
        let _ = write!(text, " {} is {what}.", code(word));
    }
    let _ = write!(text, "\n\n```console\n");
    for line in example.before {
        let _ = writeln!(text, "$ {}", typed(line));
    }
    let (part, answer) = match example.answer {
        Answer::Data(answer) => ("data", answer),
        Answer::Error(answer) => ("error", answer),
    };
    let _ = write!(text, "$ {}\n```\n\nIts `{part}` holds `{answer}`", typed(example.args));
    match example.proof.sentence() {
        Some(sentence) => drop(writeln!(text, "; {sentence}.")),
        None => text.push_str(".\n"),
    }
    text
}

fn page(spec: Spec, line: &clap::Command, contract: &str) -> String {
    let mut command = find(line, spec.name);
    let text = section(contract, spec.name);
    let mut page = format!("# `{}`\n\n{}.\n\n```\n", spec.name, about(&command));
    let usage = |command: &mut clap::Command| {
        let usage = command.render_usage().to_string();
        usage.trim_start_matches("Usage: ").replace(['<', '>'], "").trim().to_owned()
    };
    if command.has_subcommands() {
        for action in command.get_subcommands_mut() {
            let _ = writeln!(page, "{}", usage(action));
        }
    } else {
        let _ = writeln!(page, "{}", usage(&mut command));
    }
    let _ = write!(page, "```\n\nIt {}.\n\n", effects(spec.effects, spec.has_timeout));
    page.push_str("## Arguments\n\n");
    if command.has_subcommands() {
        for action in command.get_subcommands() {
            let name = code(&format!("{} {}", spec.name, action.get_name()));
            let _ = write!(page, "**{name}**: {}.\n\n{}\n", about(action), shown(action));
        }
    } else {
        let _ = writeln!(page, "{}", shown(&command));
    }
    page.push_str("[Flags of every command](../contract.md#commands).\n\n");
    let text = text.replace("](#", "](../contract.md#").replace("](adr/", "](../adr/");
    if !text.is_empty() {
        let _ = write!(page, "## Replies\n\n{text}\n\n");
    }
    let rows = codes(spec, &command, section(contract, spec.name));
    let rows = rows.iter().map(|error| vec![code(error.as_str()), error.meaning().to_owned()]);
    let _ = write!(page, "## Error codes\n\n{}\n", table(&["code", "meaning"], rows));
    page.push_str("What to do about each, and their kinds: [errors](../contract.md#errors).\n\n");
    page.push_str("## Example\n\n");
    let own = EXAMPLES.iter().filter(|example| example.command == spec.name);
    let examples: Vec<String> = own.map(example_text).collect();
    page.push_str(&examples.join("\n"));
    let _ = write!(page, "\n[All commands](README.md)\n");
    page
}

#[test]
fn there_is_a_page_for_every_command() {
    let folder = agent_desktop_testkit::root().join("docs/commands");
    let mut line = CommandLine::command();
    line.build();
    let contract = contract();
    for &spec in Command::SPECS {
        file(&folder.join(format!("{}.md", spec.name)), &page(spec, &line, &contract));
    }
    let mut index = "# Commands\n\nOne page each, made from the command table, the help and the contract. Their examples are run by the tests \
         against a GTK 3 application, `fixture-gtk3`, on a private desktop: what stands here is what was typed. In an \
         answer, `…` stands for anything.\n\n"
        .to_owned();
    for (group, names) in GROUPS {
        let _ = write!(index, "## To {}\n\n", heading(group));
        let rows = names.iter().map(|name| vec![format!("[`{name}`]({name}.md)"), about(&find(&line, name))]);
        let _ = writeln!(index, "{}", table(&["command", ""], rows));
    }
    file(&folder.join("README.md"), &format!("{}\n", index.trim_end()));
    let mut expected: Vec<PathBuf> =
        Command::SPECS.iter().map(|spec| folder.join(format!("{}.md", spec.name))).collect();
    expected.push(folder.join("README.md"));
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(expected.contains(&path), "{} is the page of no command", path.display());
    }
}

/// A group as the end of a heading that begins with "To".
fn heading(group: &str) -> String {
    match group {
        "applications and windows" => "handle applications and windows".to_owned(),
        "the clipboard" => "use the clipboard".to_owned(),
        "notifications" => "handle notifications".to_owned(),
        "several at once" => "run several at once".to_owned(),
        "a run of an agent" => "record a run of an agent".to_owned(),
        "itself" => "ask the program about itself".to_owned(),
        other => other.to_owned(),
    }
}

#[test]
fn every_command_is_in_one_group_and_has_an_example() {
    for spec in Command::SPECS {
        let groups = GROUPS.iter().filter(|(_, names)| names.contains(&spec.name)).count();
        assert_eq!(groups, 1, "{} must be in one group of crates/cli/src/docs/pages.rs", spec.name);
        let in_references = REFERENCES
            .iter()
            .filter(|(_, _, groups)| groups.iter().any(|group| of_group(group).contains(&spec.name)));
        assert_eq!(in_references.count(), 1, "{} must be in one reference of the skill", spec.name);
        let has_example = EXAMPLES.iter().any(|example| example.command == spec.name);
        assert!(has_example, "{} needs an example in crates/cli/src/docs/examples.rs", spec.name);
    }
    for example in EXAMPLES {
        assert!(PAGES.contains(&example.page), "no test runs the examples of page {}", example.page);
        assert!(example.args.contains(&example.command), "{:?}", example.args);
    }
}

#[test]
fn the_table_of_the_readme_has_the_commands_of_the_code() {
    let row = |&(group, names): &(&str, &[&str])| {
        let names = names.iter().filter(|name| !RESERVED.contains(name));
        let names = names.map(|name| format!("[`{name}`](docs/commands/{name}.md)"));
        vec![group.to_owned(), names.collect::<Vec<_>>().join(" ")]
    };
    let text = table(&["to", "commands"], GROUPS.iter().map(row));
    blocks(&agent_desktop_testkit::root().join("README.md"), &[("command groups".to_owned(), text)]);
}

#[test]
fn the_references_of_the_skill_have_the_commands_of_the_code() {
    let folder = agent_desktop_testkit::root().join("crates/engine/skills/agent-desktop/references");
    let line = CommandLine::command();
    for (name, title, groups) in REFERENCES {
        let mut text = format!(
            "# {title}\n\nEvery command also takes `--session`, `--headed`, `--format outline` and `--trace`; \
             `agent-desktop COMMAND --help` shows all.\n"
        );
        let names = groups.iter().flat_map(|group| of_group(group)).filter(|name| !RESERVED.contains(name));
        for name in names {
            let command = find(&line, name);
            let _ = write!(text, "\n## `{name}`\n\n{}.\n", about(&command));
            let mut list = |title: &str, command: &clap::Command| {
                let _ = write!(text, "\n{title}");
                if !title.is_empty() && command.get_arguments().any(is_shown) {
                    text.push('\n');
                }
                for argument in command.get_arguments().filter(|argument| is_shown(argument)) {
                    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                    let _ = writeln!(text, "- {}: {}", code(&spelling(argument)), help.trim_end_matches('.'));
                }
            };
            if command.has_subcommands() {
                for action in command.get_subcommands() {
                    list(
                        &format!("{}: {}.\n", code(&format!("{name} {}", action.get_name())), about(action)),
                        action,
                    );
                }
            } else if command.get_arguments().any(is_shown) {
                list("", &command);
            }
        }
        file(&folder.join(format!("{name}.md")), &text);
    }
}
