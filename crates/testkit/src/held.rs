//! What is held down, by the X server's own word: `QueryKeymap` and `QueryPointer`.

use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::ConnectionExt as _;

use crate::Desktop;

/// Keys and buttons that are down, whoever pressed them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// Keycodes.
    pub keys: Vec<u8>,
    /// Buttons, locks and modifiers in effect, as in the state of an event.
    pub state: u16,
}

impl Held {
    /// Whether a key or a button is down, or a modifier in effect.
    pub fn is_nothing(&self) -> bool {
        *self == Held::default()
    }
}

impl Desktop {
    /// What is down now.
    #[track_caller]
    pub fn held(&self) -> Held {
        let (server, screen) = x11rb::connect(None).expect("the display can be reached");
        let root = server.setup().roots[screen].root;
        let keys = server.query_keymap().expect("it is connected").reply().expect("it answers").keys;
        let pointer = server.query_pointer(root).expect("it is connected").reply().expect("it answers");
        let is_down = |code: &u8| keys[usize::from(code / 8)] & (1 << (code % 8)) != 0;
        Held { keys: (0..=u8::MAX).filter(is_down).collect(), state: u16::from(pointer.mask) }
    }
}
