//! What the clipboard commands share: limits, forms, addresses of files.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, ErrorCode, Result};
use agent_desktop_core::platform::{ClipboardContent, ClipboardForm};

use crate::context::Context;
use crate::picture::{MAX_PIXELS, MAX_PNG};
use crate::store::Store;

/// UTF-16 units of a text.
pub(crate) const MAX_TEXT: usize = 1_000_000;
/// Files.
pub(crate) const MAX_FILES: usize = 1024;
/// UTF-16 units of the address of a file.
pub(crate) const MAX_ADDRESS: usize = 16_384;
/// Age at which a picture that nobody asked to keep is removed.
pub(crate) const KEPT: Duration = Duration::from_secs(3600);
/// Folder of such pictures: in the session, and in the state root without one.
const SESSION_FOLDER: &str = "clipboard";
const ROOT_FOLDER: &str = "tmp";

/// The word of a form in replies.
pub(crate) const fn word(form: ClipboardForm) -> &'static str {
    match form {
        ClipboardForm::Text => "text",
        ClipboardForm::Files => "file_urls",
        ClipboardForm::Image => "image",
    }
}

/// Bytes of a form that are read at most.
pub(crate) const fn most_bytes(form: ClipboardForm) -> usize {
    match form {
        // At most three bytes a unit.
        ClipboardForm::Text | ClipboardForm::Files => 3 * MAX_TEXT,
        ClipboardForm::Image => MAX_PNG,
    }
}

/// Refuses what no clipboard command carries.
///
/// # Errors
/// `INVALID_ARGS`.
pub(crate) fn check(content: &ClipboardContent) -> Result<()> {
    let refuse = |what: String| Err(Error::invalid(what).delivery(Delivery::NotDelivered));
    match content {
        ClipboardContent::Text(text) => {
            let units = text.encode_utf16().count();
            if units > MAX_TEXT {
                return refuse(format!("the text has {units} UTF-16 units, at most {MAX_TEXT} are carried"));
            }
        }
        ClipboardContent::Files(files) => {
            if files.len() > MAX_FILES {
                return refuse(format!("{} files, at most {MAX_FILES} are carried", files.len()));
            }
            if files.iter().any(|file| file.len() > MAX_ADDRESS) {
                return refuse(format!("the address of a file is longer than {MAX_ADDRESS}"));
            }
        }
        ClipboardContent::Image(png) => {
            size(png)?;
        }
    }
    Ok(())
}

/// Width and height of a PNG file.
///
/// # Errors
/// `INVALID_ARGS` when it is none, or has too many pixels.
pub(crate) fn size(png: &[u8]) -> Result<(u32, u32)> {
    let refuse = |what: String| Error::invalid(what).delivery(Delivery::NotDelivered);
    if png.len() > MAX_PNG {
        return Err(refuse(format!("the picture has more than {MAX_PNG} bytes")));
    }
    let reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().map_err(|error| {
        refuse("the picture is no PNG file".to_owned()).platform_detail(error.to_string())
    })?;
    let info = reader.info();
    if u64::from(info.width) * u64::from(info.height) > MAX_PIXELS {
        return Err(refuse(format!("the picture has more than {MAX_PIXELS} pixels")));
    }
    Ok((info.width, info.height))
}

/// Reads one form, the same content from begin to end.
///
/// # Errors
/// `POLICY_DENIED` for what is marked as a secret, `APP_UNRESPONSIVE` when it changes all the time or its owner is silent.
pub(crate) fn read(
    context: &Context<'_>,
    wanted: &[ClipboardForm],
    allows_concealed: bool,
) -> Result<Option<ClipboardContent>> {
    for _ in 0..2 {
        let offer = context.platform.clipboard_offer(context.deadline)?;
        if offer.is_concealed && !allows_concealed {
            return Err(Error::new(
                ErrorCode::PolicyDenied,
                "what is in the clipboard is marked as a secret",
            )
            .kind("clipboard_concealed")
            .hint("a password manager put it there; add --allow-concealed if it may be read"));
        }
        let Some(form) = wanted.iter().copied().find(|form| offer.forms.contains(form)) else {
            return Ok(None);
        };
        let found = context.platform.clipboard_read(form, most_bytes(form), context.deadline)?;
        if context.platform.clipboard_offer(context.deadline)? == offer {
            return Ok(found);
        }
    }
    Err(Error::new(ErrorCode::AppUnresponsive, "the clipboard changed while it was read, twice")
        .kind("clipboard_changed")
        .retryable(true)
        .hint("read it again"))
}

/// Keeps a picture that nobody named a place for; gives its path. Those of earlier calls go after an hour.
///
/// # Errors
/// Those of the store.
pub(crate) fn keep(store: &Store, png: &[u8]) -> Result<String> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let missing = || Error::internal("a directory that was made is not there");
    let base = store.base(true)?.ok_or_else(missing)?;
    let name = if store.session().is_some() { SESSION_FOLDER } else { ROOT_FOLDER };
    let folder = base.child(name, true)?.ok_or_else(missing)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    for entry in folder.entries()? {
        let age = now.cast_signed() - folder.modified(&entry.name);
        if entry.name.starts_with("clipboard-") && age > KEPT.as_nanos().cast_signed() {
            let _ = folder.remove(&entry.name);
        }
    }
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = format!("clipboard-{}-{now}-{count}.png", std::process::id());
    folder.write(&name, png, &folder, false)?;
    Ok(folder.path().join(name).display().to_string())
}

/// The address of a file that is there.
pub(crate) fn address(path: &Path) -> Option<String> {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let path = std::path::absolute(path).ok()?;
    std::fs::symlink_metadata(&path).ok()?;
    let mut address = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    Some(address)
}

/// The path behind a `file://` address of this machine; other addresses stay as they are.
pub(crate) fn path(address: &str) -> String {
    let Some(rest) = address.strip_prefix("file://") else { return address.to_owned() };
    let rest = match rest.find('/') {
        Some(slash) if matches!(&rest[..slash], "" | "localhost") => &rest[slash..],
        _ => return address.to_owned(),
    };
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.as_bytes();
    while let Some((&first, behind)) = left.split_first() {
        let code = (first == b'%')
            .then(|| behind.get(..2))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        left = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_lead_back() {
        let scratch = crate::private_files::tests::Scratch::new("address");
        for name in ["plain", "a b", "ä%20ö", "🙂#?"] {
            let file = scratch.0.join(name);
            std::fs::write(&file, "x").unwrap();
            let address = address(&file).unwrap();
            assert!(address.is_ascii() && address.starts_with("file:///"), "{address}");
            assert_eq!(Path::new(&path(&address)), file);
        }
        assert_eq!(address(&scratch.0.join("nothing")), None);
        assert_eq!(path("file://localhost/a"), "/a");
        assert_eq!(path("file://elsewhere/a"), "file://elsewhere/a");
        assert_eq!(path("https://x/%20"), "https://x/%20");
        assert_eq!(path("file:///100%"), "/100%");
    }
}
