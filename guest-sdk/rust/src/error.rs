use std::fmt;

use crate::bindings::exports::stile::extension::tools;
use crate::Error;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Denied(d) => write!(f, "{}: denied: {}", d.operation, d.reason),
            Error::Revoked(reason) => write!(f, "revoked: {reason}"),
            Error::Expired => f.write_str("expired"),
            Error::Exhausted(limit) => write!(f, "exhausted: {limit}"),
            Error::TimedOut => f.write_str("timed out"),
            Error::TooLarge(limit) => write!(f, "too large: the limit is {limit} bytes"),
            Error::NotFound(what) => write!(f, "not found: {what}"),
            Error::AlreadyExists(what) => write!(f, "already exists: {what}"),
            Error::Conflict(what) => write!(f, "conflict: {what}"),
            Error::Invalid(what) => write!(f, "invalid: {what}"),
            Error::Unavailable(what) => write!(f, "unavailable: {what}"),
            Error::Interrupted(what) => write!(f, "interrupted: {what}"),
        }
    }
}

/// The failure of a tool that returned this error. A denial stays one, whatever was said around it.
pub(crate) fn failure(error: &anyhow::Error) -> tools::Error {
    let name = match error.chain().find_map(|e| e.downcast_ref::<Error>()) {
        Some(Error::Denied(denial)) => return tools::Error::Denied(denial.clone()),
        Some(_) => "CapabilityError",
        None => "Error",
    };
    tools::Error::Failed(tools::Failure {
        name: name.into(),
        message: format!("{error:#}"),
        stack: String::new(),
    })
}
