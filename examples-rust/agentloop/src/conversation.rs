//! One activation, from what the session knows to what the user is told.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::bindings::brain::agentloop::host;
use crate::bindings::{TurnError, TurnInput};
use crate::observations::Observations;
use crate::parse;
use crate::records::{is_news, result_block};

pub struct Conversation {
    input: Value,
    tools: Vec<Value>,
    events: Vec<Value>,
    messages: Vec<Value>,
    observations: Observations,
    cursor: u64,
}

impl Conversation {
    pub fn open(input: &TurnInput) -> Result<Self, TurnError> {
        let events = list(parse("events", &input.events_json)?);
        let cursor = events.last().and_then(|record| record["sequence"].as_u64()).unwrap_or(0);
        Ok(Self {
            input: parse("input", &input.input_json)?,
            tools: list(parse("tools", &input.tools_json)?),
            messages: list(parse("transcript", &input.transcript_json)?),
            observations: Observations::new(&parse("kv", &input.kv_json)?),
            events,
            cursor,
        })
    }

    pub fn run(&mut self) -> Result<(), TurnError> {
        self.answer_open_uses();
        let events = std::mem::take(&mut self.events);
        let has_news = self.observe(&events);
        let has_input = !self.input.is_null();
        if has_input {
            self.messages.push(user_message(&self.input));
        }
        self.save()?;
        if !has_input && !has_news {
            self.read_on()?; // later records are only taken note of
            return Ok(());
        }
        loop {
            let answer = self.ask()?;
            let uses = uses_in(&answer);
            if !uses.is_empty() {
                self.make_calls(&uses)?;
            } else if !self.read_on()? {
                host::emit("output_emitted", &json!({ "type": "assistant_message", "message": answer }).to_string())?;
                return Ok(());
            }
        }
    }

    fn ask(&mut self) -> Result<Value, TurnError> {
        let answer = host::model(&json!({ "messages": self.messages }).to_string())?;
        let mut message = parse("answer of the model", &answer)?["message"].take();
        name_apart(&mut message);
        self.messages.push(message.clone());
        self.save()?;
        Ok(message)
    }

    /// Makes the calls that the model asked for, all at once, and answers every one.
    fn make_calls(&mut self, uses: &[Value]) -> Result<(), TurnError> {
        let calls: Vec<Value> = uses.iter().filter_map(|call| self.invocation_of(call)).collect();
        let returns = list(parse("returns", &host::dispatch(&Value::Array(calls).to_string())?)?);
        let blocks = uses.iter().map(|call| {
            let Some(answer) = returns.iter().find(|answer| answer["call_id"] == call["id"]) else {
                let message = format!("There is no tool {} in this session", call["name"]);
                let content = json!({ "code": "unknown_tool", "message": message });
                return json!({ "type": "tool_result", "tool_use_id": call["id"], "content": content, "is_error": true });
            };
            let records: Vec<&Value> = answer["events"].as_array().into_iter().flatten().collect();
            self.observations.saw(records.iter().copied());
            result_block(&call["id"], &records, answer["finished"] == true)
        });
        let content: Vec<Value> = blocks.collect();
        self.messages.push(json!({ "role": "user", "content": content }));
        self.save()
    }

    fn invocation_of(&self, call: &Value) -> Option<Value> {
        let tool = self.tools.iter().find(|tool| tool["name"] == call["name"])?;
        let environment = tool["environments"].get(0)?;
        Some(json!({
            "call_id": call["id"], "name": call["name"], "environment": environment, "input": call["input"],
        }))
    }

    /// What a failed turn has left unanswered is answered before anything new is said: models insist on it.
    fn answer_open_uses(&mut self) {
        let uses = self.messages.last().map(uses_in).unwrap_or_default();
        if uses.is_empty() {
            return;
        }
        let blocks = uses.iter().map(|call| {
            let is_start = |record: &&Value| {
                record["event_type"] == "tool_call_started" && record["data"]["invocation"]["call_id"] == call["id"]
            };
            let started = self.events.iter().rev().find(is_start).map(|record| &record["sequence"]);
            let is_of_call = |record: &&Value| {
                is_news(record) && started.is_some_and(|sequence| &record["data"]["sequence"] == sequence)
            };
            let records: Vec<&Value> = self.events.iter().filter(is_of_call).collect();
            self.observations.saw(records.iter().copied());
            result_block(&call["id"], &records, true)
        });
        let content: Vec<Value> = blocks.collect();
        self.messages.push(json!({ "role": "user", "content": content }));
    }

    /// Answers whether there was something to show.
    fn observe(&mut self, records: &[Value]) -> bool {
        let content = self.observations.news(records);
        let has_news = !content.is_empty();
        if has_news {
            self.messages.push(json!({ "role": "user", "content": content }));
        }
        has_news
    }

    /// Reads to the end of the journal, so that these records start no turn of their own.
    fn read_on(&mut self) -> Result<bool, TurnError> {
        let mut has_news = false;
        loop {
            let mut page = parse("events", &host::events(self.cursor)?)?;
            let records = list(page["events"].take());
            if records.is_empty() {
                break;
            }
            self.cursor = page["next_cursor"].as_u64().unwrap_or(self.cursor);
            has_news |= self.observe(&records);
        }
        if has_news {
            self.save()?;
        }
        Ok(has_news)
    }

    fn save(&mut self) -> Result<(), TurnError> {
        host::set_transcript(&json!(self.messages).to_string())?;
        self.observations.save()
    }
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn user_message(input: &Value) -> Value {
    let mut content = vec![json!({ "type": "text", "text": input["message"] })];
    content.extend(input["media"].as_array().into_iter().flatten().cloned());
    json!({ "role": "user", "content": content })
}

fn uses_in(message: &Value) -> Vec<Value> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter(|block| block["type"] == "tool_use").cloned().collect()
}

/// Models give ids twice, or none; calls of one batch need names of their own.
fn name_apart(message: &mut Value) {
    let mut taken = HashSet::new();
    for (index, block) in message["content"].as_array_mut().into_iter().flatten().enumerate() {
        if block["type"] != "tool_use" {
            continue;
        }
        let id = block["id"].as_str().unwrap_or_default();
        let id = if id.is_empty() || taken.contains(id) {
            format!("{}_{index}", if id.is_empty() { "call" } else { id })
        } else {
            id.to_owned()
        };
        block["id"] = json!(id);
        taken.insert(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_and_missing_ids_are_told_apart() {
        let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "t", "input": {} });
        let mut message = json!({ "content": [call("a"), { "type": "text", "text": "" }, call("a"), call("")] });
        name_apart(&mut message);
        let ids: Vec<Value> = uses_in(&message).iter().map(|call| call["id"].clone()).collect();
        assert_eq!(ids, ["a", "a_2", "call_3"]);
    }

    #[test]
    fn what_came_with_the_message_stands_beside_its_text() {
        let message = user_message(&json!({ "message": "look", "media": [{ "type": "image", "url": "https://a" }] }));
        assert_eq!(message["content"][1]["type"], "image");
    }
}
