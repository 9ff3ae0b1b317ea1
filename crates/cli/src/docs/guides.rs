//! What guides tell a reader to type exists: every command line of the skills, the README and the help is parsed by the real
//! parser, and every flag that is named is one of ours.

use agent_desktop_engine::Command;
use agent_desktop_engine::commands::skills::SKILLS;
use clap::{CommandFactory, FromArgMatches};
use serde_json::Value;

use crate::CommandLine;

/// Flags of other programs that guides name.
const FOREIGN: &[&str] = &["--force-renderer-accessibility", "--release"];

/// The simple commands of a piece of shell, as words. Knows quotes, substitutions, comments and what stands between
/// commands; that is all our guides use.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut has_word) = (String::new(), false);
    let mut characters = line.chars().peekable();
    let mut quotes: Vec<char> = Vec::new();
    while let Some(character) = characters.next() {
        let end = |word: &mut String, has_word: &mut bool, all: &mut Vec<Vec<String>>| {
            if std::mem::take(has_word) {
                all.last_mut().expect("never empty").push(std::mem::take(word));
            }
        };
        match (character, quotes.last()) {
            ('\'', Some('\'')) | ('"', Some('"')) => drop(quotes.pop()),
            ('\'' | '"', None | Some('(')) => {
                quotes.push(character);
                has_word = true;
            }
            ('$', None | Some('(' | '"')) if characters.peek() == Some(&'(') => {
                characters.next();
                quotes.push('(');
                word.push_str("$()");
                has_word = true;
                end(&mut word, &mut has_word, &mut all);
                all.push(Vec::new());
            }
            (')', Some('(')) => {
                quotes.pop();
                end(&mut word, &mut has_word, &mut all);
                all.push(Vec::new());
            }
            ('|' | ';' | '&' | '>' | '<' | '\n', None | Some('(')) => {
                end(&mut word, &mut has_word, &mut all);
                all.push(Vec::new());
            }
            ('#', None) if !has_word => while characters.next_if(|&next| next != '\n').is_some() {},
            (' ', None | Some('(')) => end(&mut word, &mut has_word, &mut all),
            _ => {
                word.push(character);
                has_word = true;
            }
        }
    }
    if has_word {
        all.last_mut().expect("never empty").push(word);
    }
    all
}

/// The command lines of ours in a line of shell, also those inside of a quoted script.
fn ours(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for words in commands(line) {
        if let Some(at) = words.iter().position(|word| word == "agent-desktop") {
            found.push(words[at..].to_vec());
        } else {
            found.extend(
                words.iter().filter(|word| word.contains("agent-desktop ")).flat_map(|word| ours(word)),
            );
        }
    }
    found
}

/// The code of a page: lines of its blocks, and what stands between backticks elsewhere.
fn code(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_block = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            lines.push(line.trim_start_matches("$ ").to_owned());
        } else {
            lines.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    lines
}

/// Parses one command line; the entries of a batch as well.
fn parse(words: &[String]) -> Result<(), String> {
    let line = CommandLine::command()
        .try_get_matches_from(words)
        .and_then(|matches| CommandLine::from_arg_matches(&matches));
    let line = match line {
        Ok(line) => line,
        Err(error) if error.use_stderr() => return Err(error.to_string()),
        Err(_) => return Ok(()), // help
    };
    let Some(Command::Batch(batch)) = line.command else { return Ok(()) };
    let entries: Value =
        serde_json::from_str(batch.json.as_deref().unwrap_or("[]")).map_err(|e| e.to_string())?;
    for entry in entries.as_array().ok_or("a batch is a list")? {
        let mut args = entry["args"].clone();
        for value in args.as_object_mut().into_iter().flat_map(|args| args.values_mut()) {
            if value.get("$result").is_some() {
                *value = "@s7zknu:e1".into();
            }
        }
        let name = entry["command"].as_str().ok_or("an entry has a command")?;
        Command::decode(name, args).map_err(|error| format!("{name}: {}", error.message()))?;
    }
    Ok(())
}

fn flags() -> Vec<String> {
    let line = CommandLine::command();
    let all = std::iter::once(&line)
        .chain(line.get_subcommands())
        .chain(line.get_subcommands().flat_map(clap::Command::get_subcommands));
    let longs = all.flat_map(clap::Command::get_arguments).filter_map(clap::Arg::get_long);
    longs.chain(["help", "version"]).map(|long| format!("--{long}")).collect()
}

/// Everything wrong on a page.
fn complaints(name: &str, page: &str) -> Vec<String> {
    let known = flags();
    let mut wrong = Vec::new();
    for line in code(page) {
        for words in ours(&line).iter().filter(|words| words.len() > 1) {
            // A name in capitals stands for any command.
            if words[1] != "COMMAND"
                && let Err(cause) = parse(words)
            {
                wrong.push(format!("{name}: {line}\n  {cause}"));
            }
        }
        for word in line.split(|character: char| !(character.is_ascii_alphanumeric() || character == '-')) {
            let is_flag = word.len() > 3 && word.starts_with("--") && word.as_bytes()[2] != b'-';
            if is_flag && !known.iter().any(|flag| flag == word) && !FOREIGN.contains(&word) {
                wrong.push(format!("{name}: there is no {word}: {line}"));
            }
        }
    }
    wrong
}

#[test]
fn every_command_line_of_the_guides_can_be_typed() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for skill in SKILLS {
        for (path, text) in std::iter::once(&("SKILL.md", skill.text)).chain(skill.references) {
            count += code(text).iter().flat_map(|line| ours(line)).count();
            wrong.extend(complaints(&format!("{}/{path}", skill.name), text));
        }
    }
    assert!(count > 60, "only {count} command lines were found in the guides");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_line_of_the_readme_and_of_the_help_can_be_typed() {
    let readme = std::fs::read_to_string(agent_desktop_testkit::root().join("README.md")).unwrap();
    let mut wrong =
        complaints("README.md", &readme.replace("cargo build", "").replace(" -p agent-desktop ", ""));
    let line = CommandLine::command();
    for command in std::iter::once(&line).chain(line.get_subcommands()) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for words in ours(&help) {
            wrong.extend(
                parse(&words).err().map(|cause| format!("{}: {words:?}\n{cause}", command.get_name())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_of_shell_are_taken_apart() {
    let lines = [
        ("agent-desktop get @s1:e1 | jq .data # no", vec!["get @s1:e1"]),
        ("id=$(agent-desktop session start --name x | jq -r .a)", vec!["session start --name x"]),
        ("trap 'agent-desktop trace export --out f.html' EXIT", vec!["trace export --out f.html"]),
        ("sh -c 'openbox & agent-desktop doctor; sh t.sh'", vec!["doctor"]),
        (
            "agent-desktop --session \"$id\" list-apps && agent-desktop version",
            vec!["--session $id list-apps", "version"],
        ),
        ("agent-desktop click \"$(agent-desktop find --first)\"", vec!["click $()", "find --first"]),
    ];
    for (line, expected) in lines {
        let found: Vec<String> = ours(line).iter().map(|words| words[1..].join(" ")).collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn what_does_not_exist_is_noticed() {
    for page in [
        "```sh\nagent-desktop clack @s1:e1\n```",
        "`agent-desktop click @s1:e1 --gently`",
        "pass `--gently`",
        "```sh\nagent-desktop batch '[{\"command\":\"clack\"}]'\n```",
        "```sh\nagent-desktop batch '[{\"command\":\"click\",\"args\":{\"reference\":\"x\"}}]'\n```",
    ] {
        assert!(!complaints("page", page).is_empty(), "{page}");
    }
}
