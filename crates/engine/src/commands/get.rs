//! `get`: one property of an element, read live.

use agent_desktop_core::action::Capability;
use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::outline::{self, LINE_TEXT};
use agent_desktop_core::refs::RefTarget;
use agent_desktop_core::state::State;
use agent_desktop_core::tree::Node;
use serde::{Deserialize, Serialize};

use super::{Reply, Run};
use crate::context::{Context, Options};
use crate::act;
use crate::resolve;
use crate::wire::Bounds;

/// Read one property of an element, as it is now.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// Ref from a snapshot, such as @sq4m2:e14.
    #[cfg_attr(feature = "clap", arg(value_name = "REF"))]
    pub ref_id: String,
    /// Snapshot of a ref that does not name its own.
    #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
    #[serde(default)]
    pub snapshot: Option<String>,
    /// text (its label), value, title, role, bounds, states, description, actions or native-id [default: text].
    #[cfg_attr(feature = "clap", arg(long, value_name = "PROPERTY"))]
    #[serde(default)]
    pub property: Option<String>,
    /// Give up after this many milliseconds; 0: one attempt [default: 5000].
    #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Property {
    Text,
    Value,
    Title,
    Role,
    Bounds,
    States,
    Description,
    Actions,
    NativeId,
}

const PROPERTIES: [(&str, Property); 9] = [
    ("text", Property::Text),
    ("value", Property::Value),
    ("title", Property::Title),
    ("role", Property::Role),
    ("bounds", Property::Bounds),
    ("states", Property::States),
    ("description", Property::Description),
    ("actions", Property::Actions),
    ("native-id", Property::NativeId),
];

impl Get {
    fn property(&self) -> Result<(&'static str, Property)> {
        let word = self.property.as_deref().unwrap_or("text");
        PROPERTIES.into_iter().find(|(name, _)| *name == word).ok_or_else(|| {
            let names: Vec<&str> = PROPERTIES.iter().map(|(name, _)| *name).collect();
            Error::invalid("there is no such property").hint(format!("properties: {}", names.join(", ")))
        })
    }
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum PropertyValue {
    Text(Option<String>),
    Bounds(Option<Bounds>),
    Words(Vec<&'static str>),
}

/// A property of an element.
#[derive(Clone, Debug, Serialize)]
pub struct GetReply {
    property: &'static str,
    #[serde(rename = "ref")]
    reference: String,
    value: PropertyValue,
}

impl Reply for GetReply {
    fn outline(&self) -> Option<String> {
        Some(match &self.value {
            PropertyValue::Text(Some(text)) => outline::quote(text, usize::MAX),
            PropertyValue::Bounds(Some(bounds)) => {
                format!("{},{} {}x{}", bounds.x, bounds.y, bounds.width, bounds.height)
            }
            PropertyValue::Words(words) if !words.is_empty() => words.join(" "),
            _ => format!("none: {}", outline::cut(self.property, LINE_TEXT)),
        })
    }
}

fn value_of(node: &Node, property: Property) -> PropertyValue {
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    // The platform never reads a secure field's value; should one slip through, it ends here.
    let value = filled(&node.value).filter(|_| !node.states.has(State::Secure));
    match property {
        Property::Text => {
            PropertyValue::Text(filled(&node.name).or(value).or_else(|| filled(&node.description)))
        }
        // An empty text is a value too.
        Property::Value => {
            PropertyValue::Text(node.value.clone().filter(|_| !node.states.has(State::Secure)))
        }
        Property::Title => PropertyValue::Text(filled(&node.name)),
        Property::Role => PropertyValue::Text(Some(node.role.as_str().to_owned())),
        Property::Bounds => PropertyValue::Bounds(node.bounds.map(Bounds::from)),
        Property::States => PropertyValue::Words(node.states.iter().map(State::as_str).collect()),
        Property::Description => PropertyValue::Text(filled(&node.description)),
        Property::Actions => PropertyValue::Words(node.capabilities.iter().map(Capability::as_str).collect()),
        Property::NativeId => PropertyValue::Text(node.native_id.as_ref().map(|id| id.value.clone())),
    }
}

impl Run for Get {
    type Reply = GetReply;

    fn check(&self, _: &Options) -> Result<()> {
        RefTarget::parse(&self.ref_id, self.snapshot.as_deref())?;
        self.property().map(|_| ())
    }

    fn run(&self, context: &Context<'_>) -> Result<GetReply> {
        let (name, property) = self.property()?;
        let stored = resolve::load(context, &self.ref_id, self.snapshot.as_deref())?;
        let node = resolve::resolve(context, &stored)?.node;
        let node = match property {
            Property::Value | Property::Text => act::complete(context, node)?,
            _ => node,
        };
        Ok(GetReply { property: name, reference: self.ref_id.clone(), value: value_of(&node, property) })
    }
}
