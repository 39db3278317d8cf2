use serde::Serialize;

use crate::Error;

/// What a tool may come to: any serializable value, a value [`with_content`], [`NoResult`], or an [`Error`] that is told as a
/// result.
pub trait Answer {
    /// The value, as the output schema describes it.
    type Value;

    /// The text of the Outcome that the host takes; nothing for no result.
    #[doc(hidden)]
    fn into_outcome(self) -> Result<Option<String>, Error>;
}

#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Outcome<'a, Value> {
    Ok {
        value: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
    },
    Error {
        error: Reason<'a>,
    },
}

#[derive(Serialize)]
struct Reason<'a> {
    code: &'a str,
    message: &'a str,
}

impl<Value: Serialize> Outcome<'_, Value> {
    fn text(&self) -> Result<Option<String>, Error> {
        Ok(Some(text_of("the result", self)?))
    }
}

impl<T: Serialize> Answer for T {
    type Value = T;

    fn into_outcome(self) -> Result<Option<String>, Error> {
        Outcome::Ok { value: &self, content: None }.text()
    }
}

/// A value with the text that stands for it in the model's conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct WithContent<Value> {
    /// What programs get, and what the output schema describes.
    pub value: Value,
    /// What the model reads.
    pub content: String,
}

/// Adds model-facing text to a value; the value itself, and the check against the output schema, stay as they are.
pub fn with_content<Value: Serialize>(value: Value, content: impl Into<String>) -> WithContent<Value> {
    WithContent { value, content: content.into() }
}

impl<T: Serialize> Answer for WithContent<T> {
    type Value = T;

    fn into_outcome(self) -> Result<Option<String>, Error> {
        Outcome::Ok { value: &self.value, content: Some(&self.content) }.text()
    }
}

/// Finishes without a result of its own, after others that were emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(not(target_family = "wasm"), derive(schemars::JsonSchema))]
pub struct NoResult;

impl Answer for NoResult {
    type Value = NoResult;

    fn into_outcome(self) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

impl Answer for Error {
    type Value = NoResult;

    fn into_outcome(self) -> Result<Option<String>, Error> {
        let error = Reason { code: &self.code, message: &self.message };
        let outcome: Outcome<()> = Outcome::Error { error };
        outcome.text()
    }
}

pub(crate) fn text_of(what: &str, value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(Error::because("invalid_output", format_args!("Cannot write {what} as JSON")))
}

/// What the function of a tool came to.
pub fn outcome_of<Given, Failure>(result: Result<Given, Failure>) -> Result<Option<String>, Error>
where
    Given: Answer,
    Failure: Into<Box<dyn std::error::Error>>,
{
    result.map_err(Error::from_any)?.into_outcome()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn outcome(answer: impl Answer) -> serde_json::Value {
        serde_json::from_str(&answer.into_outcome().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn a_plain_value_becomes_an_explicit_ok() {
        assert_eq!(outcome(json!({"status": "error"})), json!({"status": "ok", "value": {"status": "error"}}));
        assert_eq!(outcome(()), json!({"status": "ok", "value": null}));
    }

    #[test]
    fn content_stands_beside_the_value() {
        assert_eq!(outcome(with_content(7, "seven")), json!({"status": "ok", "value": 7, "content": "seven"}));
    }

    #[test]
    fn an_error_may_be_a_result_and_there_may_be_none() {
        let told = json!({"status": "error", "error": {"code": "a", "message": "b"}});
        assert_eq!(outcome(Error::new("a", "b")), told);
        assert_eq!(NoResult.into_outcome(), Ok(None));
    }

    #[test]
    fn a_value_that_is_not_json_is_an_error() {
        let keyed_by_list = std::collections::BTreeMap::from([(vec![1], 2)]);
        let error = keyed_by_list.into_outcome().unwrap_err();
        assert_eq!(error, Error::new("invalid_output", "Cannot write the result as JSON: key must be a string"));
    }
}
