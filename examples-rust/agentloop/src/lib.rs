//! An agentloop: it talks with the session's model and makes the calls that the model asks for.
//!
//! One call of `turn` is one activation. Everything that must outlive it is in the session: the transcript, and what the
//! loop keeps in kv.

mod conversation;
mod observations;
mod records;

mod bindings {
    wit_bindgen::generate!({ path: "../../wit/agentloop.wit", world: "agentloop" });
}

use bindings::{Guest, TurnError, TurnInput, TurnOutput};
use conversation::Conversation;
use serde_json::Value;

struct Loop;

impl Guest for Loop {
    fn turn(input: TurnInput) -> Result<TurnOutput, TurnError> {
        Conversation::open(&input)?.run()?;
        // What is said stands in `output_emitted`: a result would only repeat it.
        Ok(TurnOutput { result_json: None })
    }
}

/// What the host sends is JSON; anything else is no fault of ours, but fails the turn with its reason.
fn parse(what: &str, text: &str) -> Result<Value, TurnError> {
    serde_json::from_str(text).map_err(|error| TurnError {
        code: "unreadable".into(),
        message: format!("Cannot read the {what}: {error}"),
        retryable: false,
    })
}

bindings::export!(Loop with_types_in bindings);
