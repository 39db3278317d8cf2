use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, Lit, Pat, PatType, PathArguments, Result,
    Signature, Type,
};

/// How the parameters of a function come from a call.
pub struct Arguments {
    /// The type of the whole input.
    pub input: Type,
    /// The type of the options, where the function has a context.
    pub options: Option<Type>,
    /// Items that the input needs, for a type made of parameters.
    pub items: TokenStream,
    /// What the function is called with: expressions over `input` and `context`.
    pub values: Vec<TokenStream>,
}

enum Parameter<'a> {
    Context(Option<Box<Type>>),
    Value(&'a mut PatType),
}

impl Arguments {
    /// Reads the parameters, and takes away the attributes that belong to the input's fields.
    pub fn of(signature: &mut Signature) -> Result<Self> {
        let parameters = signature.inputs.iter_mut().map(parameter).collect::<Result<Vec<_>>>()?;
        let mut options = None;
        let mut contexts = 0;
        let mut values = parameters.iter().filter(|one| matches!(one, Parameter::Value(_)));
        let is_whole =
            matches!((values.next(), values.next()), (Some(Parameter::Value(only)), None) if is_whole_input(only));
        let mut fields = Fields::default();
        let mut given = Vec::new();
        let mut input = None;
        for parameter in parameters {
            match parameter {
                Parameter::Context(of) => {
                    contexts += 1;
                    options = Some(of.map_or_else(|| syn::parse_quote!(::brain_tool::NoOptions), |of| *of));
                    given.push(quote!(context));
                }
                Parameter::Value(value) if is_whole => {
                    let (of, borrowed) = owned(&value.ty);
                    input = Some(of);
                    given.push(if borrowed { quote!(&input) } else { quote!(input) });
                }
                Parameter::Value(value) => given.push(fields.add(value)?),
            }
        }
        if contexts > 1 {
            return Err(Error::new_spanned(&signature.inputs, "a tool has one context"));
        }
        let items = if is_whole { TokenStream::new() } else { fields.items() };
        Ok(Self { input: input.unwrap_or_else(|| syn::parse_quote!(Members)), options, items, values: given })
    }
}

fn parameter(argument: &mut FnArg) -> Result<Parameter<'_>> {
    match argument {
        FnArg::Receiver(receiver) => Err(Error::new_spanned(receiver, "a tool is a function, not a method")),
        FnArg::Typed(value) => Ok(match context_of(&value.ty) {
            Some(options) => Parameter::Context(options),
            None => Parameter::Value(value),
        }),
    }
}

/// The options of `&Context<Options>`; `None` for another type.
fn context_of(of: &Type) -> Option<Option<Box<Type>>> {
    let Type::Reference(reference) = of else { return None };
    let Type::Path(path) = &*reference.elem else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Context")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Some(None) };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(of) => Some(Box::new(of.clone())),
        _ => None,
    });
    Some(types.last())
}

fn is_whole_input(value: &PatType) -> bool {
    match &*value.pat {
        Pat::Ident(name) => name.ident == "input",
        _ => true,
    }
}

/// What is read for a parameter of this type, and whether the function then borrows it.
fn owned(of: &Type) -> (Type, bool) {
    let Type::Reference(reference) = of else { return (of.clone(), false) };
    let read = match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => syn::parse_quote!(::std::string::String),
        Type::Slice(slice) => {
            let element = &slice.elem;
            syn::parse_quote!(::std::vec::Vec<#element>)
        }
        other => other.clone(),
    };
    (read, true)
}

/// The members of an input that is made of parameters.
#[derive(Default)]
struct Fields {
    fields: Vec<TokenStream>,
    defaults: Vec<TokenStream>,
}

impl Fields {
    /// Adds a parameter. @returns what the function gets for it
    fn add(&mut self, value: &mut PatType) -> Result<TokenStream> {
        let Pat::Ident(pattern) = &*value.pat else {
            return Err(Error::new_spanned(&value.pat, "a parameter that is one of several needs a name"));
        };
        let name = &pattern.ident;
        let (of, borrowed) = owned(&value.ty);
        let (default, attributes): (Vec<_>, Vec<_>) =
            std::mem::take(&mut value.attrs).into_iter().partition(|attribute| attribute.path().is_ident("default"));
        let default = default.first().map(|attribute| self.with_default(name, &of, attribute)).transpose()?;
        self.fields.push(quote!(#(#attributes)* #default #name: #of));
        Ok(if borrowed { quote!(&input.#name) } else { quote!(input.#name) })
    }

    fn with_default(&mut self, name: &Ident, of: &Type, attribute: &Attribute) -> Result<TokenStream> {
        let value = match attribute.parse_args()? {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => quote!(::core::convert::From::from(#text)),
            other => quote!(#other),
        };
        let function = format_ident!("default_of_{}", name);
        let path = function.to_string();
        self.defaults.push(quote!(fn #function() -> #of { #value }));
        Ok(quote!(#[serde(default = #path)]))
    }

    fn items(&self) -> TokenStream {
        let Self { fields, defaults } = self;
        quote! {
            use ::brain_tool::private::serde;
            #[cfg(not(target_family = "wasm"))]
            use ::brain_tool::private::schemars;

            #(#defaults)*

            #[derive(::brain_tool::private::serde::Deserialize)]
            #[cfg_attr(target_family = "wasm", derive(::brain_tool::private::NoSchema))]
            #[cfg_attr(not(target_family = "wasm"), derive(schemars::JsonSchema))]
            #[serde(crate = "serde", deny_unknown_fields)]
            #[schemars(crate = "schemars")]
            struct Members { #(#fields,)* }
        }
    }
}
