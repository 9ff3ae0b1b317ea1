//! Desktop entries: finding the file that describes an application, reading it, and making a command of it.
//!
//! Decided here: what the files say, and which one a name means. Not decided: whether it may be started, and how (see
//! [`launch`](crate::launch)).
//!
//! Desktop Entry Specification: <https://specifications.freedesktop.org/desktop-entry-spec/latest/>

use std::collections::{HashMap, HashSet};
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest file read; the largest real one (`LibreOffice`'s, with all languages) has 60 KiB.
const MAXIMUM_SIZE: u64 = 1 << 20;

/// How deep below `applications` files are looked for.
const MAXIMUM_DEPTH: usize = 4;

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryError {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: String,
    },
    /// It has no `[Desktop Entry]` group, or lacks `Name`.
    Malformed {
        /// What is missing.
        what: &'static str,
    },
    /// It is a link or a directory, not an application.
    NotAnApplication {
        /// Its `Type`.
        kind: String,
    },
    /// It has no `Exec`: it can only be activated over D-Bus.
    NoCommand,
    /// `Exec` breaks the rules for quotes or field codes.
    BadCommand {
        /// The value of `Exec`.
        command: String,
        /// What is wrong.
        what: &'static str,
    },
}

impl fmt::Display for EntryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, cause } => write!(formatter, "{}: {cause}", path.display()),
            Self::Malformed { what } => write!(formatter, "not a desktop entry: {what} is missing"),
            Self::NotAnApplication { kind } => write!(formatter, "a desktop entry of type {kind:?}"),
            Self::NoCommand => write!(formatter, "the desktop entry has no command"),
            Self::BadCommand { command, what } => write!(formatter, "command {command:?}: {what}"),
        }
    }
}

impl std::error::Error for EntryError {}

/// An application's desktop entry.
// Each flag is a key of the file format, under its name there.
#[allow(clippy::struct_excessive_bools, reason = "the keys of the format")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DesktopEntry {
    /// Desktop file id without `.desktop`, for example `org.gnome.gedit`; folders are joined with `-`.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// `Name` without translation.
    pub name: String,
    /// `Name` in the user's language, when that differs.
    pub localized_name: Option<String>,
    /// `GenericName` without translation, for example `Text Editor`.
    pub generic_name: Option<String>,
    /// `Icon`.
    pub icon: Option<String>,
    /// `Exec`, not yet split.
    pub command: Option<String>,
    /// `TryExec`: the application is installed only if this program exists.
    pub probe: Option<String>,
    /// `Path`: the working directory.
    pub working_directory: Option<PathBuf>,
    /// `StartupWMClass`: the class its windows will have.
    pub window_class: Option<String>,
    /// `Terminal`: the command wants a terminal around it.
    pub needs_terminal: bool,
    /// `Hidden`: deleted by the user.
    pub is_hidden: bool,
    /// `NoDisplay`: not in menus, but meant to be started.
    pub is_not_displayed: bool,
    /// `DBusActivatable`: it can be started over D-Bus under its id.
    pub is_bus_activatable: bool,
}

impl DesktopEntry {
    /// Reads the text of an entry. `locale` as in `LC_MESSAGES`, for example `de_DE.UTF-8`.
    ///
    /// # Errors
    /// `Malformed`, `NotAnApplication`.
    pub fn parse(text: &str, id: &str, path: &Path, locale: &str) -> Result<Self, EntryError> {
        let keys = main_group(text).ok_or(EntryError::Malformed { what: "the group [Desktop Entry]" })?;
        let string = |key: &str| keys.get(key).map(|value| unescape(value)).filter(|value| !value.is_empty());
        let flag = |key: &str| keys.get(key).is_some_and(|value| matches!(*value, "true" | "1"));
        let is_hidden = flag("Hidden");
        let kind = string("Type").unwrap_or_default();
        // A file that only says "deleted" is complete.
        if kind != "Application" && !is_hidden {
            return Err(EntryError::NotAnApplication { kind });
        }
        let name = match string("Name") {
            Some(name) => name,
            None if is_hidden => String::new(),
            None => return Err(EntryError::Malformed { what: "Name" }),
        };
        let localized_name = locale_suffixes(locale)
            .iter()
            .find_map(|suffix| string(&format!("Name[{suffix}]")))
            .filter(|localized| *localized != name);
        Ok(Self {
            id: id.to_owned(),
            path: path.to_owned(),
            name,
            localized_name,
            generic_name: string("GenericName"),
            icon: string("Icon"),
            command: string("Exec"),
            probe: string("TryExec"),
            working_directory: string("Path").map(PathBuf::from),
            window_class: string("StartupWMClass"),
            needs_terminal: flag("Terminal"),
            is_hidden,
            is_not_displayed: flag("NoDisplay"),
            is_bus_activatable: flag("DBusActivatable"),
        })
    }

    /// Reads an entry's file.
    ///
    /// # Errors
    /// `Unreadable`, `Malformed`, `NotAnApplication`.
    pub fn read(path: &Path, id: &str) -> Result<Self, EntryError> {
        let unreadable = |cause: String| EntryError::Unreadable { path: path.to_owned(), cause };
        let size = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if !size.is_file() || size.len() > MAXIMUM_SIZE {
            return Err(unreadable("not a plain file of at most 1 MiB".to_owned()));
        }
        let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
        Self::parse(&String::from_utf8_lossy(&bytes), id, path, &user_locale())
    }

    /// Whether it is installed as far as `TryExec` tells. Looks into `PATH`.
    pub fn is_installed(&self) -> bool {
        self.probe.as_ref().is_none_or(|program| find_program(program).is_some())
    }

    /// The command with its arguments, for opening `targets` (paths or URLs; mostly none).
    ///
    /// A command that takes one file is given the first one only.
    ///
    /// # Errors
    /// `NoCommand`, `BadCommand`.
    pub fn arguments(&self, targets: &[String]) -> Result<Vec<String>, EntryError> {
        let command = self.command.as_ref().ok_or(EntryError::NoCommand)?;
        let bad = |what| EntryError::BadCommand { command: command.clone(), what };
        let mut arguments = Vec::new();
        for word in split_command(command).map_err(bad)? {
            self.expand(&word, targets, &mut arguments).map_err(bad)?;
        }
        if arguments.first().is_none_or(String::is_empty) {
            return Err(bad("no program"));
        }
        Ok(arguments)
    }

    fn expand(&self, word: &str, targets: &[String], into: &mut Vec<String>) -> Result<(), &'static str> {
        // These stand for any number of arguments, none included, so only a whole word can be one. (In quotes they are
        // undefined, and files that have them there mean them.)
        match word {
            "%F" | "%U" => {
                into.extend(targets.iter().cloned());
                return Ok(());
            }
            "%f" | "%u" => {
                into.extend(targets.first().cloned());
                return Ok(());
            }
            "%i" => {
                if let Some(icon) = &self.icon {
                    into.extend(["--icon".to_owned(), icon.clone()]);
                }
                return Ok(());
            }
            // Deprecated codes stand for nothing.
            "%d" | "%D" | "%n" | "%N" | "%v" | "%m" => return Ok(()),
            _ => {}
        }
        let mut argument = String::new();
        let mut characters = word.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                argument.push(character);
                continue;
            }
            match characters.next() {
                Some('%') => argument.push('%'),
                Some('f' | 'u') => argument.push_str(targets.first().map_or("", String::as_str)),
                Some('c') => argument.push_str(self.localized_name.as_ref().unwrap_or(&self.name)),
                Some('k') => argument.push_str(&self.path.to_string_lossy()),
                Some('d' | 'D' | 'n' | 'N' | 'v' | 'm' | 'i') => {}
                Some('F' | 'U') => return Err("%F or %U within an argument"),
                _ => return Err("unknown field code"),
            }
        }
        into.push(argument);
        Ok(())
    }
}

/// The keys of `[Desktop Entry]`; the first of two equal ones counts.
fn main_group(text: &str) -> Option<HashMap<&str, &str>> {
    let mut keys = HashMap::new();
    let mut in_group = false;
    let mut is_found = false;
    for line in text.trim_start_matches('\u{feff}').lines() {
        let line = line.trim();
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            in_group = group == "Desktop Entry" && !is_found;
            is_found |= in_group;
        } else if in_group && let Some((key, value)) = line.split_once('=') {
            keys.entry(key.trim_end()).or_insert(value.trim_start());
        }
    }
    is_found.then_some(keys)
}

/// The escapes of values of type string: `\s`, `\n`, `\t`, `\r`, `\\`. Others stay as they are.
fn unescape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('s') => text.push(' '),
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('\\') | None => text.push('\\'),
            Some(other) => text.extend(['\\', other]),
        }
    }
    text
}

/// The suffixes to look for, best first: `lang_COUNTRY@MODIFIER`, `lang_COUNTRY`, `lang@MODIFIER`, `lang`.
fn locale_suffixes(locale: &str) -> Vec<String> {
    let (rest, modifier) = locale.split_once('@').map_or((locale, None), |(rest, tail)| (rest, Some(tail)));
    let rest = rest.split('.').next().unwrap_or_default();
    let (language, country) =
        rest.split_once('_').map_or((rest, None), |(language, country)| (language, Some(country)));
    if language.is_empty() || matches!(language, "C" | "POSIX") {
        return Vec::new();
    }
    let mut suffixes = Vec::new();
    for country in country.map(Some).into_iter().chain([None]) {
        let base = country.map_or_else(|| language.to_owned(), |country| format!("{language}_{country}"));
        suffixes.extend(modifier.map(|modifier| format!("{base}@{modifier}")));
        suffixes.push(base);
    }
    suffixes
}

fn user_locale() -> String {
    ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_default()
}

/// Splits `Exec`: words between spaces; a double-quoted word may hold anything, with `\` before `"`, `` ` ``, `$`, `\`.
fn split_command(command: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut characters = command.chars().peekable();
    loop {
        while characters.next_if(|character| matches!(character, ' ' | '\t' | '\n')).is_some() {}
        if characters.peek().is_none() {
            return Ok(words);
        }
        let mut word = String::new();
        // The rules want whole words quoted; files in the wild quote parts (--class="x"), as shells allow.
        while let Some(character) = characters.next_if(|character| !matches!(character, ' ' | '\t' | '\n')) {
            match character {
                '"' => read_quoted(&mut characters, &mut word)?,
                '\\' => word.push(characters.next().ok_or("a backslash at the end")?),
                other => word.push(other),
            }
        }
        words.push(word);
    }
}

fn read_quoted(characters: &mut impl Iterator<Item = char>, text: &mut String) -> Result<(), &'static str> {
    loop {
        match characters.next().ok_or("a quote that does not end")? {
            '"' => return Ok(()),
            '\\' => match characters.next().ok_or("a quote that does not end")? {
                escaped @ ('"' | '`' | '$' | '\\') => text.push(escaped),
                other => text.extend(['\\', other]),
            },
            other => text.push(other),
        }
    }
}

/// The `applications` folders, the one that wins first.
pub fn application_folders() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    folders(env::var_os("XDG_DATA_HOME"), env::var_os("XDG_DATA_DIRS"), home.as_deref())
}

fn folders(data_home: Option<OsString>, data_dirs: Option<OsString>, home: Option<&Path>) -> Vec<PathBuf> {
    let given = |value: Option<OsString>| value.filter(|value| !value.is_empty());
    let own = given(data_home).map(PathBuf::from).or_else(|| home.map(|home| home.join(".local/share")));
    let shared = given(data_dirs).unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    let mut seen = HashSet::new();
    own.into_iter()
        .chain(env::split_paths(&shared))
        // The base directory rules say that relative paths are to be ignored.
        .filter(|path| path.is_absolute() && seen.insert(path.clone()))
        .map(|path| path.join("applications"))
        .collect()
}

/// Every application that is not hidden, in order of its folder. The first entry with an id hides later ones.
///
/// Reads all files: 5 to 20 ms with some hundred applications.
pub fn all() -> Vec<DesktopEntry> {
    all_in(&application_folders())
}

fn all_in(folders: &[PathBuf]) -> Vec<DesktopEntry> {
    let mut seen = HashSet::new();
    let mut entries = Vec::new();
    for folder in folders {
        let mut files = Vec::new();
        collect(folder, "", 0, &mut files);
        files.sort();
        for (id, path) in files {
            // A broken file hides nothing.
            let Ok(entry) = DesktopEntry::read(&path, &id) else { continue };
            if seen.insert(id) && !entry.is_hidden {
                entries.push(entry);
            }
        }
    }
    entries
}

fn collect(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = entry.path();
        if let Some(stem) = name.strip_suffix(".desktop") {
            files.push((format!("{prefix}{stem}"), path));
        } else if depth < MAXIMUM_DEPTH && path.is_dir() {
            collect(&path, &format!("{prefix}{name}-"), depth + 1, files);
        }
    }
}

/// The applications that `name` means: by id (with or without `.desktop`), else by exact name in either language, without
/// regard to case, else by the last part of a dotted id (`gedit` for `org.gnome.gedit`).
///
/// The first of these ways that finds something decides. Several results are several applications of one name; the caller
/// asks which. Applications whose `TryExec` is missing are left out.
pub fn find(name: &str) -> Vec<DesktopEntry> {
    find_among(name, all().into_iter().filter(DesktopEntry::is_installed).collect())
}

fn find_among(name: &str, entries: Vec<DesktopEntry>) -> Vec<DesktopEntry> {
    let id = name.strip_suffix(".desktop").unwrap_or(name);
    let wanted = name.to_lowercase();
    let same = |text: &str| text.to_lowercase() == wanted;
    let ways: [&dyn Fn(&DesktopEntry) -> bool; 4] = [
        &|entry| entry.id == id,
        &|entry| entry.id.to_lowercase() == id.to_lowercase(),
        &|entry| same(&entry.name) || entry.localized_name.as_deref().is_some_and(same),
        &|entry| entry.id.rsplit_once('.').is_some_and(|(_, last)| same(last)),
    ];
    let Some(way) = ways.iter().find(|way| entries.iter().any(way)) else {
        return Vec::new();
    };
    entries.into_iter().filter(|entry| way(entry)).collect()
}

/// The file of a program: an absolute path that can be executed, or a bare name in `PATH`.
pub fn find_program(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        return (path.is_absolute() && is_executable(&path)).then_some(path);
    }
    if program.is_empty() {
        return None;
    }
    let search = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    env::split_paths(&search).map(|folder| folder.join(program)).find(|path| is_executable(path))
}

/// Whether we may execute a file.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDITOR: &str = "# comment\n\n[Desktop Entry]\nType=Application\nName=Text Editor\nName[de]=Texteditor\n\
        Name[de_AT]=Schreiber\nGenericName = Editor\nIcon=edit\nExec=gedit --name \"a b\" %U\nTerminal=false\n\
        DBusActivatable=true\nNoDisplay=true\nPath=/tmp\\sx\nStartupWMClass=Gedit\nName=Second\n\
        [Desktop Action new]\nName=New Window\nExec=gedit --new\n";

    fn entry(text: &str, locale: &str) -> Result<DesktopEntry, EntryError> {
        DesktopEntry::parse(text, "org.gnome.gedit", Path::new("/x/org.gnome.gedit.desktop"), locale)
    }

    #[test]
    fn reads_the_main_group_only() {
        let entry = entry(EDITOR, "C").unwrap();
        assert_eq!(entry.name, "Text Editor");
        assert_eq!(entry.localized_name, None);
        assert_eq!(entry.generic_name.as_deref(), Some("Editor"));
        assert_eq!(entry.working_directory, Some("/tmp x".into()));
        assert_eq!(entry.window_class.as_deref(), Some("Gedit"));
        assert!(entry.is_bus_activatable && entry.is_not_displayed && !entry.needs_terminal);
    }

    #[test]
    fn picks_the_nearest_language() {
        let name = |locale| entry(EDITOR, locale).unwrap().localized_name;
        assert_eq!(name("de_AT.UTF-8@euro").as_deref(), Some("Schreiber"));
        assert_eq!(name("de_DE.UTF-8").as_deref(), Some("Texteditor"));
        assert_eq!(name("fr_FR"), None);
        assert_eq!(locale_suffixes("sr_RS.UTF-8@latin"), ["sr_RS@latin", "sr_RS", "sr@latin", "sr"]);
        assert!(locale_suffixes("C.UTF-8").is_empty() && locale_suffixes("").is_empty());
    }

    #[test]
    fn what_is_no_application_is_said() {
        assert_eq!(
            entry("Name=x\n", "").unwrap_err(),
            EntryError::Malformed { what: "the group [Desktop Entry]" }
        );
        let link = "[Desktop Entry]\nType=Link\nName=x\n";
        assert_eq!(entry(link, "").unwrap_err(), EntryError::NotAnApplication { kind: "Link".to_owned() });
        let nameless = "[Desktop Entry]\nType=Application\n";
        assert_eq!(entry(nameless, "").unwrap_err(), EntryError::Malformed { what: "Name" });
        assert!(entry("[Desktop Entry]\nHidden=true\n", "").unwrap().is_hidden);
    }

    #[track_caller]
    fn expanded(command: &str, targets: &[&str]) -> Result<Vec<String>, EntryError> {
        let text = format!("[Desktop Entry]\nType=Application\nName=N\nIcon=i\nExec={command}\n");
        let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
        entry(&text, "").unwrap().arguments(&targets)
    }

    #[test]
    fn field_codes() {
        assert_eq!(expanded("a %U", &[]).unwrap(), ["a"]);
        assert_eq!(expanded("a %F x", &["1", "2"]).unwrap(), ["a", "1", "2", "x"]);
        assert_eq!(expanded("a \"%F\"", &["1", "2"]).unwrap(), ["a", "1", "2"]);
        assert_eq!(expanded("a %f", &["1", "2"]).unwrap(), ["a", "1"]);
        assert_eq!(expanded("a --file=%f", &["1"]).unwrap(), ["a", "--file=1"]);
        assert_eq!(
            expanded("a %i %c %k", &[]).unwrap(),
            ["a", "--icon", "i", "N", "/x/org.gnome.gedit.desktop"]
        );
        assert_eq!(expanded("a 100%% %m", &[]).unwrap(), ["a", "100%"]);
        assert!(matches!(expanded("a %z", &[]), Err(EntryError::BadCommand { .. })));
        assert!(matches!(expanded("a x%F", &[]), Err(EntryError::BadCommand { .. })));
    }

    #[test]
    fn quotes_and_both_levels_of_escapes() {
        // In the file a backslash inside quotes is doubled: first the value is unescaped, then the quote.
        assert_eq!(expanded(r#"a "b \\"c\\" \\$d" e"#, &[]).unwrap(), ["a", r#"b "c" $d"#, "e"]);
        assert_eq!(expanded(r#""/opt/my app/run" --x="y z""#, &[]).unwrap(), ["/opt/my app/run", "--x=y z"]);
        assert_eq!(expanded(r#"sh -c "echo %%""#, &[]).unwrap(), ["sh", "-c", "echo %"]);
        assert_eq!(expanded(r#"a "" b"#, &[]).unwrap(), ["a", "", "b"]);
        assert!(matches!(expanded(r#"a "b"#, &[]), Err(EntryError::BadCommand { .. })));
        assert!(matches!(expanded("%U", &[]), Err(EntryError::BadCommand { .. })));
        let silent = "[Desktop Entry]\nType=Application\nName=N\n";
        assert_eq!(entry(silent, "").unwrap().arguments(&[]), Err(EntryError::NoCommand));
    }

    #[test]
    fn folders_follow_the_base_directory_rules() {
        let home = Path::new("/home/u");
        assert_eq!(
            folders(None, None, Some(home)),
            ["/home/u/.local/share", "/usr/local/share", "/usr/share"]
                .map(|folder| Path::new(folder).join("applications"))
        );
        let given = folders(Some("/d".into()), Some("/e:relative:/d:/f".into()), None);
        assert_eq!(given, ["/d", "/e", "/f"].map(|folder| Path::new(folder).join("applications")));
    }

    #[test]
    fn nearer_folders_win_and_nested_ones_join_the_id() {
        let root = env::temp_dir().join(format!("agent-desktop-entries-{}", std::process::id()));
        let (own, shared) = (root.join("own"), root.join("shared"));
        fs::create_dir_all(shared.join("kde")).unwrap();
        fs::create_dir_all(&own).unwrap();
        let app = |name: &str| format!("[Desktop Entry]\nType=Application\nName={name}\nExec=true\n");
        fs::write(shared.join("a.desktop"), app("Shared A")).unwrap();
        fs::write(shared.join("b.desktop"), app("B")).unwrap();
        fs::write(shared.join("kde/org.x.C.desktop"), app("b")).unwrap();
        fs::write(own.join("a.desktop"), app("Own A")).unwrap();
        fs::write(own.join("broken.desktop"), "x").unwrap();
        let entries = all_in(&[own.clone(), shared.clone()]);
        let names: Vec<_> = entries.iter().map(|entry| (entry.id.as_str(), entry.name.as_str())).collect();
        assert_eq!(names, [("a", "Own A"), ("b", "B"), ("kde-org.x.C", "b")]);
        let ids = |name: &str| -> Vec<String> {
            find_among(name, entries.clone()).into_iter().map(|entry| entry.id).collect()
        };
        assert_eq!(ids("b.desktop"), ["b"]);
        assert_eq!(ids("own a"), ["a"]);
        assert_eq!(ids("c"), ["kde-org.x.C"]);
        assert!(ids("nothing").is_empty());
        // Hiding it in the user's own folder deletes it, though the shared one is still there.
        fs::write(own.join("b.desktop"), "[Desktop Entry]\nHidden=true\n").unwrap();
        let entries = all_in(&[own, shared]);
        assert_eq!(entries.len(), 2);
        fs::remove_dir_all(root).unwrap();
    }
}
