//! The host where there is no component: it writes down what a tool asks for, and answers as a test tells it to.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::Error;
use crate::testing::Event;

/// Answers a request, or refuses it.
pub type Answering = Box<dyn FnMut(&Value) -> Result<Value, Error>>;

/// What a call left behind so far.
#[derive(Default)]
pub struct Recording {
    pub events: Vec<Event>,
    pub results: Vec<Value>,
    pub telemetry: Vec<Value>,
    pub has_returned: bool,
    pub end: Option<Value>,
    sequence: u64,
}

impl Recording {
    fn open(&self) -> Result<(), Error> {
        if self.end.is_some() {
            return Err(Error::new("invalid_request", "execution is finished"));
        }
        Ok(())
    }

    fn commit(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

#[derive(Clone, Default)]
pub struct Host {
    pub recording: Rc<RefCell<Recording>>,
    pub model: Rc<RefCell<Option<Answering>>>,
    pub environments: Rc<RefCell<Option<Answering>>>,
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("what the crate sends is JSON")
}

impl Host {
    fn ask(&self, service: &RefCell<Option<Answering>>, what: &str, request: &str) -> Result<String, Error> {
        self.recording.borrow().open()?;
        let refused = || Error::new("unsupported_host_call", format!("this test has no {what}"));
        let mut service = service.borrow_mut();
        Ok(service.as_mut().ok_or_else(refused)?(&parsed(request))?.to_string())
    }

    pub fn environments(&self, request: &str) -> Result<String, Error> {
        self.ask(&self.environments, "environments", request)
    }

    pub fn model(&self, request: &str) -> Result<String, Error> {
        self.ask(&self.model, "model", request)
    }

    pub fn emit(&self, kind: &str, payload: &str) -> Result<u64, Error> {
        let mut recording = self.recording.borrow_mut();
        recording.open()?;
        recording.events.push(Event { kind: kind.to_owned(), payload: parsed(payload) });
        Ok(recording.commit())
    }

    pub fn emit_result(&self, outcome: &str) -> Result<u64, Error> {
        let mut recording = self.recording.borrow_mut();
        recording.open()?;
        recording.results.push(parsed(outcome));
        Ok(recording.commit())
    }

    pub fn returned(&self, outcome: Option<&str>) -> Result<u64, Error> {
        let mut recording = self.recording.borrow_mut();
        recording.open()?;
        if recording.has_returned {
            return Err(Error::new("invalid_request", "execution has returned"));
        }
        recording.has_returned = true;
        recording.results.extend(outcome.map(parsed));
        Ok(recording.commit())
    }

    pub fn finish(&self, outcome: Option<&str>) -> Result<u64, Error> {
        let mut recording = self.recording.borrow_mut();
        recording.open()?;
        let result = outcome.map(parsed);
        recording.results.extend(result.clone());
        recording.end = Some(result.unwrap_or_else(|| serde_json::json!({ "status": "ok", "value": null })));
        Ok(recording.commit())
    }

    pub fn telemetry(&self, record: &str) {
        self.recording.borrow_mut().telemetry.push(parsed(record));
    }
}
