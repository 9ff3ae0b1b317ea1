//! The command line door of agent-desktop.
//!
//! One process runs one command, prints one JSON object and a newline on stdout, and exits with 0 (done), 1 (the command
//! failed) or 2 (the command line could not be parsed). Everything else goes to stderr.

#[cfg(test)]
mod docs;
mod env;
mod native;
mod print;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::Error;
use agent_desktop_engine::commands::batch;
use agent_desktop_engine::log::{self, Level};
use agent_desktop_engine::{Command, Format, Options, Response, execute};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

/// Characters that the parser's message may have in an envelope.
const MAX_MESSAGE: usize = 512;

/// What a first session looks like.
const EXAMPLE: &str = "\
Example:
  agent-desktop snapshot --app gnome-calculator -i --format outline
  agent-desktop click @s7zknu:e14
  agent-desktop get @s7zknu:e11 --property value

All of the JSON, the errors and the limits: docs/contract.md";

/// Reads and operates desktop applications through their accessibility trees, for software agents.
///
/// Take a snapshot of a window, pick an element by its ref, act on it, and read what happened. Every command prints one
/// JSON object; nothing moves the pointer or changes the focus unless --headed is given.
#[derive(Debug, Parser)]
#[command(name = "agent-desktop", version, disable_help_subcommand = true, subcommand_required = false, after_help = EXAMPLE)]
struct CommandLine {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Say on stderr what is done.
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Keep the snapshots of this caller apart from others: 1 to 64 letters, digits, _ or -.
    #[arg(long, global = true, value_name = "ID")]
    session: Option<String>,
    /// Append what is done to this file, one JSON object a line.
    #[arg(long, global = true, value_name = "PATH")]
    trace: Option<PathBuf>,
    /// Fail rather than act without a trace.
    #[arg(long, global = true)]
    trace_strict: bool,
    /// Allow focus changes, pointer movement and synthetic input.
    #[arg(long, global = true)]
    headed: bool,
    /// Form of the result: json, or outline (text for people and models, where a command has one).
    #[arg(long, global = true, value_name = "FORMAT", default_value = "json", value_parser = ["json", "outline"])]
    format: String,
    /// After the command, wait until something matches [role][:text], such as button:Submit or :Saved.
    #[arg(short, long, global = true, value_name = "SELECTOR")]
    wait_for: Option<String>,
    /// After the command, wait until nothing matches [role][:text].
    #[arg(long, global = true, value_name = "SELECTOR")]
    wait_for_gone: Option<String>,
    /// How many milliseconds --wait-for and --wait-for-gone wait [default: 30000].
    #[arg(long, global = true, value_name = "MS")]
    wait_timeout: Option<u64>,
}

impl Global {
    fn merge_into(self, options: &mut Options) {
        options.session = self.session;
        options.trace = self.trace;
        options.trace_strict = self.trace_strict;
        options.headed = self.headed;
        options.format = if self.format == "outline" { Format::Outline } else { Format::Json };
        options.wait_for = self.wait_for;
        options.wait_for_gone = self.wait_for_gone;
        options.wait_timeout_ms = self.wait_timeout;
    }
}

fn main() -> ExitCode {
    if let Some(code) = native::serve() {
        return code;
    }
    // Arguments that are not Unicode would make clap's derive fail later and less clearly.
    let matches = CommandLine::command().try_get_matches();
    let line = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => line,
        Err(error) => return parse_failure(&error),
    };
    // The parser's own rule does not see one flag before the subcommand and the other behind it.
    if line.global.wait_for.is_some() && line.global.wait_for_gone.is_some() {
        return invalid("the argument '--wait-for' cannot be used with '--wait-for-gone'");
    }
    let filter = env::log_filter().and_then(|filter| Level::parse_filter(&filter));
    if let Some(level) = filter.or(line.global.verbose.then_some(Level::Debug)) {
        log::set_level(level);
    }
    let Some(mut command) = line.command else {
        return print::stdout(&CommandLine::command().render_help().to_string(), ExitCode::SUCCESS);
    };
    let mut options = match env::options() {
        Ok(options) => options,
        Err(error) => return respond(&Response::failure(command.name(), &error)),
    };
    options.listener = native::LISTENER;
    line.global.merge_into(&mut options);
    if let Command::Batch(batch) = &mut command
        && batch.json.as_deref() == Some("-")
    {
        match standard_input(batch::MAX_INPUT) {
            Ok(text) => batch.json = Some(text),
            Err(error) => return respond(&Response::failure(command.name(), &error)),
        }
    }
    let platform = native::platform();
    let response = execute(&command, &*platform, &options);
    if env::wants_statistics() {
        let statistics = platform.statistics();
        print::stderr(&format!("stats: calls={} waits={}", statistics.calls, statistics.waits));
    }
    respond(&response)
}

/// All of standard input, as far as a batch may be long and a little more, so that it is refused.
fn standard_input(limit: usize) -> Result<String, Error> {
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(limit as u64 + 1).read_to_end(&mut text);
    let text = read.and_then(|_| String::from_utf8(text).map_err(std::io::Error::other));
    text.map_err(|error| {
        Error::invalid("standard input cannot be read as text")
            .platform_detail(error.to_string())
            .delivery(Delivery::NotDelivered)
    })
}

fn respond(response: &Response) -> ExitCode {
    print::stdout(&response.text, if response.ok { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn parse_failure(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => print::stdout(&text, ExitCode::SUCCESS),
        _ => invalid(&parser_message(&text)),
    }
}

/// What the parser says, on one line: its first line, and the names it lists below when that line ends with a colon.
fn parser_message(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).skip_while(|line| line.is_empty());
    let first = lines.next().unwrap_or("the command line is wrong");
    let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    if message.ends_with(':') {
        let names: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        message.push(' ');
        message.push_str(&names.join(", "));
    }
    message
}

fn invalid(message: &str) -> ExitCode {
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let error =
        Error::invalid(message).hint("agent-desktop --help, or COMMAND --help, shows what is accepted");
    print::stdout(&Response::failure("unknown", &error).text, ExitCode::from(2))
}
