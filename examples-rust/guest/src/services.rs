use serde::Serialize;

use crate::answer::to_value;
use crate::bindings::brain::tool::host;
use crate::{Answer, ToolError};

/// Commits an event of the tool's own kind and answers its sequence in the session's journal.
pub fn emit(kind: &str, payload: &impl Serialize) -> Result<u64, ToolError> {
    host::emit(kind, &to_value(payload)?.to_string())
}

/// Commits one result; the execution stays open for more.
pub fn emit_result(answer: impl Answer) -> Result<u64, ToolError> {
    host::emit_result(&answer.into_outcome()?.to_string())
}

/// Ends the synchronous phase with a result; whoever waits for the call goes on, and so may the tool.
pub fn returned(answer: impl Answer) -> Result<u64, ToolError> {
    host::returned(Some(&answer.into_outcome()?.to_string()))
}

/// Ends the execution with a result. Every service refuses after it.
pub fn finish(answer: impl Answer) -> Result<u64, ToolError> {
    host::finish(Some(&answer.into_outcome()?.to_string()))
}

/// Leaves a diagnostic record in the call's log, which neither the journal nor the model sees.
pub fn telemetry(record: &impl Serialize) {
    if let Ok(record) = to_value(record) {
        host::telemetry(&record.to_string());
    }
}
