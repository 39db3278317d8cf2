//! The host of a component, as the bindings reach it.

use std::path::PathBuf;

use crate::bindings::brain::tool::host;
use crate::bindings::{Invocation, ToolError};
use crate::{Context, Error, Tool, WORKSPACE, call};

pub struct Host;

/// One call of a component.
pub fn serve<T: Tool>(invocation: Invocation) -> Result<String, ToolError> {
    let Invocation { input_json, configuration_json, deadline_at_ms } = invocation;
    Context::new(&configuration_json, deadline_at_ms, PathBuf::from(WORKSPACE), Host)
        .and_then(|context| call::run::<T>(&input_json, &context))
        .map_err(|Error { code, message }| ToolError { code, message })?;
    // The empty text says that there is no second result.
    Ok(String::new())
}

fn told(error: ToolError) -> Error {
    Error { code: error.code, message: error.message }
}

impl Host {
    pub fn environments(&self, request: &str) -> Result<String, Error> {
        host::environments(request).map_err(told)
    }

    pub fn model(&self, request: &str) -> Result<String, Error> {
        host::model(request).map_err(told)
    }

    pub fn emit(&self, kind: &str, payload: &str) -> Result<u64, Error> {
        host::emit(kind, payload).map_err(told)
    }

    pub fn emit_result(&self, outcome: &str) -> Result<u64, Error> {
        host::emit_result(outcome).map_err(told)
    }

    pub fn returned(&self, outcome: Option<&str>) -> Result<u64, Error> {
        host::returned(outcome).map_err(told)
    }

    pub fn finish(&self, outcome: Option<&str>) -> Result<u64, Error> {
        host::finish(outcome).map_err(told)
    }

    pub fn telemetry(&self, record: &str) {
        host::telemetry(record);
    }
}
