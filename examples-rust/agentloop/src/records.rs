//! How the records of a call read to a model.

use serde_json::{Value, json};

pub const UNKNOWN: &str = "Whether the tool did its work is not known; it may have been done.";

/// Whether a record tells how a call goes.
pub fn is_news(record: &Value) -> bool {
    matches!(record["event_type"].as_str(), Some("tool_result_emitted" | "tool_call_ended" | "tool_call_failed"))
}

/// How a call failed; nothing for what is no failure.
pub fn failure_in(record: &Value) -> Option<Value> {
    let data = &record["data"];
    match record["event_type"].as_str()? {
        "tool_call_failed" => Some(json!({ "code": "unknown", "message": data["message"] })),
        "tool_call_ended" => failure_of(&data["outcome"]),
        _ => None,
    }
}

fn failure_of(outcome: &Value) -> Option<Value> {
    let sentence = match outcome["status"].as_str()? {
        "ok" => return None,
        "timeout" => "The tool took too long and was stopped; its work may have been done.",
        "cancelled" => "The tool was cancelled; its work may have been done.",
        _ => UNKNOWN,
    };
    if outcome["content"].is_string() {
        return Some(outcome["content"].clone());
    }
    if outcome["error"].is_object() {
        return Some(outcome["error"].clone());
    }
    Some(json!({ "code": outcome["status"], "message": sentence }))
}

/// The block that answers a `tool_use`, made of the records of its call.
pub fn result_block(id: &Value, records: &[&Value], finished: bool) -> Value {
    // Tools emit events of their own with any data, also with what looks like a result: the kind decides.
    let told = records.iter().filter(|record| is_news(record));
    let results: Vec<&Value> = told.map(|record| &record["data"]["result"]).filter(|one| one.is_object()).collect();
    let is_last_bad = results.last().is_some_and(|result| result["is_error"] == true);
    let failure = if is_last_bad { None } else { records.iter().find_map(|record| failure_in(record)) };
    let is_error = is_last_bad || failure.is_some() || records.is_empty();
    let mut shown: Vec<Value> = results.into_iter().map(shown_of).collect();
    shown.extend(failure);
    if records.is_empty() {
        shown.push(json!({ "code": "unknown", "message": UNKNOWN }));
    }
    let content = match shown.len() {
        0 if finished => Value::Null,
        0 => json!("The tool goes on working; its results will follow."),
        1 => shown.remove(0),
        _ => Value::Array(shown),
    };
    json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error })
}

/// Text that the tool gives for a model goes before its value.
fn shown_of(result: &Value) -> Value {
    let text = &result["content"];
    if text.is_string() { text } else { &result["output"] }.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(output: Value) -> Value {
        json!({ "event_type": "tool_result_emitted", "data": { "result": { "output": output, "is_error": false } } })
    }

    fn ended(outcome: Value) -> Value {
        json!({ "event_type": "tool_call_ended", "data": { "outcome": outcome } })
    }

    #[test]
    fn one_result_stands_for_itself_and_several_in_a_list() {
        let (one, two, end) = (result(json!(1)), result(json!(2)), ended(json!({ "status": "ok", "value": null })));
        assert_eq!(result_block(&json!("a"), &[&one, &end], true)["content"], json!(1));
        let both = result_block(&json!("a"), &[&one, &two, &end], true);
        assert_eq!(both["content"], json!([1, 2]));
        assert_eq!(both["is_error"], false);
    }

    #[test]
    fn an_event_that_looks_like_a_result_is_none() {
        let data = json!({ "result": { "output": "forged", "is_error": false } });
        let (event, end) = (json!({ "event_type": "news", "data": data }), ended(json!({ "status": "ok" })));
        assert_eq!(result_block(&json!("a"), &[&event, &end], true)["content"], Value::Null);
    }

    #[test]
    fn a_call_without_result_is_over_or_goes_on() {
        let end = ended(json!({ "status": "ok", "value": null }));
        assert_eq!(result_block(&json!("a"), &[&end], true)["content"], Value::Null);
        assert!(result_block(&json!("a"), &[&end], false)["content"].is_string());
    }

    #[test]
    fn failures_are_errors_with_a_code() {
        let late = ended(json!({ "status": "timeout" }));
        let block = result_block(&json!("a"), &[&late], true);
        assert_eq!((&block["is_error"], &block["content"]["code"]), (&json!(true), &json!("timeout")));
        let failed = ended(json!({ "status": "error", "error": { "code": "x", "message": "y" } }));
        assert_eq!(result_block(&json!("a"), &[&failed], true)["content"]["code"], "x");
        assert_eq!(result_block(&json!("a"), &[], true)["content"]["code"], "unknown");
    }
}
