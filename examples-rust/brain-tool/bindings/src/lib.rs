//! What `brain-tool/src/bindings.rs` is made of.
//!
//! With `debug` the generator leaves its text as `tool0.rs` in its own output folder, `wit-bindgen-rust-macro-…/out` in the
//! target folder's `release/build`. After a change of the WIT, or a new version of wit-bindgen, it goes from there to
//! `bindings.rs` as it is.

pub mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/tool.wit",
        world: "tool",
        pub_export_macro: true,
        default_bindings_module: "brain_tool::bindings",
        export_macro_name: "export_tool",
        debug: true,
    });
}
