//! The envelope: the one place where results and errors become JSON.
//!
//! Decided here: which keys there are and when. Not decided here: what is in `data` (each command's reply type) and
//! what went wrong ([`Error`]). A reply is serialised straight into the output text, however big its tree is.

use agent_desktop_core::delivery::Delivery;
use agent_desktop_core::error::{Error, Fact, Recovery};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

/// Version of the envelope. Raised when a client would need a new branch in its parser; fields are added without.
pub const VERSION: &str = "2.4";

#[derive(Serialize)]
struct Success<'a, T: Serialize + ?Sized> {
    version: &'static str,
    ok: bool,
    command: &'a str,
    data: &'a T,
}

#[derive(Serialize)]
struct Failure<'a> {
    version: &'static str,
    ok: bool,
    command: &'a str,
    error: ErrorBody<'a>,
}

/// What became of a delivery, and whether doing it again can do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Disposition {
    /// What reached the application.
    pub delivery: &'static str,
    /// `safe`, `unsafe` or `unknown`; follows from `delivery`.
    pub retry: &'static str,
}

impl From<Delivery> for Disposition {
    fn from(delivery: Delivery) -> Disposition {
        Disposition { delivery: delivery.as_str(), retry: delivery.retry() }
    }
}

#[derive(Serialize)]
struct RecoveryBody {
    strategy: &'static str,
    retryable: bool,
    requires_fresh_snapshot: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl From<Recovery> for RecoveryBody {
    fn from(recovery: Recovery) -> RecoveryBody {
        RecoveryBody {
            strategy: recovery.strategy,
            retryable: true,
            requires_fresh_snapshot: recovery.requires_fresh_snapshot,
            retry_after_ms: recovery.retry_after_ms,
        }
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<RecoveryBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Facts::is_empty")]
    details: Facts<'a>,
    disposition: Disposition,
}

impl<'a> From<&'a Error> for ErrorBody<'a> {
    fn from(error: &'a Error) -> ErrorBody<'a> {
        ErrorBody {
            code: error.code().as_str(),
            message: error.message(),
            suggestion: error.get_hint(),
            recovery: error.recovery().map(RecoveryBody::from),
            platform_detail: error.get_platform_detail(),
            details: Facts(error.details()),
            disposition: error.get_delivery().into(),
        }
    }
}

/// Facts as a JSON object.
#[derive(Clone, Copy)]
pub struct Facts<'a>(pub &'a [(String, Fact)]);

impl Facts<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, fact) in self.0 {
            map.serialize_entry(name, &OneFact(fact))?;
        }
        map.end()
    }
}

/// One fact as a JSON value.
#[derive(Clone, Copy)]
pub struct OneFact<'a>(pub &'a Fact);

impl Serialize for OneFact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Fact::Bool(value) => serializer.serialize_bool(*value),
            Fact::Int(value) => serializer.serialize_i64(*value),
            Fact::Float(value) => serializer.serialize_f64(*value),
            Fact::Word(value) => serializer.serialize_str(value),
            Fact::Text(value) => serializer.serialize_str(value),
            Fact::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&OneFact(value))?;
                }
                list.end()
            }
            Fact::Map(entries) => Facts(entries).serialize(serializer),
        }
    }
}

/// The envelope of a success; one line, no newline at its end.
pub fn success<T: Serialize + ?Sized>(command: &str, data: &T) -> String {
    match serde_json::to_string(&Success { version: VERSION, ok: true, command, data }) {
        Ok(text) => text,
        // A reply type that cannot be JSON is a bug; the caller still gets an envelope.
        Err(error) => failure(
            command,
            &Error::internal("the reply could not be written as JSON").platform_detail(error.to_string()),
        ),
    }
}

/// The envelope of a failure; one line, no newline at its end.
pub fn failure(command: &str, error: &Error) -> String {
    serde_json::to_string(&Failure { version: VERSION, ok: false, command, error: error.into() })
        .expect("texts, numbers and maps with text keys always serialise")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_desktop_core::error::{ErrorCode, facts};

    #[track_caller]
    fn assert_failure(error: &Error, expected: &str) {
        assert_eq!(
            failure("click", error),
            format!(r#"{{"version":"2.4","ok":false,"command":"click","error":{expected}}}"#)
        );
    }

    #[test]
    fn success_has_data_and_no_error() {
        assert_eq!(
            success("list-apps", &serde_json::json!({"apps": []})),
            r#"{"version":"2.4","ok":true,"command":"list-apps","data":{"apps":[]}}"#
        );
    }

    #[test]
    fn every_code_has_its_default_disposition_and_recovery() {
        let mut lines = Vec::new();
        for &code in ErrorCode::ALL {
            let text = failure("x", &Error::new(code, "m"));
            let start = text.find(r#""code":"#).expect("an error has a code");
            lines.push(text[start..text.len() - 2].to_owned());
        }
        let safe = r#""disposition":{"delivery":"not_delivered","retry":"safe"}"#;
        let unknown = r#""disposition":{"delivery":"unknown","retry":"unknown"}"#;
        let refresh = r#""recovery":{"strategy":"refresh_snapshot_then_retry_original","retryable":true,"requires_fresh_snapshot":true},"#;
        let policy = r#""recovery":{"strategy":"request_explicit_policy_then_retry_original","retryable":true,"requires_fresh_snapshot":false},"#;
        let inspect = r#""recovery":{"strategy":"inspect_state_then_retry_original","retryable":true,"requires_fresh_snapshot":true,"retry_after_ms":250},"#;
        let expected: Vec<String> = [
            ("PERM_DENIED", "", safe),
            ("ELEMENT_NOT_FOUND", "", safe),
            ("APP_NOT_FOUND", "", safe),
            ("WINDOW_NOT_FOUND", "", safe),
            ("ACTION_FAILED", "", unknown),
            ("ACTION_NOT_SUPPORTED", "", safe),
            ("STALE_REF", refresh, safe),
            ("SNAPSHOT_NOT_FOUND", refresh, safe),
            ("AMBIGUOUS_TARGET", "", safe),
            ("POLICY_DENIED", policy, safe),
            ("APP_UNRESPONSIVE", inspect, safe),
            ("PLATFORM_NOT_SUPPORTED", "", safe),
            ("TIMEOUT", "", unknown),
            ("INVALID_ARGS", "", safe),
            ("NOTIFICATION_NOT_FOUND", "", safe),
            ("INTERNAL", "", unknown),
        ]
        .iter()
        .map(|(code, recovery, disposition)| {
            format!(r#""code":"{code}","message":"m",{recovery}{disposition}"#)
        })
        .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn recovery_is_left_out_when_a_retry_is_not_safe() {
        assert_failure(
            &Error::new(ErrorCode::StaleRef, "m").delivery(Delivery::Unverified),
            r#"{"code":"STALE_REF","message":"m","disposition":{"delivery":"delivered_unverified","retry":"unsafe"}}"#,
        );
    }

    #[test]
    fn all_keys_in_the_contracts_order() {
        let error = Error::new(ErrorCode::StaleRef, "gone")
            .hint("look again")
            .platform_detail("org.freedesktop.DBus.Error.UnknownObject")
            .kind("resolution_complete_absence")
            .detail("process_state", facts([("state", "running".into()), ("list", vec![1_u32, 2].into())]))
            .retryable(false);
        assert_failure(
            &error,
            concat!(
                r#"{"code":"STALE_REF","message":"gone","suggestion":"look again","#,
                r#""recovery":{"strategy":"refresh_snapshot_then_retry_original","retryable":true,"requires_fresh_snapshot":true},"#,
                r#""platform_detail":"org.freedesktop.DBus.Error.UnknownObject","#,
                r#""details":{"kind":"resolution_complete_absence","process_state":{"state":"running","list":[1,2]},"retryable":false},"#,
                r#""disposition":{"delivery":"not_delivered","retry":"safe"}}"#
            ),
        );
    }
}
