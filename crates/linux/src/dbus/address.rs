//! Bus addresses: where to connect.
//!
//! Format: <https://dbus.freedesktop.org/doc/dbus-specification.html#addresses>. Only Unix sockets are dialled.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A place to dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A socket in the file system.
    Path(PathBuf),
    /// A socket in Linux's abstract name space.
    Abstract(Vec<u8>),
}

/// The Unix sockets among the entries of an address, in order.
pub(crate) fn transports(address: &str) -> Vec<Transport> {
    address.split(';').filter_map(transport).collect()
}

fn transport(entry: &str) -> Option<Transport> {
    let (scheme, rest) = entry.split_once(':')?;
    if scheme != "unix" {
        return None;
    }
    rest.split(',').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = unescape(value)?;
        match key {
            "path" => Some(Transport::Path(OsString::from_vec(value).into())),
            "abstract" => Some(Transport::Abstract(value)),
            _ => None,
        }
    })
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    Some(bytes)
}

/// Addresses of the session bus, best first: the environment's, then the login's.
pub(crate) fn session_bus_addresses(environment: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut addresses = Vec::new();
    addresses.extend(environment("DBUS_SESSION_BUS_ADDRESS").filter(|address| !address.is_empty()));
    if let Some(runtime) = environment("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        addresses.push(format!("unix:path={runtime}/bus"));
    }
    addresses.push(format!("unix:path=/run/user/{}/bus", rustix::process::geteuid().as_raw()));
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_entries_are_found_in_order_and_unescaped() {
        assert_eq!(
            transports("tcp:host=x;unix:path=/tmp/a%20b,guid=1;unix:abstract=/c"),
            [Transport::Path("/tmp/a b".into()), Transport::Abstract(b"/c".to_vec())]
        );
        assert_eq!(transports("unix:path=%zz"), []);
        assert_eq!(transports("nonsense"), []);
    }

    #[test]
    fn the_environment_comes_before_the_login() {
        let addresses = session_bus_addresses(&|name| (name == "XDG_RUNTIME_DIR").then(|| "/r".into()));
        assert_eq!(addresses[0], "unix:path=/r/bus");
    }
}
