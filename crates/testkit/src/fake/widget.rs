//! What a scripted window is made of.

use std::rc::Rc;
use std::time::Duration;

use agent_desktop_core::action::{Capabilities, Capability};
use agent_desktop_core::error::Error;
use agent_desktop_core::geometry::Rect;
use agent_desktop_core::role::Role;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::{Gaps, Handle, NativeId, NativeIdKind, Node, NumericValue};

use super::world::World;

/// What comes of an operation on a widget, or of physical input.
#[derive(Clone, Debug, Default)]
pub enum Effect {
    /// It is done, and said to be done.
    #[default]
    Works,
    /// It is said to be done, and nothing happens.
    Nothing,
    /// It is said to be done, and happens so much later.
    Late(Duration),
    /// It is done, and said to be refused.
    Denied,
    /// It is refused, and nothing happens.
    Refused,
    /// The widget turns out not to offer it.
    NotOffered,
    /// Text and numbers become this instead of what was asked for; it is said to be done.
    Mangled(String),
    /// The call fails with this; nothing happens.
    Fails(Error),
    /// It is done, and the answer never comes: the call ends at its deadline.
    ReplyLost,
    /// The application ends on it, and the answer never comes.
    Kills,
}

/// A change of the world that a script makes.
pub(crate) type Change = Rc<dyn Fn(&mut World)>;

/// A widget: facts, behaviour, children.
///
/// Where nothing is said, a widget has the place that a plain layout gives it, one row after the other, so that
/// everything can be seen and hit.
#[derive(Clone)]
pub struct Widget {
    pub(crate) node: Node,
    pub(crate) handle: Option<String>,
    pub(crate) has_place: bool,
    pub(crate) effect: Effect,
    pub(crate) on_activate: Option<Change>,
    pub(crate) menu: Vec<Widget>,
    pub(crate) virtual_total: Option<u32>,
    pub(crate) children: Vec<Widget>,
}

impl Widget {
    /// A widget of this role, offering nothing. An empty name is none.
    pub fn new(role: Role, name: &str) -> Widget {
        let name = (!name.is_empty()).then(|| name.to_owned());
        Widget {
            node: Node { name, ..Node::new(role, Handle::new("")) },
            handle: None,
            has_place: true,
            effect: Effect::Works,
            on_activate: None,
            menu: Vec::new(),
            virtual_total: None,
            children: Vec::new(),
        }
    }

    /// With its handle: how the accessibility interface finds it. Otherwise one is made up.
    #[must_use]
    pub fn handle(mut self, handle: &str) -> Widget {
        self.handle = Some(handle.to_owned());
        self
    }

    /// With these children.
    #[must_use]
    pub fn children(mut self, children: impl IntoIterator<Item = Widget>) -> Widget {
        self.children.extend(children);
        self
    }

    /// With this value.
    #[must_use]
    pub fn value(mut self, value: &str) -> Widget {
        self.node.text_length = Some(value.chars().count() as u32);
        self.node.value = Some(value.to_owned());
        self
    }

    /// With this description.
    #[must_use]
    pub fn description(mut self, description: &str) -> Widget {
        self.node.description = Some(description.to_owned());
        self
    }

    /// With an identifier that its author chose.
    #[must_use]
    pub fn id(mut self, id: &str) -> Widget {
        self.node.native_id = Some(NativeId { kind: NativeIdKind::AutomationId, value: id.to_owned() });
        self
    }

    /// With a number between two others; its value is the number.
    #[must_use]
    pub fn number(mut self, current: f64, minimum: f64, maximum: f64, step: f64) -> Widget {
        self.node.value = Some(current.to_string());
        self.node.number = Some(NumericValue { current, minimum, maximum, step });
        self
    }

    /// Also in this state.
    #[must_use]
    pub fn state(mut self, state: State) -> Widget {
        self.node.states.insert(state);
        self
    }

    /// Also offering this.
    #[must_use]
    pub fn can(mut self, capability: Capability) -> Widget {
        self.node.capabilities.insert(capability);
        self
    }

    /// Offering nothing, whatever its role usually offers.
    #[must_use]
    pub fn inert(mut self) -> Widget {
        self.node.capabilities = Capabilities::NONE;
        self
    }

    /// At this place: x, y, width, height on the desktop.
    #[must_use]
    pub fn at(mut self, x: i32, y: i32, width: i32, height: i32) -> Widget {
        self.node.bounds = Some(Rect::from_pixels(x, y, width, height));
        self
    }

    /// Without a place.
    #[must_use]
    pub fn nowhere(mut self) -> Widget {
        self.has_place = false;
        self
    }

    /// Facts that cannot be read of it.
    #[must_use]
    pub fn unreadable(mut self, gaps: Gaps) -> Widget {
        self.node.gaps = gaps;
        self
    }

    /// In a web page.
    #[must_use]
    pub fn web(mut self) -> Widget {
        self.node.is_web = true;
        self
    }

    /// A table or list that makes its items on demand: it has so many, of which its children are in view.
    #[must_use]
    pub fn virtual_total(mut self, total: u32) -> Widget {
        self.virtual_total = Some(total);
        self
    }

    /// What comes of operations on it.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Widget {
        self.effect = effect;
        self
    }

    /// What happens in the world when it is activated.
    #[must_use]
    pub fn on_activate(mut self, change: impl Fn(&mut World) + 'static) -> Widget {
        self.on_activate = Some(Rc::new(change));
        self
    }

    /// The items of its menu: the list of a combo box or a menu button, the context menu of others.
    #[must_use]
    pub fn menu(mut self, items: impl IntoIterator<Item = Widget>) -> Widget {
        self.menu.extend(items);
        if !matches!(self.node.role, Role::ComboBox | Role::MenuButton) {
            self.node.capabilities.insert(Capability::RightClick);
        }
        self
    }

    fn offering<const N: usize>(role: Role, name: &str, offers: [Capability; N]) -> Widget {
        let mut widget = Widget::new(role, name);
        widget.node.capabilities = offers.into_iter().collect();
        widget
    }
}

/// A button.
pub fn button(name: &str) -> Widget {
    Widget::offering(Role::Button, name, [Capability::Click, Capability::SetFocus])
}

/// A field for text.
pub fn textfield(name: &str) -> Widget {
    let offers = [Capability::SetValue, Capability::TypeText, Capability::SetFocus];
    Widget::offering(Role::TextField, name, offers)
}

/// A check box, not checked.
pub fn checkbox(name: &str) -> Widget {
    Widget::offering(Role::CheckBox, name, [Capability::Click, Capability::Toggle, Capability::SetFocus])
}

/// A radio button, not checked.
pub fn radiobutton(name: &str) -> Widget {
    Widget::offering(Role::RadioButton, name, [Capability::Click, Capability::Toggle, Capability::SetFocus])
}

/// A slider from 0 to 100.
pub fn slider(name: &str, current: f64) -> Widget {
    Widget::offering(Role::Slider, name, [Capability::SetValue, Capability::SetFocus])
        .number(current, 0.0, 100.0, 1.0)
}

/// A combo box with these items.
pub fn combobox(name: &str, items: &[&str]) -> Widget {
    let offers = [Capability::Expand, Capability::Collapse, Capability::Select, Capability::SetFocus];
    Widget::offering(Role::ComboBox, name, offers).menu(items.iter().map(|item| menuitem(item)))
}

/// A link.
pub fn link(name: &str) -> Widget {
    Widget::offering(Role::Link, name, [Capability::Click, Capability::SetFocus])
}

/// An item of a menu.
pub fn menuitem(name: &str) -> Widget {
    Widget::offering(Role::MenuItem, name, [Capability::Click])
}

/// A list that can be scrolled.
pub fn list(name: &str) -> Widget {
    Widget::offering(Role::List, name, [Capability::Scroll])
}

/// An item of a list.
pub fn option(name: &str) -> Widget {
    Widget::offering(Role::Option, name, [Capability::Select, Capability::Click, Capability::ScrollTo])
}

/// An item of a tree.
pub fn treeitem(name: &str) -> Widget {
    Widget::offering(Role::TreeItem, name, [Capability::Select, Capability::Expand, Capability::Collapse])
}

/// A group.
pub fn group(name: &str) -> Widget {
    Widget::new(Role::Group, name)
}

/// Text.
pub fn text(text: &str) -> Widget {
    Widget::new(Role::StaticText, text)
}

/// A dialog inside a window.
pub fn dialog(name: &str) -> Widget {
    Widget::new(Role::Dialog, name).state(State::Modal)
}
