use serde::Deserialize;
use serde_json::{json, Value};

use crate::bindings::brain::tool::host;
use crate::ToolError;

/// What the model said, as far as a tool needs it.
#[derive(Debug, PartialEq)]
pub struct Reply {
    /// The text blocks of the answer, joined.
    pub text: String,
    /// `end_turn` for a complete answer; `max_tokens`, `refusal` and others say why it is not.
    pub stop_reason: String,
}

/// Asks the session's model one question. Nothing of the conversation is sent but `system` and `text`.
pub fn ask(system: &str, text: &str) -> Result<Reply, ToolError> {
    let request = json!({
        "system": system,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": text }] }],
    });
    read_reply(&host::model(&request.to_string())?)
}

#[derive(Deserialize)]
struct ModelResult {
    message: Message,
    stop_reason: String,
}

#[derive(Deserialize)]
struct Message {
    content: Vec<Value>,
}

fn read_reply(answer: &str) -> Result<Reply, ToolError> {
    let result: ModelResult = serde_json::from_str(answer)
        .map_err(|error| ToolError::new("invalid_model_answer", format!("Cannot read the model's answer: {error}")))?;
    let texts = result.message.content.iter().filter(|block| block["type"] == "text");
    Ok(Reply { text: texts.filter_map(|block| block["text"].as_str()).collect(), stop_reason: result.stop_reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_blocks_are_joined_and_others_left_out() {
        let answer = json!({
            "message": { "role": "assistant", "content": [
                { "type": "text", "text": "one " },
                { "type": "native", "format": "reasoning", "data": { "text": "hidden" } },
                { "type": "text", "text": "two" },
            ] },
            "stop_reason": "end_turn",
            "usage": {},
        });
        let reply = read_reply(&answer.to_string()).unwrap();
        assert_eq!(reply, Reply { text: "one two".into(), stop_reason: "end_turn".into() });
    }

    #[test]
    fn an_answer_of_another_form_is_an_error() {
        assert_eq!(read_reply("[]").unwrap_err().code, "invalid_model_answer");
    }
}
