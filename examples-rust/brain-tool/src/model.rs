use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the session's model said.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ModelAnswer {
    /// The assistant's message, with all its blocks.
    pub message: Value,
    /// `end_turn` for a complete answer; `max_tokens`, `refusal` and others say why it is not.
    pub stop_reason: String,
    /// What was counted, as far as the provider says.
    #[serde(default)]
    pub usage: Value,
}

impl ModelAnswer {
    /// The text blocks of the answer, joined.
    pub fn text(&self) -> String {
        let blocks = self.message["content"].as_array().into_iter().flatten();
        blocks.filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str()).collect()
    }
}

pub(crate) fn question(system: &str, text: &str) -> Value {
    json!({
        "system": system,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": text }] }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_blocks_are_joined_and_others_left_out() {
        let answer: ModelAnswer = serde_json::from_value(json!({
            "message": { "role": "assistant", "content": [
                { "type": "text", "text": "one " },
                { "type": "native", "format": "reasoning", "data": { "text": "hidden" } },
                { "type": "text", "text": "two" },
            ] },
            "stop_reason": "end_turn",
        }))
        .unwrap();
        assert_eq!(answer.text(), "one two");
    }
}
