use serde::Serialize;
use serde_json::{json, Value};

use crate::ToolError;

/// What a tool may come to: any serializable value, or one [`with_content`].
pub trait Answer {
    /// The envelope that `finish` and `emit-result` take.
    fn into_outcome(self) -> Result<Value, ToolError>;
}

impl<T: Serialize> Answer for T {
    fn into_outcome(self) -> Result<Value, ToolError> {
        Ok(json!({ "status": "ok", "value": to_value(&self)? }))
    }
}

/// A value with the text that stands for it in the model's conversation.
pub struct WithContent<T> {
    value: T,
    content: String,
}

/// Adds model-facing text to a value; the value itself, and the check against the output schema, stay as they are.
pub fn with_content<T: Serialize>(value: T, content: impl Into<String>) -> WithContent<T> {
    WithContent { value, content: content.into() }
}

impl<T: Serialize> Answer for WithContent<T> {
    fn into_outcome(self) -> Result<Value, ToolError> {
        Ok(json!({ "status": "ok", "value": to_value(&self.value)?, "content": self.content }))
    }
}

pub(crate) fn to_value(value: &impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(value).map_err(|error| ToolError::new("invalid_output", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_value_becomes_an_explicit_ok() {
        let outcome = json!({"status": "error"}).into_outcome().unwrap();
        assert_eq!(outcome, json!({"status": "ok", "value": {"status": "error"}}));
    }

    #[test]
    fn content_stands_beside_the_value() {
        let outcome = with_content(7, "seven").into_outcome().unwrap();
        assert_eq!(outcome, json!({"status": "ok", "value": 7, "content": "seven"}));
    }

    #[test]
    fn a_value_that_is_not_json_is_an_error() {
        let keyed_by_list = std::collections::BTreeMap::from([(vec![1], 2)]);
        assert_eq!(keyed_by_list.into_outcome().unwrap_err().code, "invalid_output");
    }
}
