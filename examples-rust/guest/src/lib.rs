//! The guest side of `brain:tool@0.2.0`.
//!
//! A tool is a function from its input (and a [`Call`]) to a value or a [`ToolError`]. [`tool!`] exports it as the
//! component's `run` and embeds the crate's `tool.json`, from which Brain learns the tool's name and schemas.
//!
//! ```ignore
//! fn run(call: Call<Input>) -> Result<Output, ToolError> { … }
//! brain_guest::tool!(run);
//! ```

mod answer;
mod call;
mod model;
mod services;
mod workspace;

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/tool.wit",
        world: "tool",
        pub_export_macro: true,
        default_bindings_module: "brain_guest::bindings",
        export_macro_name: "export_tool",
    });
}

pub use answer::{with_content, Answer, WithContent};
pub use bindings::brain::tool::host;
pub use bindings::{Guest, Invocation, ToolError};
pub use call::{serve, Call, NoOptions};
pub use model::{ask, Reply};
pub use serde_json::{json, Map, Value};
pub use services::{emit, emit_result, finish, returned, telemetry};
pub use workspace::{workspace_path, WORKSPACE};

impl ToolError {
    /// `code` is an identifier for programs (`invalid_input`), `message` a sentence for people.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// Exports `$run`, a `fn(Call<Input, Options>) -> Result<impl Answer, ToolError>`, as the component's `run`, and embeds
/// the crate's metadata as [`export!`] does.
#[macro_export]
macro_rules! tool {
    ($run:path) => {
        struct ExportedTool;

        impl $crate::Guest for ExportedTool {
            fn run(invocation: $crate::Invocation) -> ::std::result::Result<::std::string::String, $crate::ToolError> {
                $crate::serve(&invocation, $run)
            }
        }

        $crate::export!(ExportedTool);
    };
}

/// Exports a type that implements [`Guest`] by hand, and embeds the `tool.json` that lies beside the crate's
/// `Cargo.toml` as the section `brain:tool-metadata`.
#[macro_export]
macro_rules! export {
    ($guest:ident) => {
        $crate::bindings::export_tool!($guest with_types_in $crate::bindings);

        const _: () = {
            const METADATA: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tool.json"));
            // A custom section takes the bytes of the static itself, so a reference to them would not do.
            #[cfg_attr(target_family = "wasm", link_section = "brain:tool-metadata")]
            #[used]
            static SECTION: [u8; METADATA.len()] = *METADATA.first_chunk().unwrap();
        };
    };
}
