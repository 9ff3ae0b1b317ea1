//! `skills`: guides for agents and for people, carried by the program, so that they always fit it.
//!
//! A skill is a Markdown file with a name and a description in front, as agents load it, and more files it refers to. The
//! texts are in `crates/engine/skills`; a test of the command line door parses every command line in them.

use std::fmt::Write as _;

use agent_desktop_core::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Reply, Run, action_of, lines};
use crate::context::Context;

#[cfg(feature = "clap")]
const EXAMPLE: &str = "\
Example:
  agent-desktop --format outline skills get agent-desktop
  agent-desktop --format outline skills get agent-desktop linux";

/// Show the guides that come with this program: how to use it, for agents and people.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(after_help = EXAMPLE, disable_help_subcommand = true))]
pub struct Skills {
    /// What to do; without it, list.
    #[cfg_attr(feature = "clap", command(subcommand))]
    pub action: Option<Action>,
}

/// What to do with guides.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
#[serde(tag = "action", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is documented at its type")]
pub enum Action {
    List(List),
    Get(Get),
    Path(Location),
}

/// List the skills, with what each is for.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct List {}

/// Show a skill, or one of its references.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// Name of the skill, or another name it goes by, as list shows them.
    #[cfg_attr(feature = "clap", arg(value_name = "NAME"))]
    pub name: String,
    /// Only this reference of it: its path or its bare name; case does not matter.
    #[cfg_attr(feature = "clap", arg(value_name = "REFERENCE", conflicts_with = "full"))]
    #[serde(default)]
    pub reference: Option<String>,
    /// Show all references behind it.
    #[cfg_attr(feature = "clap", arg(long))]
    #[serde(default)]
    pub full: bool,
}

/// Say where the skills are: in the program itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct Location {}

impl<'de> Deserialize<'de> for Skills {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Skills, D::Error> {
        action_of(deserializer, Some("list")).map(|action| Skills { action: Some(action) })
    }
}

/// A guide with what belongs to it.
#[derive(Debug)]
pub struct Skill {
    /// The name it is asked for by.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Its text, Markdown with a name and a description in front.
    pub text: &'static str,
    /// Paths and texts of what it refers to.
    pub references: &'static [(&'static str, &'static str)],
}

macro_rules! skill {
    ($name:literal, [$($alias:literal),*], [$($reference:literal),*]) => {
        Skill {
            name: $name,
            aliases: &[$($alias),*],
            text: include_str!(concat!("../../skills/", $name, "/SKILL.md")),
            references: &[$((
                concat!("references/", $reference, ".md"),
                include_str!(concat!("../../skills/", $name, "/references/", $reference, ".md")),
            )),*],
        }
    };
}

/// Every skill of this program.
pub const SKILLS: &[Skill] = &[
    skill!(
        "agent-desktop",
        ["desktop"],
        [
            "workflows",
            "text-and-dialogs",
            "linux",
            "commands-observation",
            "commands-interaction",
            "commands-system"
        ]
    ),
    skill!("testing", ["test", "tests"], []),
];

impl Skill {
    /// The sentences by which an agent decides whether it needs it.
    fn summary(&self) -> &'static str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("description: "));
        line.unwrap_or_default()
    }

    fn goes_by(&self, name: &str) -> bool {
        std::iter::once(&self.name).chain(self.aliases).any(|own| own.eq_ignore_ascii_case(name))
    }

    fn find(name: &str) -> Result<&'static Skill> {
        SKILLS.iter().find(|skill| skill.goes_by(name)).ok_or_else(|| {
            let names: Vec<&str> = SKILLS.iter().map(|skill| skill.name).collect();
            Error::invalid("there is no such skill").hint(format!("the skills are {}", names.join(", ")))
        })
    }

    fn reference(&self, name: &str) -> Result<(&'static str, &'static str)> {
        let stem = |path: &'static str| path.trim_start_matches("references/").trim_end_matches(".md");
        let found = self
            .references
            .iter()
            .find(|(path, _)| path.eq_ignore_ascii_case(name) || stem(path).eq_ignore_ascii_case(name));
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = self.references.iter().map(|(path, _)| stem(path)).collect();
            let hint = if names.is_empty() {
                format!("{} has none: leave it out", self.name)
            } else {
                format!("the references of {} are {}", self.name, names.join(", "))
            };
            Error::invalid("the skill has no such reference").hint(hint)
        })
    }
}

/// A skill, as it is listed.
#[derive(Clone, Debug, Serialize)]
pub struct SkillData {
    name: &'static str,
    aliases: &'static [&'static str],
    summary: &'static str,
    references: Vec<&'static str>,
}

/// What was asked for.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum SkillsReply {
    /// `list`.
    Listed {
        /// All of them.
        skills: Vec<SkillData>,
    },
    /// `get` without a reference.
    Skill {
        /// Its name.
        skill: &'static str,
        /// Whether the references are behind it.
        full: bool,
        /// The text.
        content: String,
    },
    /// `get` with a reference.
    Reference {
        /// The name of the skill.
        skill: &'static str,
        /// The path of the reference.
        reference: &'static str,
        /// The text.
        content: &'static str,
    },
    /// `path`.
    Location {
        /// `embedded`.
        location: &'static str,
        /// What that means.
        note: &'static str,
        /// Names of the skills.
        available: Vec<&'static str>,
    },
}

impl Reply for SkillsReply {
    fn outline(&self) -> Option<String> {
        Some(match self {
            SkillsReply::Listed { skills } => {
                lines(skills.iter().map(|skill| format!("{}: {}", skill.name, skill.summary)), "no skill")
            }
            SkillsReply::Skill { content, .. } => content.clone(),
            SkillsReply::Reference { content, .. } => (*content).to_owned(),
            SkillsReply::Location { note, available, .. } => format!("{note}: {}", available.join(", ")),
        })
    }
}

impl Run for Skills {
    type Reply = SkillsReply;

    fn run(&self, _context: &Context<'_>) -> Result<SkillsReply> {
        let list = Action::List(List {});
        match self.action.as_ref().unwrap_or(&list) {
            Action::List(_) => {
                let skills = SKILLS.iter().map(|skill| SkillData {
                    name: skill.name,
                    aliases: skill.aliases,
                    summary: skill.summary(),
                    references: skill.references.iter().map(|(path, _)| *path).collect(),
                });
                Ok(SkillsReply::Listed { skills: skills.collect() })
            }
            Action::Get(Get { name, reference: Some(reference), full }) => {
                if *full {
                    return Err(Error::invalid("a reference and all of them exclude each other"));
                }
                let skill = Skill::find(name)?;
                let (reference, content) = skill.reference(reference)?;
                Ok(SkillsReply::Reference { skill: skill.name, reference, content })
            }
            Action::Get(Get { name, reference: None, full }) => {
                let skill = Skill::find(name)?;
                let mut content = skill.text.to_owned();
                for (path, text) in skill.references.iter().filter(|_| *full) {
                    let _ = write!(content, "\n--- {path} ---\n\n{text}");
                }
                Ok(SkillsReply::Skill { skill: skill.name, full: *full, content })
            }
            Action::Path(_) => Ok(SkillsReply::Location {
                location: "embedded",
                note: "skills are part of the program; get prints them",
                available: SKILLS.iter().map(|skill| skill.name).collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skill_says_what_it_is_for_under_its_own_name() {
        for skill in SKILLS {
            let start = format!("---\nname: {}\ndescription: ", skill.name);
            assert!(skill.text.starts_with(&start), "{}", skill.name);
            assert!(skill.summary().contains("Use when"), "{}", skill.name);
            let twins = SKILLS.iter().filter(|other| {
                std::iter::once(&skill.name).chain(skill.aliases).any(|name| other.goes_by(name))
            });
            assert_eq!(twins.count(), 1, "{} shares a name", skill.name);
        }
    }

    /// A reader of the first page learns that there are others.
    #[test]
    fn every_reference_is_named_in_its_skill() {
        for skill in SKILLS {
            for (path, text) in skill.references {
                let stem = path.trim_start_matches("references/").trim_end_matches(".md");
                assert!(skill.text.contains(&format!("`{stem}`")), "{} does not name {stem}", skill.name);
                assert!(text.starts_with("# "), "{path} has no heading");
            }
        }
    }

    #[test]
    fn names_are_found_in_any_case_and_by_any_of_their_forms() {
        assert_eq!(Skill::find("DESKTOP").unwrap().name, "agent-desktop");
        let skill = Skill::find("agent-desktop").unwrap();
        for name in ["linux", "Linux", "references/linux.md", "REFERENCES/LINUX.MD"] {
            assert_eq!(skill.reference(name).unwrap().0, "references/linux.md", "{name}");
        }
        assert!(skill.reference("").is_err());
        assert!(Skill::find("").is_err());
    }
}
