use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Ident, ItemFn, Result, ReturnType, Type};

use crate::arguments::Arguments;
use crate::options::Options;

pub fn expand(options: Options, mut function: ItemFn) -> Result<TokenStream> {
    let ident = function.sig.ident.clone();
    check(&function)?;
    let name = options.name(&ident)?;
    let description = options.description(&function.attrs, &name)?;
    let arguments = Arguments::of(&mut function.sig)?;
    let visibility = function.vis.clone();
    let implementation =
        implementation(&ident, &function.sig.output, arguments, &name, &description, options.handwritten);
    let kept = if options.handwritten { TokenStream::new() } else { kept(&ident) };
    Ok(quote! {
        #[allow(dead_code, reason = "only components and tests call it")]
        #function

        #[doc = "The tool of the same name."]
        #[allow(non_camel_case_types, dead_code, reason = "the tool is called as its function is")]
        #visibility struct #ident {}

        const _: () = { #implementation };

        #kept
    })
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if let Some(asyncness) = &signature.asyncness {
        return Err(Error::new(asyncness.span(), "a tool is an ordinary function: its host calls wait by themselves"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(
            signature.generics.span(),
            "a tool has no type parameters: its schema is made of its types",
        ));
    }
    Ok(())
}

fn implementation(
    ident: &Ident,
    output: &ReturnType,
    Arguments { input, options, items, values }: Arguments,
    name: &str,
    description: &str,
    handwritten: bool,
) -> TokenStream {
    let options = options.unwrap_or_else(|| syn::parse_quote!(::brain_tool::NoOptions));
    let called = if is_result(output) {
        quote!(#ident(#(#values),*))
    } else {
        quote!(::core::result::Result::<_, ::brain_tool::Error>::Ok(#ident(#(#values),*)))
    };
    // What the types lack is said where they stand.
    let body = quote_spanned! { output.span() =>
        ::brain_tool::private::outcome_of(#called)
    };
    let metadata = quote_spanned! { output.span() =>
        ::brain_tool::private::metadata(#name, #description, |input: #input, context: &::brain_tool::Context<#options>| {
            let (_, _) = (&input, context);
            #called
        })
    };
    let described = if handwritten { TokenStream::new() } else { described(ident, metadata) };
    quote! {
        #items

        impl ::brain_tool::Tool for #ident {
            type Options = #options;

            fn call(
                input: &str,
                context: &::brain_tool::Context<Self::Options>,
            ) -> ::core::result::Result<::core::option::Option<::std::string::String>, ::brain_tool::Error> {
                let input: #input = ::brain_tool::private::input_of(input)?;
                let (_, _) = (&input, context);
                #body
            }
        }

        #described

        #[cfg(target_family = "wasm")]
        const _: () = {
            impl ::brain_tool::bindings::Guest for #ident {
                fn run(
                    invocation: ::brain_tool::bindings::Invocation,
                ) -> ::core::result::Result<::std::string::String, ::brain_tool::bindings::ToolError> {
                    ::brain_tool::private::serve::<#ident>(invocation)
                }
            }

            ::brain_tool::export!(#ident);
        };
    }
}

fn described(ident: &Ident, metadata: TokenStream) -> TokenStream {
    quote! {
        #[cfg(test)]
        impl ::brain_tool::private::Described for #ident {
            fn metadata() -> ::brain_tool::Value {
                #metadata
            }
        }
    }
}

/// The test that keeps `tool.json`, and what a component without that file says.
fn kept(ident: &Ident) -> TokenStream {
    let missing = missing_file().then(|| {
        let message =
            "there is no tool.json, which holds the tool's schemas: `brain build` writes it, and so does `cargo test`";
        quote!(#[cfg(target_family = "wasm")] ::core::compile_error!(#message);)
    });
    quote! {
        #missing

        #[cfg(test)]
        #[test]
        fn tool_json_is_what_the_types_say() {
            let metadata = <#ident as ::brain_tool::private::Described>::metadata();
            ::brain_tool::private::keep(::core::env!("CARGO_MANIFEST_DIR"), &metadata);
        }
    }
}

fn missing_file() -> bool {
    let directory = std::env::var_os("CARGO_MANIFEST_DIR");
    directory.is_some_and(|directory| !std::path::Path::new(&directory).join("tool.json").exists())
}

/// `Result<…>`, `io::Result<…>`, and whatever else is called so.
fn is_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, of) = output else { return false };
    let Type::Path(path) = &**of else { return false };
    path.path.segments.last().is_some_and(|last| last.ident.to_string().ends_with("Result"))
}
