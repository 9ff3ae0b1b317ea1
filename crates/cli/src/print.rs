//! Output: one text on stdout, everything else on stderr.

use std::io::Write;
use std::process::ExitCode;

/// Prints `text` and a newline in one write, so that a reader sees all or nothing of it.
///
/// A stdout that cannot be written is failure 1 with a line on stderr, whatever the command came to.
pub(crate) fn stdout(text: &str, code: ExitCode) -> ExitCode {
    let mut line = String::with_capacity(text.len() + 1);
    line.push_str(text);
    if !line.ends_with('\n') {
        line.push('\n');
    }
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => code,
        Err(error) => {
            stderr(&format!("agent-desktop: cannot write to stdout: {error}"));
            ExitCode::from(1)
        }
    }
}

/// Prints a line on stderr. A closed stderr is nobody's problem.
pub(crate) fn stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
