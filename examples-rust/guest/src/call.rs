use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::Deserialize;

use crate::{services, Answer, Invocation, ToolError};

/// One call of a tool, decoded.
pub struct Call<Input, Options = NoOptions> {
    pub input: Input,
    /// The options with which the tool was placed, `configuration-json` on the wire.
    pub options: Options,
    /// When the host stops the tool; `None` = never.
    pub deadline: Option<SystemTime>,
}

/// The options of a tool that has none. Whatever the placement says is ignored.
#[derive(Debug, Default, Deserialize)]
pub struct NoOptions {}

impl<Input: DeserializeOwned, Options: DeserializeOwned> Call<Input, Options> {
    fn decode(invocation: &Invocation) -> Result<Self, ToolError> {
        let input = serde_json::from_str(&invocation.input_json)
            .map_err(|error| ToolError::new("invalid_input", format!("Cannot read the input: {error}")))?;
        let options = serde_json::from_str(options_text(&invocation.configuration_json))
            .map_err(|error| ToolError::new("invalid_options", format!("Cannot read the options: {error}")))?;
        Ok(Self { input, options, deadline: deadline(invocation.deadline_at_ms) })
    }
}

/// A placement without options arrives as `null`, or as nothing: both read as the empty object, so that defaults apply.
fn options_text(configuration: &str) -> &str {
    match configuration.trim() {
        "" | "null" => "{}",
        text => text,
    }
}

fn deadline(at_ms: u64) -> Option<SystemTime> {
    (at_ms != 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms))
}

/// Runs `body` for one invocation and finishes with what it came to.
///
/// The execution is finished *before* `run` returns: returning alone would leave it open until its deadline. The empty
/// text that is returned then says that there is no second result. An error needs no `finish`: the host closes the
/// execution with it.
pub fn serve<Input, Options, Output, Body>(invocation: &Invocation, body: Body) -> Result<String, ToolError>
where
    Input: DeserializeOwned,
    Options: DeserializeOwned,
    Output: Answer,
    Body: FnOnce(Call<Input, Options>) -> Result<Output, ToolError>,
{
    let answer = body(Call::decode(invocation)?)?;
    services::finish(answer)?;
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Depth {
        #[serde(default)]
        depth: u32,
    }

    fn invocation(input: &str, configuration: &str) -> Invocation {
        Invocation { input_json: input.into(), configuration_json: configuration.into(), deadline_at_ms: 0 }
    }

    #[test]
    fn input_and_options_are_decoded() {
        let call = Call::<String, Depth>::decode(&invocation("\"é\"", "{\"depth\":2}")).unwrap();
        assert_eq!((call.input.as_str(), call.options.depth, call.deadline), ("é", 2, None));
    }

    #[test]
    fn absent_options_take_their_defaults() {
        for configuration in ["", "null", "{}"] {
            assert_eq!(Call::<u8, Depth>::decode(&invocation("1", configuration)).unwrap().options.depth, 0);
        }
    }

    #[test]
    fn a_fault_says_whose_it_is() {
        let of_input = Call::<u8, Depth>::decode(&invocation("\"x\"", "{}")).err().unwrap();
        let of_options = Call::<u8, Depth>::decode(&invocation("1", "{\"depth\":-1}")).err().unwrap();
        assert_eq!((of_input.code.as_str(), of_options.code.as_str()), ("invalid_input", "invalid_options"));
    }

    #[test]
    fn a_body_that_fails_is_not_finished() {
        // Outside a component the host's functions abort, so that reaching `finish` would end this test badly.
        let result = serve(&invocation("1", ""), |_: Call<u8>| Err::<u8, _>(ToolError::new("no_luck", "again")));
        assert_eq!(result.unwrap_err().code, "no_luck");
    }

    #[test]
    fn deadlines_count_from_the_epoch() {
        assert_eq!(deadline(0), None);
        assert_eq!(deadline(1500), Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1500)));
    }
}
