//! What the commands that act on a ref share.

use agent_desktop_core::error::{Error, Result};

/// A command with nothing but a ref.
macro_rules! ref_action {
    ($(#[$doc:meta])* $type:ident, $action:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, serde::Deserialize)]
        #[cfg_attr(feature = "clap", derive(clap::Args))]
        #[serde(deny_unknown_fields)]
        pub struct $type {
            /// Ref from a snapshot, such as @sq4m2:e14.
            #[cfg_attr(feature = "clap", arg(value_name = "REF"))]
            pub ref_id: String,
            /// Snapshot of a ref that does not name its own.
            #[cfg_attr(feature = "clap", arg(long, value_name = "ID"))]
            #[serde(default, alias = "snapshot_id")]
            pub snapshot: Option<String>,
            /// Wait this many milliseconds for the element to be ready; 0: one attempt [default: 5000].
            #[cfg_attr(feature = "clap", arg(long, value_name = "MS"))]
            #[serde(default)]
            pub timeout_ms: Option<u64>,
        }

        impl super::Run for $type {
            type Reply = crate::wait_for::Answer<crate::action_reply::ActionReply>;

            fn check(&self, _: &crate::context::Options) -> agent_desktop_core::error::Result<()> {
                agent_desktop_core::refs::RefTarget::parse(&self.ref_id, self.snapshot.as_deref()).map(|_| ())
            }

            fn run(&self, context: &crate::context::Context<'_>) -> agent_desktop_core::error::Result<Self::Reply> {
                let request = crate::act::Request::Plain($action);
                let snapshot = self.snapshot.as_deref();
                let reply = crate::act::run(context, &self.ref_id, snapshot, request)?;
                crate::wait_for::after_ref(context, reply, &self.ref_id, snapshot)
            }
        }
    };
}

pub(super) use ref_action;

/// Refuses text that no interface can carry.
///
/// # Errors
/// `INVALID_ARGS`.
pub(super) fn check_text(text: &str, limit: usize) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::invalid("the text contains a NUL character"));
    }
    let count = text.chars().count();
    if count > limit {
        return Err(Error::invalid(format!(
            "the text has {count} characters; at most {limit} are taken at once"
        )));
    }
    Ok(())
}
