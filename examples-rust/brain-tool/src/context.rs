use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::text_of;
use crate::host::Host;
use crate::model::question;
use crate::{Answer, Error, ModelAnswer};

/// Where a granted workspace is.
pub const WORKSPACE: &str = "/workspace";

/// Where a granted scratch directory is: empty at each call and gone after it.
pub const SCRATCH: &str = "/scratch";

/// The options of a tool that has none. Whatever the placement says is ignored.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(not(target_family = "wasm"), derive(schemars::JsonSchema))]
pub struct NoOptions {}

/// What a tool knows of its call beside the input, and what it may ask of its host.
///
/// `Options` is the type of the options with which the tool was placed; [`NoOptions`] by default. What answers a number
/// answers the sequence of the record it committed in the session's journal: when it returns, the record is durable.
/// Everything that fails does so with the host's code, `cancelled` or `emit_limit` for instance, which `?` hands on.
pub struct Context<Options = NoOptions> {
    options: Options,
    deadline: Option<SystemTime>,
    workspace: PathBuf,
    host: Host,
    finished: Cell<bool>,
}

impl<Options: DeserializeOwned> Context<Options> {
    pub(crate) fn new(
        configuration_json: &str,
        deadline_at_ms: u64,
        workspace: PathBuf,
        host: Host,
    ) -> Result<Self, Error> {
        let options = serde_json::from_str(options_text(configuration_json))
            .map_err(Error::because("invalid_options", "Cannot read the options"))?;
        let deadline = (deadline_at_ms != 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_millis(deadline_at_ms));
        Ok(Self { options, deadline, workspace, host, finished: Cell::new(false) })
    }
}

/// A placement without options arrives as `null`, or as nothing: both read as the empty object, so that defaults apply.
fn options_text(configuration: &str) -> &str {
    match configuration.trim() {
        "" | "null" => "{}",
        text => text,
    }
}

impl<Options> Context<Options> {
    /// The options with which the tool was placed.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// When the host stops the tool; `None` = never.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.deadline
    }

    /// The time until the deadline; zero when it has passed, `None` = for ever.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// The workspace, [`WORKSPACE`] in a component. Without a grant there is nothing at this path.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The path that the caller of a tool means: relative paths are relative to the workspace. What leads out of it is left
    /// to the host to judge.
    pub fn workspace_path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.workspace.join(path).components().collect()
    }

    /// Commits an event of the tool's own kind.
    pub fn emit(&self, kind: &str, payload: &impl Serialize) -> Result<u64, Error> {
        self.host.emit(kind, &text_of("the event", payload)?)
    }

    /// Commits one result; the call stays open for more. [`crate::NoResult`] commits nothing.
    pub fn emit_result(&self, answer: impl Answer) -> Result<Option<u64>, Error> {
        answer.into_outcome()?.map(|outcome| self.host.emit_result(&outcome)).transpose()
    }

    /// Lets whoever waits for the call go on, with or without ([`crate::NoResult`]) a result; the tool may go on as well.
    pub fn returned(&self, answer: impl Answer) -> Result<u64, Error> {
        self.host.returned(answer.into_outcome()?.as_deref())
    }

    /// Ends the call. The host refuses everything after it, and what the function returns later does not count.
    ///
    /// A tool that returns its value needs no `finish`: it is called with that value.
    pub fn finish(&self, answer: impl Answer) -> Result<u64, Error> {
        self.close(answer.into_outcome()?.as_deref())
    }

    pub(crate) fn close(&self, outcome: Option<&str>) -> Result<u64, Error> {
        let sequence = self.host.finish(outcome)?;
        self.finished.set(true);
        Ok(sequence)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished.get()
    }

    /// Asks the session's model. Nothing is inherited: `request` is a whole request, with `messages` at least.
    pub fn model(&self, request: &impl Serialize) -> Result<ModelAnswer, Error> {
        let answer = self.host.model(&text_of("the request", request)?)?;
        serde_json::from_str(&answer).map_err(Error::because("invalid_model_answer", "Cannot read the model's answer"))
    }

    /// Asks the session's model one question. Nothing of the conversation is sent but `system` and `text`.
    pub fn ask(&self, system: &str, text: &str) -> Result<ModelAnswer, Error> {
        self.model(&question(system, text))
    }

    /// Lists, reads or controls the environments that this tool was granted.
    pub fn environments(&self, request: &impl Serialize) -> Result<Value, Error> {
        let answer = self.host.environments(&text_of("the request", request)?)?;
        serde_json::from_str(&answer).map_err(Error::because("invalid_answer", "Cannot read what the host answered"))
    }

    /// Leaves a diagnostic record in the call's log, which neither the journal nor the model sees. It never fails.
    pub fn telemetry(&self, record: &impl Serialize) {
        if let Ok(record) = text_of("the record", record) {
            self.host.telemetry(&record);
        }
    }
}
