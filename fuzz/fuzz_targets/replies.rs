//! Bytes that claim to be a D-Bus message: read whatever they say they are, in every way that the reader of trees uses.

#![no_main]

use agent_desktop_linux::Message;
use libfuzzer_sys::fuzz_target;

const SIGNATURES: &[&str] = &[
    "a((so)(so)(so)iiassusau)",
    "a((so)(so)(so)a(so)assusau)",
    "a(so)",
    "a(sss)",
    "a(ua(so))",
    "a{ss}",
    "a{sv}",
    "(iiii)",
    "(so)",
    "as",
    "au",
    "v",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaav",
];

fuzz_target!(|data: &[u8]| {
    let Ok(message) = Message::parse(data.to_vec()) else { return };
    let own = message.signature().to_owned();
    for signature in SIGNATURES.iter().copied().chain([own.as_str()]) {
        let _ = message.reader().skip(signature);
    }
    let _ = message.reader().strings();
    let _ = message.reader().reference();
    if let Ok(mut body) = message.body("v") {
        let _ = body.signature().and_then(|_| body.string());
    }
});
