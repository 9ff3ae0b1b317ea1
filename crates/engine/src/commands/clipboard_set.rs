//! `clipboard-set`: copy something.

use std::path::PathBuf;

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Fact, Result};
use agent_desktop_core::platform::{ClipboardContent, ClipboardForm};
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::clipboard;
use crate::context::{Context, Options};
use crate::output;
use crate::picture::MAX_PNG;

/// Put text, an image or files into the clipboard, where they stay until somebody copies something else.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields, default)]
pub struct ClipboardSet {
    /// The text; without it, an image and files, an empty one.
    #[cfg_attr(feature = "clap", arg(value_name = "TEXT", allow_hyphen_values = true))]
    pub text: Option<String>,
    /// Put this PNG file there.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PNG"))]
    pub image: Option<PathBuf>,
    /// Put this file there; may be given several times.
    #[cfg_attr(feature = "clap", arg(long = "file-url", value_name = "PATH"))]
    #[serde(alias = "file_urls")]
    pub file_url: Vec<PathBuf>,
    /// Give up after this many milliseconds [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    pub timeout_ms: Option<u64>,
}

/// What was put there, and read back.
#[derive(Clone, Debug, Serialize)]
pub struct ClipboardSetReply {
    ok: bool,
    r#type: &'static str,
}

impl Reply for ClipboardSetReply {
    fn outline(&self) -> Option<String> {
        Some(format!("{} copied", self.r#type))
    }
}

impl ClipboardSet {
    fn content(&self) -> Result<ClipboardContent> {
        let content = if !self.file_url.is_empty() {
            let addresses: Vec<Option<String>> =
                self.file_url.iter().map(|path| clipboard::address(path)).collect();
            let missing: Vec<Fact> = addresses
                .iter()
                .enumerate()
                .filter(|(_, address)| address.is_none())
                .map(|(index, _)| index.into())
                .collect();
            if !missing.is_empty() {
                return Err(Error::invalid("some of the files are not there")
                    .detail("indexes", Fact::List(missing))
                    .delivery(Delivery::NotDelivered));
            }
            ClipboardContent::Files(addresses.into_iter().flatten().collect())
        } else if let Some(image) = &self.image {
            ClipboardContent::Image(output::read(image, MAX_PNG)?)
        } else {
            ClipboardContent::Text(self.text.clone().unwrap_or_default())
        };
        clipboard::check(&content)?;
        Ok(content)
    }
}

impl Run for ClipboardSet {
    type Reply = ClipboardSetReply;

    fn check(&self, _: &Options) -> Result<()> {
        self.content().map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<ClipboardSetReply> {
        let copied = self.content()?;
        let form = match copied {
            ClipboardContent::Text(_) => ClipboardForm::Text,
            ClipboardContent::Files(_) => ClipboardForm::Files,
            ClipboardContent::Image(_) => ClipboardForm::Image,
        };
        let _lease = context.take_lease()?;
        context.begin_delivery();
        context.platform.clipboard_write(Some(&copied), context.deadline)?;
        let now = context
            .platform
            .clipboard_read(form, clipboard::most_bytes(form), context.deadline)
            .map_err(|error| error.redelivered(Delivery::Unverified))?;
        if now.as_ref() != Some(&copied) {
            return Err(Error::new(ErrorCode::ActionFailed, "the clipboard does not hold what was put there")
                .hint("another program may have copied something at the same moment")
                .delivery(Delivery::Unverified));
        }
        Ok(ClipboardSetReply { ok: true, r#type: clipboard::word(form) })
    }
}
