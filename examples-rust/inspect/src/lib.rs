//! Lists what lies at one path of the workspace.

mod walk;

use std::num::NonZeroU32;

use brain_guest::{emit, json, workspace_path, Call, ToolError};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Input {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default = "one_level")]
    depth: NonZeroU32,
}

#[derive(Serialize)]
struct Inspection {
    path: String,
    #[serde(flatten)]
    listing: walk::Listing,
}

fn one_level() -> NonZeroU32 {
    NonZeroU32::MIN
}

fn inspect(call: Call<Input, Options>) -> Result<Inspection, ToolError> {
    let root = workspace_path(&call.input.path);
    let path = root.display().to_string();
    emit("inspect_started", &json!({ "path": path }))?;
    let listing = walk::list(&root, call.options.depth.get())
        .map_err(|error| ToolError::new("cannot_inspect", format!("Cannot inspect {path:?}: {error}")))?;
    Ok(Inspection { path, listing })
}

brain_guest::tool!(inspect);
