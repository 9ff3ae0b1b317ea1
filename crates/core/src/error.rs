//! Errors: what went wrong, in a form a program can branch on.
//!
//! One [`Error`] for every layer. `code`, `delivery` and the `kind` among the details are the contract; `message` and
//! `hint` are for people and models and may change at any time. A message names the thing, the cause and the value, but
//! never text that the caller passed in to be typed or matched.
//!
//! Where a text came from is part of its type. What is written in the program (`&'static str`) may be kept in traces;
//! what was put together when the program ran (`String`) may hold text from the screen, and is not.

use std::borrow::Cow;
use std::fmt;

use crate::delivery::Delivery;

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident $text:literal $delivery:ident),* $(,)?) => {
        /// The 16 error codes of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[doc = $doc])* $variant),* }

        impl ErrorCode {
            /// Every code, in the contract's order.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),*];

            /// The code as it stands in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $text),* }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(ErrorCode::$variant => concat!($($doc),*).trim_ascii()),* }
            }

            /// What a failure with this code says about delivery when no step said otherwise.
            pub const fn default_delivery(self) -> Delivery {
                match self { $(ErrorCode::$variant => Delivery::$delivery),* }
            }
        }
    };
}

codes! {
    /// A permission of the operating system is missing.
    PermDenied "PERM_DENIED" NotDelivered,
    /// There is no such element.
    ElementNotFound "ELEMENT_NOT_FOUND" NotDelivered,
    /// The application is not there.
    AppNotFound "APP_NOT_FOUND" NotDelivered,
    /// The window is not there.
    WindowNotFound "WINDOW_NOT_FOUND" NotDelivered,
    /// It was attempted and failed, or is blocked for the moment.
    ActionFailed "ACTION_FAILED" Unknown,
    /// The element or this system cannot do it.
    ActionNotSupported "ACTION_NOT_SUPPORTED" NotDelivered,
    /// The ref no longer identifies a living element.
    StaleRef "STALE_REF" NotDelivered,
    /// No such snapshot is stored.
    SnapshotNotFound "SNAPSHOT_NOT_FOUND" NotDelivered,
    /// Several candidates fit.
    AmbiguousTarget "AMBIGUOUS_TARGET" NotDelivered,
    /// The interaction policy forbids it; often `--headed` is missing.
    PolicyDenied "POLICY_DENIED" NotDelivered,
    /// The application does not answer, or its evidence is unstable.
    AppUnresponsive "APP_UNRESPONSIVE" NotDelivered,
    /// The operation does not exist on this system.
    PlatformNotSupported "PLATFORM_NOT_SUPPORTED" NotDelivered,
    /// The deadline was reached.
    Timeout "TIMEOUT" Unknown,
    /// The input is wrong.
    InvalidArgs "INVALID_ARGS" NotDelivered,
    /// No such notification.
    NotificationNotFound "NOTIFICATION_NOT_FOUND" NotDelivered,
    /// A bug, or the disk, or something nobody foresaw.
    Internal "INTERNAL" Unknown,
}

/// How a caller gets going again after a failure that delivered nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// What to do, a fixed word.
    pub strategy: &'static str,
    /// Whether refs have to be taken from a new snapshot first.
    pub requires_fresh_snapshot: bool,
    /// How long to wait before, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl ErrorCode {
    /// The recovery that goes with this code, if it has one.
    pub const fn recovery(self) -> Option<Recovery> {
        match self {
            ErrorCode::StaleRef | ErrorCode::SnapshotNotFound => Some(Recovery {
                strategy: "refresh_snapshot_then_retry_original",
                requires_fresh_snapshot: true,
                retry_after_ms: None,
            }),
            ErrorCode::PolicyDenied => Some(Recovery {
                strategy: "request_explicit_policy_then_retry_original",
                requires_fresh_snapshot: false,
                retry_after_ms: None,
            }),
            ErrorCode::AppUnresponsive => Some(Recovery {
                strategy: "inspect_state_then_retry_original",
                requires_fresh_snapshot: true,
                retry_after_ms: Some(250),
            }),
            _ => None,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A value among the details of an error. Becomes JSON at the envelope, and only there.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A word of ours, written in the program.
    Word(&'static str),
    /// Text from anywhere else: the screen, the caller, the system.
    Text(String),
    /// Several values.
    List(Vec<Fact>),
    /// Values by name.
    Map(Vec<(String, Fact)>),
}

impl From<bool> for Fact {
    fn from(value: bool) -> Fact {
        Fact::Bool(value)
    }
}
impl From<u64> for Fact {
    fn from(value: u64) -> Fact {
        Fact::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}
impl From<u32> for Fact {
    fn from(value: u32) -> Fact {
        Fact::Int(i64::from(value))
    }
}
impl From<i32> for Fact {
    fn from(value: i32) -> Fact {
        Fact::Int(i64::from(value))
    }
}
impl From<usize> for Fact {
    fn from(value: usize) -> Fact {
        Fact::from(value as u64)
    }
}
impl From<f64> for Fact {
    fn from(value: f64) -> Fact {
        Fact::Float(value)
    }
}
impl From<&'static str> for Fact {
    fn from(value: &'static str) -> Fact {
        Fact::Word(value)
    }
}
impl From<String> for Fact {
    fn from(value: String) -> Fact {
        Fact::Text(value)
    }
}
impl<T: Into<Fact>> From<Vec<T>> for Fact {
    fn from(values: Vec<T>) -> Fact {
        Fact::List(values.into_iter().map(Into::into).collect())
    }
}

/// A map of facts, for details inside details.
pub fn facts<const N: usize>(entries: [(&str, Fact); N]) -> Fact {
    Fact::Map(entries.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect())
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    code: ErrorCode,
    message: Cow<'static, str>,
    hint: Option<String>,
    delivery: Option<Delivery>,
    platform_detail: Option<String>,
    details: Vec<(String, Fact)>,
    retryable: bool,
}

/// Kinds of refusals that no flag of the caller changes.
const NOT_THE_CALLERS: [&str; 2] = ["policy_file", "policy_invalid"];

impl Error {
    /// An error with this code and message.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Error {
        Error {
            inner: Box::new(Inner {
                code,
                message: message.into(),
                hint: None,
                delivery: None,
                platform_detail: None,
                details: Vec::new(),
                retryable: false,
            }),
        }
    }

    /// Bad input.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode::InvalidArgs, message)
    }

    /// A bug or an input/output failure; says nothing about delivery.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorCode::Internal, message)
    }

    /// Adds what the caller can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.inner.hint = Some(hint.into());
        self
    }

    /// Adds a detail; a second one of the same name replaces the first.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Fact>) -> Error {
        let value = value.into();
        match self.inner.details.iter_mut().find(|(key, _)| key == name) {
            Some(entry) => entry.1 = value,
            None => self.inner.details.push((name.to_owned(), value)),
        }
        self
    }

    /// Adds `details.kind`, the word that programs branch on.
    #[must_use]
    pub fn kind(self, kind: &'static str) -> Error {
        self.detail("kind", kind)
    }

    /// Marks the failure as a passing one, which waits may poll over.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Error {
        self.inner.retryable = retryable;
        self.detail("retryable", retryable)
    }

    /// Says what reached the application. The first statement stands: it was made closest to the fact.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Error {
        self.inner.delivery.get_or_insert(delivery);
        self
    }

    /// Says what reached the application, replacing what was said before: for the layer that knows the whole chain.
    #[must_use]
    pub fn redelivered(mut self, delivery: Delivery) -> Error {
        self.inner.delivery = Some(delivery);
        self
    }

    /// Adds the native cause: a D-Bus error name, an HRESULT, an errno.
    #[must_use]
    pub fn platform_detail(mut self, detail: impl Into<String>) -> Error {
        self.inner.platform_detail = Some(detail.into());
        self
    }

    /// The code.
    pub fn code(&self) -> ErrorCode {
        self.inner.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The message, if it is one of those that are written in the program and so can hold no text from the screen.
    pub fn own_message(&self) -> Option<&'static str> {
        match self.inner.message {
            Cow::Borrowed(message) => Some(message),
            Cow::Owned(_) => None,
        }
    }

    /// The message as a detail of another error.
    pub fn message_fact(&self) -> Fact {
        match &self.inner.message {
            Cow::Borrowed(message) => Fact::Word(message),
            Cow::Owned(message) => Fact::Text(message.clone()),
        }
    }

    /// What the caller can do about it.
    pub fn get_hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// The native cause.
    pub fn get_platform_detail(&self) -> Option<&str> {
        self.inner.platform_detail.as_deref()
    }

    /// The details, in the order in which they were added.
    pub fn details(&self) -> &[(String, Fact)] {
        &self.inner.details
    }

    /// The detail `kind`, or an empty string.
    pub fn get_kind(&self) -> &'static str {
        match self.inner.details.iter().find(|(name, _)| name == "kind") {
            Some((_, Fact::Word(kind))) => kind,
            _ => "",
        }
    }

    /// Whether waits may poll over it.
    pub fn is_retryable(&self) -> bool {
        self.inner.retryable
    }

    /// What reached the application: as stamped, else the code's default.
    pub fn get_delivery(&self) -> Delivery {
        self.inner.delivery.unwrap_or_else(|| self.inner.code.default_delivery())
    }

    /// Whether a layer has already said what reached the application.
    pub fn is_stamped(&self) -> bool {
        self.inner.delivery.is_some()
    }

    /// The recovery, which exists only where a retry is safe and no rule of a file stands against it.
    pub fn recovery(&self) -> Option<Recovery> {
        let is_final = NOT_THE_CALLERS.contains(&self.get_kind());
        if self.get_delivery().retry() == "safe" && !is_final { self.inner.code.recovery() } else { None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.inner.code, self.inner.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_codes() {
        assert_eq!(ErrorCode::ALL.len(), 16);
    }

    #[test]
    fn recovery_is_offered_only_where_a_retry_is_safe() {
        let stale = Error::new(ErrorCode::StaleRef, "gone");
        assert_eq!(stale.recovery().map(|recovery| recovery.requires_fresh_snapshot), Some(true));
        assert_eq!(stale.delivery(Delivery::Unverified).recovery(), None);
    }

    #[test]
    fn what_a_policy_file_denies_is_not_offered_for_a_retry() {
        let denied = || Error::new(ErrorCode::PolicyDenied, "no");
        assert!(denied().recovery().is_some());
        assert_eq!(denied().kind("policy_file").recovery(), None);
        assert_eq!(denied().kind("policy_invalid").recovery(), None);
    }

    #[test]
    fn the_first_statement_about_delivery_stands() {
        let error = Error::new(ErrorCode::Timeout, "late").delivery(Delivery::Uncertain);
        assert_eq!(error.delivery(Delivery::NotDelivered).get_delivery(), Delivery::Uncertain);
    }

    #[test]
    fn only_what_is_written_in_the_program_is_our_own() {
        assert_eq!(Error::invalid("x is wrong").own_message(), Some("x is wrong"));
        assert_eq!(Error::invalid(format!("{} is wrong", "x")).own_message(), None);
        assert_eq!(Fact::from("removed"), Fact::Word("removed"));
        assert_eq!(Fact::from("Inbox".to_owned()), Fact::Text("Inbox".to_owned()));
    }

    #[test]
    fn a_repeated_detail_replaces_the_earlier() {
        let error = Error::invalid("x").kind("a").kind("b");
        assert_eq!(error.get_kind(), "b");
        assert_eq!(error.details().len(), 1);
    }
}
