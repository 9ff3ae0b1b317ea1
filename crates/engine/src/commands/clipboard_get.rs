//! `clipboard-get`: what somebody copied.

use std::path::PathBuf;

use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::outline::{LINE_TEXT, quote};
use agent_desktop_core::platform::{ClipboardContent, ClipboardForm};
use serde::{Deserialize, Serialize};

use super::{Effects, Reply, Run};
use crate::clipboard;
use crate::context::{Context, Options};
use crate::output;

/// Show what is in the clipboard.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct ClipboardGet {
    /// text, image, file-urls, or auto (files, else an image, else text) [default: text].
    // The same name as the form of all results, which this command takes before its name only.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FORM"))]
    pub format: Option<String>,
    /// Write an image to this file instead of one of our own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PATH"))]
    pub out: Option<PathBuf>,
    /// Also show what a password manager marked as a secret.
    #[cfg_attr(feature = "clap", arg(long))]
    pub allow_concealed: bool,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// What was in the clipboard.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ClipboardGetReply {
    /// Text.
    Text {
        /// `text`.
        r#type: &'static str,
        /// It.
        text: String,
    },
    /// Files.
    Files {
        /// `file_urls`.
        r#type: &'static str,
        /// Their paths; addresses of other machines as they are.
        file_urls: Vec<String>,
    },
    /// A picture.
    Image {
        /// `image`.
        r#type: &'static str,
        /// Where it was written.
        path: String,
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
    },
    /// Nothing of that form.
    Nothing {
        /// As asked for.
        r#type: &'static str,
        /// Always false.
        found: bool,
    },
}

impl Reply for ClipboardGetReply {
    fn outline(&self) -> Option<String> {
        Some(match self {
            ClipboardGetReply::Text { text, .. } => text.clone(),
            ClipboardGetReply::Files { file_urls, .. } => {
                super::lines(file_urls.iter().map(|file| quote(file, LINE_TEXT)), "no files")
            }
            ClipboardGetReply::Image { path, width, height, .. } => format!("image {width}x{height} {path}"),
            ClipboardGetReply::Nothing { r#type, .. } => format!("no {type} in the clipboard"),
        })
    }
}

impl ClipboardGet {
    fn forms(&self) -> Result<(&'static str, &'static [ClipboardForm])> {
        use ClipboardForm::{Files, Image, Text};
        Ok(match self.format.as_deref().unwrap_or("text") {
            // The last two are the form of the result, given before the command.
            "text" | "plain_text" | "plaintext" | "json" | "outline" => ("text", &[Text]),
            "image" | "png" => ("image", &[Image]),
            "file-urls" | "file_urls" | "fileurls" => ("file_urls", &[Files]),
            "auto" => ("auto", &[Files, Image, Text]),
            _ => return Err(Error::invalid("the form is text, image, file-urls or auto")),
        })
    }
}

impl Run for ClipboardGet {
    type Reply = ClipboardGetReply;

    fn effects(&self, table: Effects) -> Effects {
        Effects { mutates: self.out.is_some(), ..table }
    }

    fn check(&self, _: &Options) -> Result<()> {
        self.forms()?;
        self.out.as_deref().map_or(Ok(()), output::check)
    }

    fn run(&self, context: &Context<'_>) -> Result<ClipboardGetReply> {
        let (asked, forms) = self.forms()?;
        let Some(found) = clipboard::read(context, forms, self.allow_concealed)? else {
            return Ok(ClipboardGetReply::Nothing { r#type: asked, found: false });
        };
        clipboard::check(&found)?;
        Ok(match found {
            ClipboardContent::Text(text) => {
                ClipboardGetReply::Text { r#type: clipboard::word(ClipboardForm::Text), text }
            }
            ClipboardContent::Files(files) => ClipboardGetReply::Files {
                r#type: clipboard::word(ClipboardForm::Files),
                file_urls: files.iter().map(|file| clipboard::path(file)).collect(),
            },
            ClipboardContent::Image(png) => {
                let (width, height) = clipboard::size(&png)?;
                let path = match &self.out {
                    Some(path) => {
                        output::write(path, &png)?;
                        path.display().to_string()
                    }
                    None => clipboard::keep(&context.store, &png)?,
                };
                ClipboardGetReply::Image { r#type: clipboard::word(ClipboardForm::Image), path, width, height }
            }
        })
    }
}
