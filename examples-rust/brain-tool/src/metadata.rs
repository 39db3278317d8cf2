//! The file `tool.json`: what Brain shows of a tool, made of its types on the author's machine.

use std::any::TypeId;
use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::RestrictFormats;
use serde_json::{Map, Value};

use crate::{Answer, Context, NoOptions, NoResult};

/// Set to `write` by `brain build`: then a file that was not up to date is no failure.
const MODE: &str = "BRAIN_TOOL_JSON";

/// A tool whose types have schemas.
pub trait Described {
    /// The content of `tool.json`.
    fn metadata() -> Value;
}

/// What the section `brain:tool-metadata` holds of a tool. The function is there for its types.
pub fn metadata<Input, Options, Output, Failure>(
    name: &str,
    description: &str,
    _: fn(Input, &Context<Options>) -> Result<Output, Failure>,
) -> Value
where
    Input: JsonSchema,
    Options: JsonSchema + 'static,
    Output: Answer,
    Output::Value: JsonSchema + 'static,
{
    let mut metadata = Map::new();
    metadata.insert("name".into(), name.into());
    metadata.insert("description".into(), description.into());
    let input = schema_of::<Input>(Contract::Deserialize).unwrap_or_default();
    metadata.insert("input_schema".into(), input.into());
    if TypeId::of::<Output::Value>() != TypeId::of::<NoResult>() {
        let output = schema_of::<Output::Value>(Contract::Serialize);
        metadata.extend(output.map(|schema| ("output_schema".to_owned(), schema.into())));
    }
    if TypeId::of::<Options>() != TypeId::of::<NoOptions>() {
        let options = schema_of::<Options>(Contract::Deserialize);
        metadata.extend(options.map(|schema| ("options_schema".to_owned(), schema.into())));
    }
    metadata.into()
}

/// The schema of a type, in the form that the APIs of models take: whole, without references, where it can be, and without
/// formats of one language such as `uint32`. `None` for a type that may be anything.
fn schema_of<T: JsonSchema>(contract: Contract) -> Option<Map<String, Value>> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.contract = contract;
    });
    let settings = settings.with_transform(RestrictFormats::default());
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut schema) = schema.to_value() else { return None };
    schema.shift_remove("$schema");
    // The name of a Rust type says nothing to a model. Titles that somebody wrote stay.
    if schema.get("title").and_then(Value::as_str) == Some(&*T::schema_name()) {
        schema.shift_remove("title");
    }
    (!schema.is_empty()).then_some(schema)
}

/// Compares `tool.json` with what the types say, and writes it where it differs.
///
/// # Panics
///
/// When the file had to be written, so that a test run on another machine notices, and when it could not be.
pub fn keep(crate_directory: &str, metadata: &Value) {
    let path = Path::new(crate_directory).join("tool.json");
    let kept = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    if kept.as_ref() == Some(metadata) {
        return;
    }
    if let Err(error) = fs::write(&path, format!("{metadata:#}\n")) {
        panic!("Cannot write {path:?}: {error}");
    }
    if std::env::var(MODE).as_deref() != Ok("write") {
        panic!("{path:?} was not what the types say; it is now. Look at the difference, and run the tests again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, WithContent, json, with_content};
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "nothing reads it")]
    struct Input {
        /// What to look at.
        zone: Zone,
        #[serde(default = "three")]
        #[schemars(range(max = 9))]
        attempts: u32,
        note: Option<String>,
    }

    fn three() -> u32 {
        3
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Zone {
        North,
        South,
    }

    #[derive(JsonSchema, Serialize)]
    struct Output {
        #[serde(default)]
        id: uuid_like::Id,
    }

    mod uuid_like {
        #[derive(Default, schemars::JsonSchema, serde::Serialize)]
        pub struct Id(#[schemars(extend("format" = "uuid"))] String);
    }

    #[test]
    fn schemas_are_whole_and_in_the_order_of_the_fields() {
        let made =
            metadata("look", "Looks", |_: Input, _: &Context| Ok::<Output, Error>(Output { id: Default::default() }));
        let expected = json!({
            "name": "look",
            "description": "Looks",
            "input_schema": {
                "type": "object",
                "properties": {
                    "zone": { "description": "What to look at.", "type": "string", "enum": ["north", "south"] },
                    "attempts": { "type": "integer", "minimum": 0, "maximum": 9, "default": 3 },
                    "note": { "type": ["string", "null"] },
                },
                "additionalProperties": false,
                "required": ["zone"],
            },
            "output_schema": {
                "type": "object",
                "properties": { "id": { "type": "string", "format": "uuid", "default": "" } },
                "required": ["id"],
            },
        });
        assert_eq!(made, expected);
        let text = made.to_string();
        let places = ["zone", "attempts", "note"].map(|name| text.find(&format!("\"{name}\":")).unwrap());
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn what_may_be_anything_has_no_schema_of_its_own() {
        let made = metadata("any", "Any", |_: Value, _: &Context<Value>| Ok::<Value, Error>(Value::Null));
        assert_eq!(made, json!({ "name": "any", "description": "Any", "input_schema": {} }));
        let nothing = metadata("no", "No", |_: Value, _: &Context| Ok::<NoResult, Error>(NoResult));
        assert_eq!(nothing.get("output_schema"), None);
    }

    #[test]
    fn options_and_values_with_content_are_described() {
        let made =
            metadata("a", "A", |_: Value, _: &Context<Zone>| Ok::<WithContent<u8>, Error>(with_content(1, "one")));
        assert_eq!(made["output_schema"], json!({ "type": "integer", "minimum": 0, "maximum": 255 }));
        assert_eq!(made["options_schema"], json!({ "type": "string", "enum": ["north", "south"] }));
    }

    #[test]
    fn a_file_that_differs_is_written_and_said() {
        let directory = std::env::temp_dir().join(format!("brain-tool-json-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let (place, path) = (directory.to_str().unwrap(), directory.join("tool.json"));
        let attempt = |value: Value| std::panic::catch_unwind(|| keep(place, &value)).is_err();
        assert!(attempt(json!({ "name": "a" })));
        assert!(!attempt(json!({ "name": "a" })));
        // Another layout says the same.
        fs::write(&path, "{\n\"name\"   :\"a\"}").unwrap();
        assert!(!attempt(json!({ "name": "a" })));
        assert!(attempt(json!({ "name": "b" })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"name\": \"b\"\n}\n");
        fs::remove_dir_all(&directory).unwrap();
    }
}
