//! The clipboard of the desktop, and the process that answers for what we put there.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agent_desktop_core::platform::{ClipboardContent, ClipboardForm, ClipboardOffer};
use agent_desktop_core::{Deadline, Delivery, Error, ErrorCode, Result};

use crate::window_system::{Content, Form, WindowSystemError, X11};

/// First argument of the program when it is to serve the clipboard. Not for callers.
pub const SERVE: &str = "serve-clipboard-of-this-desktop";
/// How long a serving process may take to connect.
const CONNECT: Duration = Duration::from_secs(10);

fn native(form: ClipboardForm) -> Form {
    match form {
        ClipboardForm::Text => Form::Text,
        ClipboardForm::Files => Form::Files,
        ClipboardForm::Image => Form::Png,
    }
}

fn to_native(content: &ClipboardContent) -> Content {
    match content {
        ClipboardContent::Text(text) => Content::Text(text.clone()),
        ClipboardContent::Files(files) => Content::Files(files.clone()),
        ClipboardContent::Image(png) => Content::Png(png.clone()),
    }
}

fn from_native(content: Content) -> ClipboardContent {
    match content {
        Content::Text(text) => ClipboardContent::Text(text),
        Content::Files(files) => ClipboardContent::Files(files),
        Content::Png(png) => ClipboardContent::Image(png),
    }
}

/// A silent owner is an application that does not answer.
fn failed(error: &WindowSystemError) -> Error {
    match error {
        WindowSystemError::Timeout { .. } => {
            Error::new(ErrorCode::AppUnresponsive, "the application that copied something does not answer")
                .kind("app_unresponsive")
                .hint("see whether it hangs, or copy something else")
                .platform_detail(error.to_string())
                .delivery(Delivery::NotDelivered)
        }
        error => crate::platform::screen_error(error),
    }
}

pub(crate) fn offer(display: &X11, deadline: Deadline) -> Result<ClipboardOffer> {
    let offer = display.clipboard_offer(deadline.at()).map_err(|error| failed(&error))?;
    let forms = [ClipboardForm::Files, ClipboardForm::Image, ClipboardForm::Text];
    Ok(ClipboardOffer {
        owner: offer.owner.to_string(),
        forms: forms.into_iter().filter(|form| offer.has(native(*form))).collect(),
        is_concealed: offer.is_concealed,
    })
}

pub(crate) fn read(
    display: &X11,
    form: ClipboardForm,
    limit: usize,
    deadline: Deadline,
) -> Result<Option<ClipboardContent>> {
    let content =
        display.clipboard_read(native(form), limit, deadline.at()).map_err(|error| failed(&error))?;
    Ok(content.map(from_native))
}

/// Starts a process that owns the clipboard, and waits until it does.
pub(crate) fn write(content: &ClipboardContent, deadline: Deadline) -> Result<()> {
    use std::os::unix::process::CommandExt;
    let refused = |cause: String| {
        Error::new(ErrorCode::ActionFailed, "nothing can answer for the clipboard")
            .platform_detail(cause)
            .delivery(Delivery::NotDelivered)
    };
    let program = std::env::current_exe().map_err(|error| refused(error.to_string()))?;
    // What our parent gave us, a lock or the end of a pipe, is not to be kept for as long as the clipboard is.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    let mut child = Command::new(program)
        .arg(SERVE)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // What ends our group, such as a terminal that is closed, does not end it.
        .process_group(0)
        .spawn()
        .map_err(|error| refused(error.to_string()))?;
    let told = child.stdin.take().map(|mut input| to_native(content).write(&mut input));
    if let Some(Err(error)) = told {
        let _ = child.kill();
        let _ = child.wait();
        return Err(refused(error.to_string()));
    }
    let output = child.stdout.take();
    let (sender, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        crate::signals::leave_to_others();
        let mut word = [0; 5];
        let is_ready =
            output.is_some_and(|mut output| output.read_exact(&mut word).is_ok() && &word == b"ready");
        let _ = sender.send(is_ready);
    });
    let left = deadline.remaining(Instant::now());
    match answer.recv_timeout(left) {
        Ok(true) => Ok(()),
        outcome => {
            let _ = child.kill();
            let _ = child.wait();
            let error = if outcome.is_err() {
                Error::new(ErrorCode::Timeout, "the clipboard was not taken over in time")
                    .kind("deadline")
                    .hint("allow more time with --timeout-ms")
            } else {
                refused("the process that should serve it ended".to_owned())
            };
            Err(error.delivery(Delivery::Uncertain))
        }
    }
}

/// Serves the clipboard with what is told on standard input, until somebody else copies or the display ends. What the
/// program does when its first argument is [`SERVE`].
pub fn serve() -> std::process::ExitCode {
    use std::io::Write;
    let Ok(Some(content)) = Content::read(&mut std::io::stdin().lock()) else {
        return std::process::ExitCode::FAILURE;
    };
    let Ok(display) = X11::connect(None, Instant::now() + CONNECT) else {
        return std::process::ExitCode::FAILURE;
    };
    let served = display.clipboard_serve(&content, || {
        let mut out = std::io::stdout();
        let _ = out.write_all(b"ready").and_then(|()| out.flush());
        leave_streams();
    });
    if served.is_ok() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// Whoever reads what our parent prints must not wait for us.
fn leave_streams() {
    let nowhere = PathBuf::from("/dev/null");
    if let Ok(nowhere) = std::fs::OpenOptions::new().read(true).write(true).open(nowhere) {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
        let _ = rustix::stdio::dup2_stdin(&nowhere);
    }
}
