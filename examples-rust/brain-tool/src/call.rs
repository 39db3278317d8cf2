use serde::de::DeserializeOwned;

use crate::{Context, Error};

/// A function with the attribute [`macro@crate::tool`], as a type of the same name.
pub trait Tool {
    /// What the tool may be placed with.
    type Options: DeserializeOwned;

    /// Runs the function and answers the Outcome to finish with, as JSON; nothing for no result.
    #[doc(hidden)]
    fn call(input_json: &str, context: &Context<Self::Options>) -> Result<Option<String>, Error>;
}

/// Reads the input of a call.
pub fn input_of<Input: DeserializeOwned>(json: &str) -> Result<Input, Error> {
    serde_json::from_str(json).map_err(Error::because("invalid_input", "Cannot read the input"))
}

/// Runs a tool and finishes with what it came to, unless it finished by itself.
///
/// The call is finished *before* it returns: returning alone would leave it open until its deadline. An error needs no
/// `finish`: the host ends the call with it.
pub(crate) fn run<T: Tool>(input_json: &str, context: &Context<T::Options>) -> Result<(), Error> {
    let answer = T::call(input_json, context);
    if context.is_finished() {
        if let Err(error) = answer {
            context.telemetry(&format_args!("failed after it had finished: {error}"));
        }
        return Ok(());
    }
    context.close(answer?.as_deref())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::Deserialize;

    use crate::testing::{Call, run};
    use crate::{Context, Error, NoResult, Value, json, tool};

    #[derive(Deserialize)]
    struct Depth {
        #[serde(default)]
        depth: u32,
    }

    #[tool(handwritten)]
    fn whole(input: Vec<u8>) -> usize {
        input.len()
    }

    #[tool(handwritten)]
    fn pattern(Depth { depth }: Depth) -> u32 {
        depth
    }

    #[tool(handwritten)]
    fn nothing() -> &'static str {
        "done"
    }

    #[tool(handwritten)]
    fn members(
        text: &str,
        numbers: &[i64],
        #[serde(rename = "type")] kind: Option<String>,
        #[default(3)] times: u8,
        #[default("x")] mark: String,
    ) -> Value {
        json!([text, numbers, kind, times, mark])
    }

    #[test]
    fn the_input_is_one_value_or_the_parameters_are_its_members() {
        assert_eq!(run::<whole>([1, 2]).value(), 2);
        assert_eq!(run::<pattern>(json!({ "depth": 4 })).value(), 4);
        assert_eq!(run::<nothing>(json!({})).value(), "done");
        let least = run::<members>(json!({ "text": "é", "numbers": [] }));
        assert_eq!(least.value(), &json!(["é", [], null, 3, "x"]));
        let all = json!({ "mark": "m", "times": 0, "type": "k", "numbers": [-1], "text": "" });
        assert_eq!(run::<members>(all).value(), &json!(["", [-1], "k", 0, "m"]));
    }

    #[test]
    fn an_input_that_does_not_fit_is_refused_before_the_function_is_called() {
        let refused = |input: Value| run::<members>(input).error();
        let of_type = refused(json!({ "text": 1, "numbers": [] }));
        assert_eq!(of_type.code, "invalid_input");
        assert!(of_type.message.starts_with("Cannot read the input: invalid type: integer `1`, expected a string"));
        assert!(refused(json!({ "text": "" })).message.contains("missing field `numbers`"));
        assert!(refused(json!({ "text": "", "numbers": [], "more": 1 })).message.contains("unknown field `more`"));
        assert_eq!(run::<nothing>(json!({ "more": 1 })).error().code, "invalid_input");
    }

    #[tool(handwritten)]
    fn placed(context: &Context<Depth>) -> u32 {
        context.options().depth
    }

    #[test]
    fn absent_options_take_their_defaults_and_wrong_ones_are_refused() {
        let with = |options| Call::<placed>::new(json!({})).options(options).run();
        assert_eq!(with(json!({ "depth": 2 })).value(), 2);
        assert_eq!((with(Value::Null).value(), with(json!({})).value()), (&json!(0), &json!(0)));
        assert_eq!(with(json!({ "depth": -1 })).error().code, "invalid_options");
    }

    #[tool(handwritten)]
    fn late(context: &Context) -> Value {
        json!([context.deadline().is_some(), context.remaining().map(|left| left <= Duration::from_secs(60))])
    }

    #[test]
    fn a_tool_knows_how_long_it_may_take() {
        assert_eq!(run::<late>(json!({})).value(), &json!([false, null]));
        let timed = Call::<late>::new(json!({})).time(Duration::from_secs(60)).run();
        assert_eq!(timed.value(), &json!([true, true]));
    }

    type Boxed = Box<dyn std::error::Error>;

    #[tool(handwritten)]
    fn parsed(text: &str) -> Result<i32, std::num::ParseIntError> {
        text.parse()
    }

    #[tool(handwritten)]
    fn said(input: String) -> Result<(), String> {
        Err(input)
    }

    #[tool(handwritten)]
    fn boxed(input: String) -> Result<(), Boxed> {
        Err(Error::new("no_luck", input))?
    }

    #[test]
    fn errors_of_any_kind_are_returned() {
        assert_eq!(run::<parsed>(json!({ "text": "7" })).value(), 7);
        let invalid = run::<parsed>(json!({ "text": "x" })).error();
        assert_eq!(invalid, Error::new("tool_error", "invalid digit found in string"));
        assert_eq!(run::<said>("words").error(), Error::new("tool_error", "words"));
        assert_eq!(run::<boxed>("words").error(), Error::new("no_luck", "words"));
    }

    #[tool(handwritten)]
    fn speaks(step: &str, context: &Context) -> Result<Value, Error> {
        match step {
            "returned" => drop(context.returned(1)?),
            "twice" => drop(context.returned(NoResult).and_then(|_| context.returned(2))?),
            "finish" | "fail" => {
                context.emit_result(Error::new("half", "failed"))?;
                context.finish(2)?;
                assert_eq!(context.emit("late", &0).unwrap_err().code, "invalid_request");
            }
            _ => {}
        }
        if step == "fail" { Err(Error::new("late", "too late")) } else { Ok(json!(3)) }
    }

    fn spoken(step: &str) -> crate::testing::Recorded {
        run::<speaks>(json!({ "step": step }))
    }

    fn ok(value: u8) -> Value {
        json!({ "status": "ok", "value": value })
    }

    #[test]
    fn returning_finishes_unless_the_tool_did_by_itself() {
        assert_eq!(spoken("").results, [ok(3)]);
        assert_eq!(spoken("returned").results, [ok(1), ok(3)]);
        let half = json!({ "status": "error", "error": { "code": "half", "message": "failed" } });
        for step in ["finish", "fail"] {
            let finished = spoken(step);
            assert_eq!((finished.value(), &finished.results), (&json!(2), &vec![half.clone(), ok(2)]));
        }
        assert_eq!(spoken("fail").telemetry, ["failed after it had finished: too late"]);
    }

    #[test]
    fn what_the_host_refuses_ends_the_call_with_its_code() {
        assert_eq!(spoken("twice").error().code, "invalid_request");
    }

    #[tool(handwritten)]
    fn asks(context: &Context) -> Result<Value, Error> {
        context.telemetry(&json!({ "asking": true }));
        let environments = context.environments(&json!({ "operation": "list" }))?;
        Ok(json!([context.ask("Be short.", "Why?")?.text(), environments]))
    }

    #[test]
    fn services_are_those_of_the_test() {
        let call = || Call::<asks>::new(json!({})).environments(|request| Ok(request["operation"].clone()));
        assert_eq!(call().model_says("Because.").run().value(), &json!(["Because.", "list"]));
        assert_eq!(call().run().error().code, "unsupported_host_call");
        assert_eq!(call().model(|_| Ok(json!([]))).run().error().code, "invalid_model_answer");
        let refused = call().model(|_| Err(Error::new("model_call_limit", "no more"))).run();
        assert_eq!((refused.error().code.as_str(), refused.telemetry.len()), ("model_call_limit", 1));
    }

    #[tool(handwritten)]
    fn places(paths: &[String], context: &Context) -> Vec<String> {
        paths.iter().map(|path| context.workspace_path(path).display().to_string()).collect()
    }

    #[test]
    fn relative_paths_mean_the_workspace_and_parents_are_left_to_the_host() {
        let given = ["", ".", "./notes/a.txt", "notes//a.txt/", "/workspace/a", "/scratch/a", "../secret"];
        let meant = [
            "/workspace",
            "/workspace",
            "/workspace/notes/a.txt",
            "/workspace/notes/a.txt",
            "/workspace/a",
            "/scratch/a",
            "/workspace/../secret",
        ];
        assert_eq!(run::<places>(json!({ "paths": given })).value(), &json!(meant));
    }
}
