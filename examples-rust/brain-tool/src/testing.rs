//! Runs tools in unit tests, on this machine, with a host that writes down what they ask for.
//!
//! ```
//! use brain_tool::testing::{run, Call};
//! use brain_tool::{json, Context, Error};
//!
//! /// Greets somebody.
//! #[brain_tool::tool]
//! fn greet(name: String, context: &Context) -> Result<String, Error> {
//!     context.emit("greeted", &json!({ "name": name }))?;
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! let recorded = run::<greet>(json!({ "name": "Ada" }));
//! assert_eq!(recorded.value(), "Hello, Ada!");
//! assert_eq!(recorded.events[0].kind, "greeted");
//!
//! let refused = Call::<greet>::new(json!({ "nam": "Ada" })).run();
//! assert_eq!(refused.error().code, "invalid_input");
//! ```

use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::{Value, json};

use crate::context::WORKSPACE;
use crate::host::{Answering, Host};
use crate::{Context, Error, Tool, call};

/// An event that a tool emitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its kind.
    pub kind: String,
    /// Its payload.
    pub payload: Value,
}

/// What a call left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// In order.
    pub events: Vec<Event>,
    /// The Outcome of every result, the last one included, in order.
    pub results: Vec<Value>,
    /// The Outcome that the call ended with: `{"status": "ok", "value": …}` or `{"status": "error", "error": {"code", "message"}}`.
    pub outcome: Value,
    /// Records for the call's log.
    pub telemetry: Vec<Value>,
}

impl Recorded {
    /// The value that the call ended with.
    ///
    /// # Panics
    ///
    /// When it ended otherwise; the message has its outcome.
    #[track_caller]
    pub fn value(&self) -> &Value {
        assert_eq!(self.outcome["status"], "ok", "the call failed: {}", self.outcome);
        &self.outcome["value"]
    }

    /// The error that the call ended with.
    ///
    /// # Panics
    ///
    /// When it ended otherwise; the message has its outcome.
    #[track_caller]
    pub fn error(&self) -> Error {
        assert_eq!(self.outcome["status"], "error", "the call did not fail: {}", self.outcome);
        let text = |member: &str| self.outcome["error"][member].as_str().unwrap_or_default().to_owned();
        Error { code: text("code"), message: text("message") }
    }
}

/// Calls a tool with this input, and with nothing else.
pub fn run<T: Tool>(input: impl Serialize) -> Recorded {
    Call::<T>::new(input).run()
}

/// A call to be made: its input, and what is there for the tool.
pub struct Call<T> {
    input: String,
    options: Value,
    deadline_at_ms: u64,
    workspace: PathBuf,
    model: Option<Answering>,
    environments: Option<Answering>,
    tool: PhantomData<T>,
}

impl<T: Tool> Call<T> {
    /// # Panics
    ///
    /// When the input cannot be written as JSON.
    pub fn new(input: impl Serialize) -> Self {
        Self {
            input: serde_json::to_string(&input).expect("an input is JSON"),
            options: Value::Null,
            deadline_at_ms: 0,
            workspace: PathBuf::from(WORKSPACE),
            model: None,
            environments: None,
            tool: PhantomData,
        }
    }

    /// What the tool is placed with; by default nothing.
    pub fn options(mut self, options: Value) -> Self {
        self.options = options;
        self
    }

    /// How long the call may take; by default for ever. Nothing stops a call in a test: it only knows.
    pub fn time(mut self, time: Duration) -> Self {
        let deadline = SystemTime::now() + time;
        let since_epoch = deadline.duration_since(SystemTime::UNIX_EPOCH).expect("it is later than 1970");
        self.deadline_at_ms = since_epoch.as_millis().try_into().expect("a deadline is near");
        self
    }

    /// A directory that is the workspace; by default `/workspace`, which is rarely there.
    pub fn workspace(mut self, directory: impl Into<PathBuf>) -> Self {
        self.workspace = directory.into();
        self
    }

    /// A model that says this to everything; by default there is none.
    pub fn model_says(self, text: &str) -> Self {
        let content = json!([{ "type": "text", "text": text }]);
        let answer =
            json!({ "message": { "role": "assistant", "content": content }, "stop_reason": "end_turn", "usage": {} });
        self.model(move |_| Ok(answer.clone()))
    }

    /// A model: what it is asked, and its whole answer.
    pub fn model(mut self, answer: impl FnMut(&Value) -> Result<Value, Error> + 'static) -> Self {
        self.model = Some(Box::new(answer));
        self
    }

    /// What answers requests for environments; by default nothing does.
    pub fn environments(mut self, answer: impl FnMut(&Value) -> Result<Value, Error> + 'static) -> Self {
        self.environments = Some(Box::new(answer));
        self
    }

    /// Makes the call. Everything that goes wrong is in the outcome; only a panic of the tool is a panic here.
    pub fn run(self) -> Recorded {
        let host = Host::default();
        host.model.replace(self.model);
        host.environments.replace(self.environments);
        let options = self.options.to_string();
        let ended = Context::new(&options, self.deadline_at_ms, self.workspace, host.clone())
            .and_then(|context| call::run::<T>(&self.input, &context));
        let recording = host.recording.take();
        let failure = ended.err().map(|error| json!({ "code": error.code, "message": error.message }));
        let failed = failure.map(|error| json!({ "status": "error", "error": error }));
        Recorded {
            events: recording.events,
            results: recording.results,
            outcome: recording.end.or(failed).expect("a call ends with an outcome or an error"),
            telemetry: recording.telemetry,
        }
    }
}
