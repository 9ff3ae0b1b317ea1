//! The product as a command: arguments in, exit code and envelope out.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Runs the built binary.
#[derive(Debug, Clone)]
pub struct Cli {
    binary: PathBuf,
    home: PathBuf,
    env: Vec<(OsString, Option<OsString>)>,
    folder: Option<PathBuf>,
    limit: Duration,
}

impl Cli {
    /// With this state folder (`AGENT_DESKTOP_HOME`), which the product makes when it needs it.
    pub fn new(home: PathBuf) -> Self {
        Self { binary: binary(), home, env: Vec::new(), folder: None, limit: Duration::from_secs(60) }
    }

    /// Sets an environment variable for all runs.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), Some(value.into())));
        self
    }

    /// Removes an environment variable for all runs.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.env.push((key.into(), None));
        self
    }

    /// Runs in this folder.
    #[must_use]
    pub fn inside(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// A run that takes longer is ended, and the test fails.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The state folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The command, ready to be started, for tests that need the process itself.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args).stdin(Stdio::null()).env("AGENT_DESKTOP_HOME", &self.home);
        for (key, value) in &self.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Reply {
        let shown: Vec<String> = args.iter().map(|arg| arg.as_ref().to_string_lossy().into_owned()).collect();
        let start = Instant::now();
        let mut child = self
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", self.binary.display()));
        let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
        while start.elapsed() < self.limit && child.try_wait().is_ok_and(|status| status.is_none()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (elapsed, late) = (start.elapsed(), child.try_wait().is_ok_and(|status| status.is_none()));
        if late {
            let _ = child.kill();
        }
        let ended = child.wait().expect("the process is ours");
        let text = |reader: std::thread::JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&reader.join().expect("the reader ends")).into_owned()
        };
        let (stdout, stderr) = (text(out), text(err));
        let reply = Reply {
            args: shown,
            code: ended.code(),
            json: serde_json::from_str(&stdout).ok(),
            stdout,
            stderr,
            elapsed,
        };
        assert!(!late, "not done within {:?}, ended\n{reply}", self.limit);
        reply
    }

    /// Runs it and gives `data`; panics when the reply is not `ok`.
    #[track_caller]
    pub fn ok<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Value {
        self.run(args).ok()
    }

    /// Runs it and gives the error; panics when the reply is `ok`.
    #[track_caller]
    pub fn fails<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Value {
        self.run(args).err()
    }

    /// The ref of the only match of `find` in an application, with a role and a name.
    #[track_caller]
    pub fn find(&self, app: &str, role: &str, name: &str) -> String {
        let data = self.ok(&["find", "--app", app, "--role", role, "--name", name, "--exact"]);
        let matches = data["matches"].as_array().cloned().unwrap_or_default();
        assert_eq!(matches.len(), 1, "{role} {name:?} in {app}: {data:#}");
        matches[0]["ref_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{role} {name:?} has no ref: {data:#}"))
            .to_owned()
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("piped");
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = pipe.read_to_end(&mut all);
        all
    })
}

/// The built binary: `AGENT_DESKTOP_BIN`, or the one beside this test's own profile folder.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("AGENT_DESKTOP_BIN") {
        return path.into();
    }
    let exe = std::env::current_exe().expect("the test binary's own path");
    let built =
        exe.ancestors().skip(1).map(|folder| folder.join("agent-desktop")).find(|path| path.is_file());
    built.unwrap_or_else(|| {
        panic!("no agent-desktop above {}: build it first (make test does)", exe.display())
    })
}

/// What one run gave.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its arguments.
    pub args: Vec<String>,
    /// Exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The envelope, when stdout was JSON.
    pub json: Option<Value>,
    /// Standard output as it was.
    pub stdout: String,
    /// Standard error as it was.
    pub stderr: String,
    /// From start to end.
    pub elapsed: Duration,
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "$ agent-desktop {}", self.args.join(" "))?;
        writeln!(f, "exit code {:?} after {:?}", self.code, self.elapsed)?;
        match &self.json {
            Some(json) => writeln!(f, "{json:#}")?,
            None => writeln!(f, "stdout: {}", self.stdout)?,
        }
        write!(f, "stderr: {}", self.stderr)
    }
}

impl Reply {
    /// The envelope; panics when stdout was no JSON.
    #[track_caller]
    pub fn envelope(&self) -> &Value {
        self.json.as_ref().unwrap_or_else(|| panic!("no envelope\n{self}"))
    }

    /// `data` of a reply that is `ok` with exit code 0.
    #[track_caller]
    pub fn ok(&self) -> Value {
        let envelope = self.envelope();
        assert!(envelope["ok"] == true && self.code == Some(0), "not ok\n{self}");
        envelope["data"].clone()
    }

    /// `error` of a reply that is not `ok`, with exit code 1 or 2.
    #[track_caller]
    pub fn err(&self) -> Value {
        let envelope = self.envelope();
        assert!(envelope["ok"] == false && matches!(self.code, Some(1 | 2)), "no error\n{self}");
        envelope["error"].clone()
    }

    /// The error's code.
    #[track_caller]
    pub fn err_code(&self) -> String {
        self.err()["code"].as_str().unwrap_or_else(|| panic!("no code\n{self}")).to_owned()
    }
}

/// All nodes of a tree, parents first.
pub fn nodes(tree: &Value) -> Vec<&Value> {
    let mut all = Vec::new();
    let mut left = vec![tree];
    while let Some(node) = left.pop() {
        all.push(node);
        left.extend(node["children"].as_array().into_iter().flatten().rev());
    }
    all
}

/// The nodes with this role and name; an empty role fits all.
pub fn find_nodes<'a>(tree: &'a Value, role: &str, name: &str) -> Vec<&'a Value> {
    let fits = |node: &&Value| (role.is_empty() || node["role"] == role) && node["name"] == name;
    nodes(tree).into_iter().filter(fits).collect()
}

/// The only node with this role and name.
#[track_caller]
pub fn find_node<'a>(tree: &'a Value, role: &str, name: &str) -> &'a Value {
    let found = find_nodes(tree, role, name);
    assert_eq!(found.len(), 1, "{role} {name:?} in:\n{}", outline(tree));
    found[0]
}

/// The ref of the only node with this role and name.
#[track_caller]
pub fn find_ref(tree: &Value, role: &str, name: &str) -> String {
    let node = find_node(tree, role, name);
    node["ref_id"].as_str().unwrap_or_else(|| panic!("{role} {name:?} has no ref: {node:#}")).to_owned()
}

/// A tree, one line a node, for messages.
pub fn outline(tree: &Value) -> String {
    fn add(node: &Value, depth: usize, out: &mut String) {
        let word = |key: &str| node[key].as_str().unwrap_or_default();
        let line =
            format!("{:w$}{} {:?} {}\n", "", word("role"), word("name"), word("ref_id"), w = depth * 2);
        out.push_str(&line);
        for child in node["children"].as_array().into_iter().flatten() {
            add(child, depth + 1, out);
        }
    }
    let mut out = String::new();
    add(tree, 0, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_only_node_is_found_with_its_ref() {
        let tree = json!({"role": "window", "name": "W", "children": [
            {"role": "button", "name": "Save", "ref_id": "@s1:e1"},
            {"role": "group", "name": "G", "children": [{"role": "button", "name": "Open", "ref_id": "@s1:e2"}]}]});
        assert_eq!(find_ref(&tree, "button", "Open"), "@s1:e2");
        assert_eq!(nodes(&tree).len(), 4);
    }

    #[test]
    #[should_panic(expected = "button \"Twin\"")]
    fn two_equal_nodes_are_refused() {
        let tree = json!({"role": "window", "name": "", "children": [
            {"role": "button", "name": "Twin"}, {"role": "button", "name": "Twin"}]});
        find_ref(&tree, "button", "Twin");
    }
}
