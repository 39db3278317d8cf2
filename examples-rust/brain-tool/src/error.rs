use std::fmt;

/// Why a tool failed: `code` is an identifier for programs, such as `cannot_read`, and `message` a sentence for people.
///
/// Every [`std::error::Error`] becomes one by `?`, with the code `tool_error` and its causes in the message. It is no
/// `std::error::Error` itself: that is what makes the conversion possible.
///
/// ```
/// use brain_tool::Error;
///
/// fn port(text: &str) -> Result<u16, Error> {
///     Ok(text.parse::<u16>()?)
/// }
///
/// assert_eq!(port("x").unwrap_err(), Error::new("tool_error", "invalid digit found in string"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`.
    pub code: String,
    /// At most 4,096 characters.
    pub message: String,
}

/// What an uncaught failure of a tool is called.
const UNNAMED: &str = "tool_error";

impl Error {
    /// An error with a code of the tool's own.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// For `map_err`: the error as the end of a sentence that says what was tried.
    ///
    /// ```
    /// use brain_tool::Error;
    ///
    /// let read = std::fs::read("/no/such/file").map_err(Error::because("cannot_read", "Cannot read the file"));
    /// assert!(read.unwrap_err().message.starts_with("Cannot read the file: No such file"));
    /// ```
    pub fn because<Cause: Into<Box<dyn std::error::Error>>>(
        code: impl Into<String>,
        attempt: impl fmt::Display,
    ) -> impl FnOnce(Cause) -> Self {
        let code = code.into();
        move |cause| Self { code, message: format!("{attempt}: {}", Self::from_any(cause).message) }
    }

    /// Any error that a tool may return: this one as it is, others by their text.
    pub(crate) fn from_any(cause: impl Into<Box<dyn std::error::Error>>) -> Self {
        match cause.into().downcast::<Carried>() {
            Ok(carried) => carried.0,
            Err(other) => Self::new(UNNAMED, with_causes(&*other)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl<Cause: std::error::Error> From<Cause> for Error {
    fn from(cause: Cause) -> Self {
        Self::new(UNNAMED, with_causes(&cause))
    }
}

/// An error on its way through a `Box<dyn Error>`, which is what a tool's own error type must convert to.
#[derive(Debug)]
struct Carried(Error);

impl fmt::Display for Carried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for Carried {}

impl From<Error> for Box<dyn std::error::Error> {
    fn from(error: Error) -> Self {
        Box::new(Carried(error))
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let reason = error.to_string();
        // Many errors say their cause themselves.
        if !text.ends_with(&reason) {
            text = format!("{text}: {reason}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(std::num::ParseIntError, &'static str);

    impl fmt::Display for Outer {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.1)
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    fn cause() -> std::num::ParseIntError {
        "x".parse::<u8>().unwrap_err()
    }

    #[test]
    fn causes_stand_in_the_message_once() {
        let told = |text| Error::from(Outer(cause(), text)).message;
        assert_eq!(told("bad port"), "bad port: invalid digit found in string");
        assert_eq!(told("bad: invalid digit found in string"), "bad: invalid digit found in string");
    }

    #[test]
    fn a_code_survives_every_way_and_other_errors_get_one() {
        let named = Error::new("no_luck", "again");
        assert_eq!(Error::from_any(named.clone()), named);
        let boxed: Box<dyn std::error::Error> = named.clone().into();
        assert_eq!(Error::from_any(boxed), named);
        assert_eq!(Error::from_any("only text"), Error::new("tool_error", "only text"));
        assert_eq!(Error::from_any(cause()).code, "tool_error");
    }
}
