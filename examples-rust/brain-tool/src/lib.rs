#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

#[cfg(test)]
extern crate self as brain_tool;

mod answer;
#[rustfmt::skip]
#[allow(missing_docs, reason = "generated")]
#[doc(hidden)]
pub mod bindings;
mod call;
mod context;
mod error;
#[cfg_attr(target_family = "wasm", path = "host/component.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "host/recorder.rs")]
mod host;
#[cfg(not(target_family = "wasm"))]
mod metadata;
mod model;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

pub use answer::{Answer, NoResult, WithContent, with_content};
/// Makes a tool of a function.
///
/// ```
/// /// Adds two numbers.
/// #[brain_tool::tool]
/// fn add(a: f64, b: f64) -> f64 {
///     a + b
/// }
/// ```
///
/// The function stays what it is. Beside it comes a type of the same name, which [`testing`] calls; a component
/// exports it as its `run`; and a unit test, `tool_json_is_what_the_types_say`, keeps the file `tool.json` beside `Cargo.toml`,
/// which a component carries.
///
/// # What it takes
///
/// * `name = "…"`: 1 to 64 letters, digits, `_` and `-`; by default the function's name.
/// * `description = "…"`: by default the function's doc comment, or else its name.
/// * `handwritten`: `tool.json` is yours. No test keeps it, and the types need no schemas.
///
/// # The input
///
/// * One parameter called `input`, or with a pattern, is the whole input. Its type needs `Deserialize` and `JsonSchema`.
/// * Any other parameters are members of the input, which is then an object with these and no others. Their doc comments
///   and their attributes `serde(…)` and `schemars(…)` work as on fields, `#[default(…)]` gives a value for a missing one, and
///   an `Option` may be missing. They may be references: `text: &str`.
/// * A parameter of the type `&Context` or `&Context<Options>` gets the context.
///
/// # What it answers
///
/// Any `Serialize` and `JsonSchema` value, or a `Result` of one. The error may be whatever converts to
/// `Box<dyn std::error::Error>`: `brain_tool::Error`, every `std::error::Error`, a text, `anyhow::Error`.
pub use brain_tool_macros::tool;
pub use call::Tool;
pub use context::{Context, NoOptions, SCRATCH, WORKSPACE};
pub use error::Error;
pub use model::ModelAnswer;
pub use serde_json::{Map, Value, json};

/// What the attribute's code calls. Nothing of it is for authors.
#[doc(hidden)]
pub mod private {
    pub use crate::answer::outcome_of;
    pub use crate::call::input_of;
    #[cfg(target_family = "wasm")]
    pub use crate::host::serve;
    #[cfg(not(target_family = "wasm"))]
    pub use crate::metadata::{Described, keep, metadata};
    #[cfg(target_family = "wasm")]
    pub use brain_tool_macros::NoSchema;
    #[cfg(not(target_family = "wasm"))]
    pub use schemars;
    pub use serde;
}

/// Exports a type that implements [`bindings::Guest`] by hand, and embeds the `tool.json` beside the crate's `Cargo.toml`:
/// for what [`macro@tool`] does not do. Such a tool calls [`bindings::brain::tool::host`], and `finish` there.
#[macro_export]
macro_rules! export {
    ($guest:ident) => {
        #[cfg(target_family = "wasm")]
        $crate::bindings::export_tool!($guest with_types_in $crate::bindings);
        $crate::embed_metadata!();
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! embed_metadata {
    () => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            const METADATA: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tool.json"));
            // A custom section takes the bytes of the static itself, so a reference to them would not do.
            #[unsafe(link_section = "brain:tool-metadata")]
            #[used]
            static SECTION: [u8; METADATA.len()] = *METADATA.first_chunk().unwrap();
        };
    };
}
