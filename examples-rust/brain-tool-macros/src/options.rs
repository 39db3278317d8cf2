use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, Lit, LitStr, Meta, Result};

const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 8192;

/// What stands in the parentheses of `#[tool(…)]`.
#[derive(Default)]
pub struct Options {
    name: Option<LitStr>,
    description: Option<LitStr>,
    pub handwritten: bool,
}

impl Options {
    pub fn read(&mut self, meta: &ParseNestedMeta) -> Result<()> {
        if meta.path.is_ident("name") {
            self.name = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("description") {
            self.description = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("handwritten") {
            self.handwritten = true;
        } else {
            return Err(meta.error("a tool takes `name = \"…\"`, `description = \"…\"` and `handwritten`"));
        }
        Ok(())
    }

    /// The name that Brain accepts, checked.
    pub fn name(&self, function: &syn::Ident) -> Result<String> {
        let name = self.name.as_ref().map_or_else(|| function.to_string().replace("r#", ""), LitStr::value);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
            let span = self.name.as_ref().map_or_else(|| function.span(), LitStr::span);
            let reason =
                format!("the name of a tool has 1 to {MAX_NAME} letters, digits, \"_\" and \"-\"; give `name = \"…\"`");
            return Err(syn::Error::new(span, reason));
        }
        Ok(name)
    }

    /// What the tool is said to do, checked.
    pub fn description(&self, attributes: &[Attribute], name: &str) -> Result<String> {
        let written = self.description.as_ref().map_or_else(|| doc_comment(attributes), LitStr::value);
        let description = if written.is_empty() { name.to_owned() } else { written };
        if description.chars().count() > MAX_DESCRIPTION {
            let reason = format!("the description of a tool has at most {MAX_DESCRIPTION} characters");
            return Err(syn::Error::new(proc_macro2::Span::call_site(), reason));
        }
        Ok(description)
    }
}

/// The text of a doc comment, without the space that begins each line.
fn doc_comment(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn described(given: Option<&str>, attributes: &[Attribute]) -> String {
        let literal = given.map(|text| LitStr::new(text, proc_macro2::Span::call_site()));
        Options { description: literal, ..Options::default() }.description(attributes, "named").unwrap()
    }

    #[test]
    fn a_description_is_given_or_the_doc_comment_or_the_name() {
        let comment: [Attribute; 3] = [
            parse_quote!(#[doc = " Adds two numbers."]),
            parse_quote!(#[inline]),
            parse_quote!(#[doc = "   Slowly. "]),
        ];
        assert_eq!(described(None, &comment), "Adds two numbers.\n  Slowly.");
        assert_eq!(described(Some("Given"), &comment), "Given");
        assert_eq!(described(None, &[]), "named");
    }

    #[test]
    fn names_that_brain_refuses_are_refused_here() {
        let named = |name: &str| {
            let literal = LitStr::new(name, proc_macro2::Span::call_site());
            Options { name: Some(literal), ..Options::default() }.name(&parse_quote!(function))
        };
        assert_eq!(named("a-b_C9").unwrap(), "a-b_C9");
        for bad in ["", "a b", "é", "a.b", &"n".repeat(65)] {
            assert!(named(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Options::default().name(&parse_quote!(r#type)).unwrap(), "type");
    }

    #[test]
    fn a_description_has_a_bound() {
        let literal = LitStr::new(&"é".repeat(8193), proc_macro2::Span::call_site());
        assert!(Options { description: Some(literal), ..Options::default() }.description(&[], "n").is_err());
    }
}
