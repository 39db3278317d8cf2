//! Lists what lies at one path of the workspace.

mod walk;

use std::num::NonZeroU32;

use brain_tool::{Context, Error, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A file or directory, for example "notes" or "/workspace/notes"
    path: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// How many levels of directories to list
    #[serde(default = "one_level")]
    depth: NonZeroU32,
}

#[derive(JsonSchema, Serialize)]
struct Inspection {
    path: String,
    #[serde(flatten)]
    listing: walk::Listing,
}

fn one_level() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// Inspect one path: what lies there, of which kind and how large. Relative paths mean the workspace.
#[brain_tool::tool]
fn inspect(input: Input, context: &Context<Options>) -> Result<Inspection, Error> {
    let root = context.workspace_path(&input.path);
    let path = root.display().to_string();
    context.emit("inspect_started", &json!({ "path": path }))?;
    let listing = walk::list(&root, context.options().depth.get())
        .map_err(Error::because("cannot_inspect", format_args!("Cannot inspect {path:?}")))?;
    Ok(Inspection { path, listing })
}
