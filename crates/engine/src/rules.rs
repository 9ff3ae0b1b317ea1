//! The policy file: what whoever keeps this machine forbids, whatever a caller asks for.
//!
//! Decided here: which files apply, what a rule means, and that of several files each has its say, so that the strictest
//! wins. A file that cannot be used denies everything: an unread prohibition is not a permission. What a rule about
//! applications and windows does to the desktop stands in `guard`.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::key::Chord;
use agent_desktop_core::query::fold;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::commands::{Command, Effects};

/// Bytes a policy file may have.
pub(crate) const MAX_FILE: u64 = 256 * 1024;

/// Where rules may stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether it was asked for: it then denies everything when it is not there.
    pub must_exist: bool,
}

/// Text with `*` (any characters, also none) and `?` (one), matched whole, in any case; white space as in names.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Glob {
    /// As it was written.
    text: String,
    folded: Vec<char>,
}

impl TryFrom<String> for Glob {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Glob, &'static str> {
        let folded: Vec<char> = fold(&text).chars().collect();
        if folded.is_empty() { Err("an empty pattern") } else { Ok(Glob { text, folded }) }
    }
}

impl Glob {
    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = fold(text).chars().collect();
        let (mut at, mut in_text) = (0, 0);
        // Where the last star stands, and how much of the text it has taken.
        let mut star = None;
        while in_text < text.len() {
            match self.folded.get(at) {
                Some('*') => {
                    star = Some((at, in_text));
                    at += 1;
                }
                Some(&wanted) if wanted == '?' || wanted == text[in_text] => {
                    at += 1;
                    in_text += 1;
                }
                _ => {
                    let Some((star_at, taken)) = star else { return false };
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    in_text = taken + 1;
                }
            }
        }
        self.folded[at..].iter().all(|&rest| rest == '*')
    }
}

/// The same for names of commands. One that names none is a slip, which must not pass for a prohibition.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct CommandGlob(Glob);

impl TryFrom<String> for CommandGlob {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<CommandGlob, String> {
        let glob = Glob::try_from(text)?;
        if Command::SPECS.iter().any(|spec| glob.matches(spec.name)) {
            Ok(CommandGlob(glob))
        } else {
            Err(format!("no command is named `{}`", glob.text))
        }
    }
}

/// A key combination as it was written, and what it means.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Combination {
    text: String,
    chord: Chord,
}

impl TryFrom<String> for Combination {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Combination, String> {
        match Chord::parse(&text) {
            Ok(chord) => Ok(Combination { text, chord }),
            Err(error) => Err(format!("`{text}` is no key combination: {}", error.message())),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, bound = "T: Deserialize<'de>")]
struct Lists<T> {
    allow: Vec<T>,
    deny: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { allow: Vec::new(), deny: Vec::new() }
    }
}

impl<T> Lists<T> {
    fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct InputRules {
    blocked: Vec<Combination>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProcessRules {
    protected: Vec<Glob>,
}

/// What a file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Content {
    read_only: bool,
    allow_force: bool,
    audit: bool,
    commands: Lists<CommandGlob>,
    apps: Lists<Glob>,
    windows: Lists<Glob>,
    input: InputRules,
    processes: ProcessRules,
}

impl Default for Content {
    fn default() -> Content {
        Content {
            read_only: false,
            allow_force: true,
            audit: false,
            commands: Lists::default(),
            apps: Lists::default(),
            windows: Lists::default(),
            input: InputRules::default(),
            processes: ProcessRules::default(),
        }
    }
}

/// A rule that forbids something, and the file it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    /// `apps.deny "Pass*"`.
    rule: String,
    file: String,
}

impl Denial {
    fn new(rule: impl Into<String>, file: &Loaded) -> Denial {
        Denial { rule: rule.into(), file: file.path.clone() }
    }

    fn by(key: &str, pattern: &str, file: &Loaded) -> Denial {
        Denial::new(format!("{key} {pattern:?}"), file)
    }

    /// The refusal; what it says about delivery is for the caller to add.
    pub(crate) fn error(&self, message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode::PolicyDenied, message)
            .kind("policy_file")
            .detail("rule", self.rule.clone())
            .detail("file", self.file.clone())
            .hint(format!("the rule stands in {}, and only there can it be changed", self.file))
    }

    fn refuse(&self, message: impl Into<Cow<'static, str>>) -> Error {
        self.error(message).delivery(Delivery::NotDelivered)
    }
}

/// What `status` says about the rules.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    files: Vec<String>,
    read_only: bool,
    allow_force: bool,
    audit: bool,
}

#[derive(Clone, Debug)]
struct Loaded {
    path: String,
    content: Content,
}

/// The rules of every file that is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    files: Vec<Loaded>,
    /// The first file that cannot be used.
    invalid: Option<Error>,
}

impl Rules {
    /// Reads the files. What is wrong with one is told by [`Rules::command`].
    pub(crate) fn load(files: &[PolicyFile]) -> Rules {
        let mut rules = Rules::default();
        for file in files {
            match load(file) {
                Ok(Some(content)) => {
                    rules.files.push(Loaded { path: file.path.display().to_string(), content });
                }
                Ok(None) => {}
                Err(error) => {
                    rules.invalid.get_or_insert(error);
                }
            }
        }
        rules
    }

    /// Whether what is done is written down.
    pub(crate) fn audit(&self) -> bool {
        self.files.iter().any(|file| file.content.audit)
    }

    /// Whether there are rules about applications.
    pub(crate) fn has_apps(&self) -> bool {
        self.files.iter().any(|file| !file.content.apps.is_empty())
    }

    /// Whether there are rules about titles of windows.
    pub(crate) fn has_windows(&self) -> bool {
        self.files.iter().any(|file| !file.content.windows.is_empty())
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            files: self.files.iter().map(|file| file.path.clone()).collect(),
            read_only: self.files.iter().any(|file| file.content.read_only),
            allow_force: self.files.iter().all(|file| file.content.allow_force),
            audit: self.audit(),
        }
    }

    /// Whether this command may run. `version` always may: it looks at nothing.
    ///
    /// # Errors
    /// `POLICY_DENIED` of kind `policy_invalid` when a file cannot be used, of kind `policy_file` when a rule forbids it.
    pub(crate) fn command(&self, command: &Command, effects: Effects) -> Result<()> {
        if matches!(command, Command::Version(_)) {
            return Ok(());
        }
        if let Some(error) = &self.invalid {
            return Err(error.clone());
        }
        let name = command.name();
        // What it runs is checked one by one.
        let is_batch = matches!(command, Command::Batch(_));
        for file in &self.files {
            let commands = &file.content.commands;
            if let Some(CommandGlob(glob)) = commands.deny.iter().find(|glob| glob.0.matches(name)) {
                return Err(Denial::by("commands.deny", &glob.text, file)
                    .refuse(format!("the policy file denies the command {name}")));
            }
            if !is_batch
                && !commands.allow.is_empty()
                && !commands.allow.iter().any(|glob| glob.0.matches(name))
            {
                return Err(Denial::new("commands.allow", file).refuse(format!(
                    "the policy file does not list the command {name} among the allowed ones"
                )));
            }
            if file.content.read_only && effects.operates() {
                return Err(Denial::new("read_only", file)
                    .refuse(format!("the policy file allows reading only, and {name} does more")));
            }
        }
        Ok(())
    }

    /// What forbids an application that goes by these names. `names`: its name and its application id; all count for
    /// `allow`, and for `deny` the last part of an id as well, and `others`, which its process goes by too.
    pub(crate) fn app(&self, names: &[&str], others: &[&str]) -> Option<Denial> {
        let last = |name: &&str| name.rsplit_once('.').map_or("", |(_, last)| last).to_owned();
        let parts: Vec<String> = names.iter().chain(others).map(last).collect();
        let all = || names.iter().chain(others).copied().chain(parts.iter().map(String::as_str));
        self.files.iter().find_map(|file| {
            let apps = &file.content.apps;
            if let Some(glob) = apps.deny.iter().find(|glob| all().any(|name| glob.matches(name))) {
                return Some(Denial::by("apps.deny", &glob.text, file));
            }
            let is_listed = || apps.allow.iter().any(|glob| names.iter().any(|name| glob.matches(name)));
            (!apps.allow.is_empty() && !is_listed()).then(|| Denial::new("apps.allow", file))
        })
    }

    /// What forbids a window of this title.
    pub(crate) fn title(&self, title: &str) -> Option<Denial> {
        self.files.iter().find_map(|file| {
            let windows = &file.content.windows;
            if let Some(glob) = windows.deny.iter().find(|glob| glob.matches(title)) {
                return Some(Denial::by("windows.deny", &glob.text, file));
            }
            let is_listed = || windows.allow.iter().any(|glob| glob.matches(title));
            (!windows.allow.is_empty() && !is_listed()).then(|| Denial::new("windows.allow", file))
        })
    }

    /// What forbids something of which nobody can say where it would go: the rules about places.
    pub(crate) fn nowhere(&self) -> Option<Denial> {
        let has_lists = |file: &&Loaded| !file.content.apps.is_empty() || !file.content.windows.is_empty();
        self.files
            .iter()
            .find(has_lists)
            .map(|file| Denial::new(if file.content.apps.is_empty() { "windows" } else { "apps" }, file))
    }

    /// Refuses `--force` where it is switched off.
    ///
    /// # Errors
    /// `POLICY_DENIED` of kind `policy_file`.
    pub(crate) fn force(&self, is_forced: bool) -> Result<()> {
        let forbids = |file: &&Loaded| is_forced && !file.content.allow_force;
        match self.files.iter().find(forbids) {
            Some(file) => {
                Err(Denial::new("allow_force", file).refuse("the policy file does not allow --force"))
            }
            None => Ok(()),
        }
    }

    /// Refuses a blocked key combination.
    ///
    /// # Errors
    /// `POLICY_DENIED` of kind `policy_file`.
    pub(crate) fn chord(&self, chord: &Chord) -> Result<()> {
        for file in &self.files {
            let blocked = &file.content.input.blocked;
            if let Some(found) = blocked.iter().find(|combination| combination.chord == *chord) {
                return Err(Denial::by("input.blocked", &found.text, file)
                    .refuse(format!("the policy file blocks {chord}")));
            }
        }
        Ok(())
    }

    /// Refuses to end a protected application, by any of its names.
    ///
    /// # Errors
    /// `POLICY_DENIED` of kind `policy_file`.
    pub(crate) fn process(&self, names: &[&str]) -> Result<()> {
        for file in &self.files {
            let protected = &file.content.processes.protected;
            let found = protected.iter().find(|glob| names.iter().any(|name| glob.matches(name)));
            if let Some(glob) = found {
                return Err(Denial::by("processes.protected", &glob.text, file)
                    .refuse("the policy file protects this application from being closed"));
            }
        }
        Ok(())
    }
}

fn invalid(path: &Path, line: Option<usize>, reason: &str) -> Error {
    let at = line.map_or_else(String::new, |line| format!(", line {line}"));
    let error = Error::new(
        ErrorCode::PolicyDenied,
        format!("the policy file {}{at} cannot be used: {reason}", path.display()),
    )
    .kind("policy_invalid")
    .detail("file", path.display().to_string());
    let error = match line {
        Some(line) => error.detail("line", line),
        None => error,
    };
    error
        .detail("reason", reason.to_owned())
        .hint("correct the file; until then every command but version is refused")
        .delivery(Delivery::NotDelivered)
}

/// Whether the file, or the directory it should be in, is a link to something that is not there: somebody meant rules to
/// apply.
fn leads_nowhere(path: &Path) -> bool {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    is_link(path) || path.parent().is_some_and(|folder| is_link(folder) && !folder.exists())
}

/// What a file says; `None` when it is not there and need not be.
fn load(file: &PolicyFile) -> Result<Option<Content>> {
    let path = &file.path;
    // A pipe in its place must not make us wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT | Errno::NOTDIR) if !file.must_exist && !leads_nowhere(path) => return Ok(None),
        Err(error) => return Err(invalid(path, None, &std::io::Error::from(error).to_string())),
    };
    if !opened.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(invalid(path, None, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    if let Err(error) = opened.take(MAX_FILE + 1).read_to_end(&mut bytes) {
        return Err(invalid(path, None, &error.to_string()));
    }
    if bytes.len() as u64 > MAX_FILE {
        return Err(invalid(path, None, &format!("it is larger than {MAX_FILE} bytes")));
    }
    let line = |end: usize| bytes[..end.min(bytes.len())].split(|&byte| byte == b'\n').count();
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| invalid(path, Some(line(error.valid_up_to())), "it is not text"))?;
    toml::from_str(text)
        .map(Some)
        .map_err(|error| invalid(path, error.span().map(|span| line(span.start)), error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_files::tests::Scratch;
    use serde_json::json;

    fn glob(text: &str) -> Glob {
        Glob::try_from(text.to_owned()).unwrap()
    }

    fn parse(text: &str) -> Rules {
        let scratch = Scratch::new(&format!("rules-{:?}", std::thread::current().id()));
        let path = scratch.0.join("policy.toml");
        std::fs::write(&path, text).unwrap();
        Rules::load(&[PolicyFile { path, must_exist: true }])
    }

    #[track_caller]
    fn reason(text: &str) -> (Option<i64>, String) {
        let error = parse(text).invalid.expect("the file is wrong");
        assert_eq!((error.code(), error.get_kind()), (ErrorCode::PolicyDenied, "policy_invalid"));
        let line = error.details().iter().find_map(|(name, fact)| match (name.as_str(), fact) {
            ("line", agent_desktop_core::error::Fact::Int(line)) => Some(*line),
            _ => None,
        });
        (line, error.message().to_owned())
    }

    #[test]
    fn a_glob_matches_the_whole_text_in_any_case() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "anything"),
            ("KeePass*", "keepassxc"),
            ("*bank*", "My BANK – Firefox"),
            ("a?c", "ABC"),
            ("*a*b", "xaxxab"),
            ("text  editor", "Text Editor"),
            ("ÄRGER", "ärger"),
        ] {
            assert!(glob(pattern).matches(text), "{pattern} {text}");
        }
        for (pattern, text) in [("bank", "my bank"), ("a?c", "ac"), ("a*b", "abc"), ("?", ""), ("*.", "a")] {
            assert!(!glob(pattern).matches(text), "{pattern} {text}");
        }
        assert!(Glob::try_from("  ".to_owned()).is_err());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        assert_eq!(reason("read_only = true\nread_nly = true").0, Some(2));
        assert!(reason("\naudit = 1").1.contains("line 2"));
        assert_eq!(reason("[commands]\n\ndeny = [\"clik\"]").0, Some(3));
        assert!(reason("[commands]\ndeny = [\"clik\"]").1.contains("no command is named `clik`"));
        assert!(reason("[input]\nblocked = [\"ctrl+nonsense\"]").1.contains("ctrl+nonsense"));
        assert_eq!(reason("[apps]\nallow = [\"\"]").0, Some(2));
        assert_eq!(reason("[apps]\ndeny = \"a\"").0, Some(2));
        assert_eq!(reason("[windows]\ntitles = []").0, Some(2));
        assert_eq!(reason("read_only").0, Some(1));
    }

    #[test]
    fn a_file_that_is_not_there_counts_only_when_it_was_asked_for() {
        let path = PathBuf::from("/nonexistent/policy.toml");
        assert!(Rules::load(&[PolicyFile { path: path.clone(), must_exist: false }]).invalid.is_none());
        assert!(Rules::load(&[PolicyFile { path, must_exist: true }]).invalid.is_some());
        let folder = PolicyFile { path: std::env::temp_dir(), must_exist: false };
        assert!(Rules::load(&[folder]).invalid.is_some(), "a directory in its place is no absence");
    }

    #[test]
    fn what_is_no_text_or_no_file_or_too_long_denies_everything_and_never_waits() {
        let scratch = Scratch::new("rules-odd");
        let at = |name: &str| scratch.0.join(name);
        std::fs::write(at("bytes"), b"audit = true\n# \xff\n").unwrap();
        std::fs::write(at("long"), "#".repeat(MAX_FILE as usize + 1)).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        for (name, reason) in [("bytes", "line 2"), ("long", "larger than"), ("pipe", "regular file")] {
            let rules = Rules::load(&[PolicyFile { path: at(name), must_exist: false }]);
            let error = rules.invalid.unwrap_or_else(|| panic!("{name} passes"));
            assert!(error.message().contains(reason), "{}", error.message());
        }
    }

    #[test]
    fn a_link_is_followed_and_one_that_leads_nowhere_is_no_absence() {
        use std::os::unix::fs::symlink;
        let scratch = Scratch::new("rules-links");
        let at = |name: &str| scratch.0.join(name);
        let load = |path: PathBuf| Rules::load(&[PolicyFile { path, must_exist: false }]);
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("folder/policy.toml"), "audit = true").unwrap();
        symlink(at("folder/policy.toml"), at("good")).unwrap();
        symlink(at("folder"), at("good-folder")).unwrap();
        assert!(load(at("good")).audit() && load(at("good-folder/policy.toml")).audit());
        assert!(load(at("good-folder/other.toml")).invalid.is_none(), "nothing is there, as nowhere else");
        symlink(at("gone"), at("bad")).unwrap();
        symlink(at("round"), at("round")).unwrap();
        for path in [at("bad"), at("bad/policy.toml"), at("round"), at("round/policy.toml")] {
            assert!(load(path.clone()).invalid.is_some(), "{}", path.display());
        }
    }

    #[test]
    fn deny_beats_allow_and_an_allow_list_denies_the_rest() {
        let rules = parse("[apps]\nallow = [\"text*\", \"org.x.*\"]\ndeny = [\"*secret*\"]");
        assert_eq!(rules.app(&["Text Editor"], &[]), None);
        assert_eq!(rules.app(&["Other", "org.x.Other"], &[]), None, "the id counts as well");
        assert_eq!(rules.app(&["text secret"], &[]).unwrap().rule, "apps.deny \"*secret*\"");
        assert_eq!(rules.app(&["text"], &["secret"]).unwrap().rule, "apps.deny \"*secret*\"");
        assert_eq!(rules.app(&["Mail"], &["text"]).unwrap().rule, "apps.allow");
        let rules = parse("[apps]\ndeny = [\"keepassxc\"]\n[windows]\nallow = []");
        assert!(rules.app(&["org.keepassxc.KeePassXC"], &[]).is_some(), "the last part of an id is a name");
        assert!(rules.app(&["Mail"], &[]).is_none());
        assert!(rules.title("anything").is_none(), "an empty list is no list");
    }

    #[test]
    fn of_several_files_the_strictest_wins() {
        let scratch = Scratch::new("rules-several");
        let file = |name: &str, text: &str| {
            let path = scratch.0.join(name);
            std::fs::write(&path, text).unwrap();
            PolicyFile { path, must_exist: false }
        };
        let one = file("one", "[windows]\nallow = [\"a*\"]\n[commands]\nallow = [\"*\"]");
        let two = file("two", "allow_force = false\naudit = true\n[windows]\nallow = [\"*b\"]");
        let none = PolicyFile { path: scratch.0.join("none"), must_exist: false };
        let rules = Rules::load(&[one, none, two]);
        assert!(rules.title("ab").is_none());
        assert!(rules.title("a").is_some() && rules.title("b").is_some(), "both have their say");
        assert!(rules.force(true).is_err() && rules.force(false).is_ok() && rules.audit());
        let summary = serde_json::to_value(rules.summary()).unwrap();
        assert_eq!(summary["files"].as_array().unwrap().len(), 2);
        assert_eq!((&summary["allow_force"], &summary["read_only"]), (&json!(false), &json!(false)));
    }

    #[test]
    fn commands_are_checked_by_name_and_by_what_they_do() {
        let verdict = |rules: &Rules, name: &str, arguments: serde_json::Value| {
            let command = Command::decode(name, arguments).unwrap();
            rules.command(&command, command.effects()).map_err(|error| error.message().to_owned())
        };
        let rules = parse("read_only = true");
        for name in [
            "snapshot",
            "list-windows",
            "list-notifications",
            "screenshot",
            "clipboard-get",
            "status",
            "version",
        ] {
            assert_eq!(verdict(&rules, name, json!({})), Ok(()), "{name}");
        }
        for (name, arguments) in [
            ("click", json!({"ref_id": "@s1:e1"})),
            ("press", json!({"combo": "a"})),
            ("key-down", json!({"combo": "a"})),
            ("key-up", json!({"combo": "a"})),
            ("mouse-move", json!({"xy": "1,1"})),
            ("mouse-down", json!({"xy": "1,1"})),
            ("launch", json!({"app": "a"})),
            ("close-app", json!({"app": "a"})),
            ("clipboard-set", json!({"text": "a"})),
            ("clipboard-clear", json!({})),
            ("dismiss-notification", json!({"index": 1})),
            ("dismiss-all-notifications", json!({})),
            ("notification-action", json!({"index": 1, "action": "default"})),
        ] {
            assert!(verdict(&rules, name, arguments).unwrap_err().contains("reading only"), "{name}");
        }
        let rules = parse("[commands]\nallow = [\"list-*\", \"status\"]\ndeny = [\"list-apps\"]");
        assert_eq!(verdict(&rules, "list-windows", json!({})), Ok(()));
        assert_eq!(
            verdict(&rules, "batch", json!({"json": "[]"})),
            Ok(()),
            "its entries are checked instead"
        );
        assert!(verdict(&rules, "list-apps", json!({})).is_err());
        assert!(verdict(&rules, "snapshot", json!({})).is_err());
        let rules = parse("[commands]\ndeny = [\"*\"]");
        assert!(verdict(&rules, "batch", json!({"json": "[]"})).is_err());
        assert_eq!(verdict(&rules, "version", json!({})), Ok(()));
        let rules = parse("nonsense");
        assert!(verdict(&rules, "status", json!({})).is_err());
        assert_eq!(verdict(&rules, "version", json!({})), Ok(()));
    }
}
