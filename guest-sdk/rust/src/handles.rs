//! What handles offer beyond the functions of the WIT.

use std::time::Duration;

use crate::{browser, clock, code, http, sandbox, tools, workspace, Error};

/// How many bytes of a response [`http::Client::send`] reads.
const MAX_BODY: u64 = 8 << 20;

/// What [`http::Client::send`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub text: String,
}

impl http::Client {
    /// Makes a request with a text as its body, follows redirects that the grant allows, and returns the status and a body of at most
    /// 8 MiB. [`start`](Self::start) offers more.
    pub fn send(&self, method: &str, url: &str, body: &str) -> Result<Response, Error> {
        let exchange = self.start(http::Request {
            method: method.into(),
            url: url.into(),
            content: match body {
                "" => http::Content::None,
                text => http::Content::Text(text.into()),
            },
            ..http::Request::default()
        })?;
        exchange.subscribe(http::Stage::Whole).block();
        Ok(Response {
            status: exchange.head()?.status,
            text: exchange.text(MAX_BODY)?,
        })
    }
}

/// A GET that follows redirects, of no URL yet.
impl Default for http::Request {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            url: String::new(),
            headers: vec![],
            content: http::Content::None,
            redirect: http::Redirect::Follow,
            timeout: None,
        }
    }
}

/// All files, and no lines around a match.
impl Default for workspace::Search {
    fn default() -> Self {
        Self {
            include: vec![],
            exclude: vec![],
            context: 0,
        }
    }
}

/// Nothing to start yet, in /work and without input.
impl Default for sandbox::Command {
    fn default() -> Self {
        Self {
            argv: vec![],
            folder: String::new(),
            env: vec![],
            stdin: sandbox::Input::None,
            timeout: None,
        }
    }
}

impl clock::Clock {
    /// Waits.
    pub fn sleep(&self, time: Duration) {
        let nanoseconds = time.as_nanos().try_into().unwrap_or(u64::MAX);
        self.subscribe(nanoseconds).block();
    }
}

/// What can be taken once, when it has ended.
macro_rules! wait {
    ($($handle:ty => $result:ty, $stage:expr;)*) => {
        $(
            impl $handle {
                /// Waits for the end, and takes the result.
                pub fn wait(self) -> Result<$result, Error> {
                    let end = $stage(&self);
                    end.block();
                    self.take()
                }
            }
        )*
    };
}

wait! {
    browser::Pending => browser::Outcome, browser::Pending::subscribe;
    code::Pending => String, code::Pending::subscribe;
    sandbox::Process => sandbox::Exit, |p: &sandbox::Process| p.subscribe(sandbox::Stage::Ended);
    sandbox::Transfer => sandbox::Changes, sandbox::Transfer::subscribe;
    tools::Pending => String, tools::Pending::subscribe;
}
