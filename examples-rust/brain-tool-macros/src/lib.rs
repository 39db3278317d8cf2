//! The attribute of `brain-tool`; use it from there.

mod arguments;
mod expand;
mod options;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Makes a tool of a function; `brain_tool::tool` says how.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut options = options::Options::default();
    let parser = syn::meta::parser(|meta| options.read(&meta));
    parse_macro_input!(attribute with parser);
    let function = parse_macro_input!(item as ItemFn);
    expand::expand(options, function).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Takes the attributes of schemars and makes nothing of them: components hold no schemas.
#[doc(hidden)]
#[proc_macro_derive(NoSchema, attributes(schemars))]
pub fn no_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
