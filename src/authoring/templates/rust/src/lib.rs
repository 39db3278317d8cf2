use brain_tool::{Context, Error, json};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(JsonSchema, Serialize)]
struct Greeting {
    text: String,
    /// Letters in the name
    letters: usize,
}

/// Greet somebody by name.
#[brain_tool::tool]
fn {{name_snake}}(
    /// Whom to greet
    #[schemars(length(min = 1))]
    name: &str,
    /// How often
    #[default(1)]
    #[schemars(range(min = 1, max = 10))]
    times: usize,
    context: &Context,
) -> Result<Greeting, Error> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Error::new("no_name", "Cannot greet nobody: \"name\" is blank"));
    }
    context.emit("greeted", &json!({ "name": name }))?;
    let text = vec![format!("Hello, {name}!"); times].join(" ");
    Ok(Greeting { text, letters: name.chars().filter(|character| character.is_alphabetic()).count() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brain_tool::testing::run;

    #[test]
    fn it_greets_as_often_as_it_is_told_to() {
        let recorded = run::<{{name_snake}}>(json!({ "name": "Ada", "times": 2 }));
        assert_eq!(recorded.value(), &json!({ "text": "Hello, Ada! Hello, Ada!", "letters": 3 }));
        assert_eq!(recorded.events[0].payload, json!({ "name": "Ada" }));
    }

    #[test]
    fn a_blank_name_is_refused() {
        assert_eq!(run::<{{name_snake}}>(json!({ "name": " " })).error().code, "no_name");
    }
}
