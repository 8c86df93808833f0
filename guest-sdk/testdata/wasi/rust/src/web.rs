//! A client of http on the crate `wasi`, as its examples are.

use std::error::Error;

use wasi::http::outgoing_handler;
use wasi::http::types::{Fields, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme};
use wasi::io::streams::StreamError;

type Done = Result<String, Box<dyn Error>>;

/// Gets a URL. A body after a space is posted.
pub fn get(text: &str) -> Done {
    let (url, body) = text.split_once(' ').unwrap_or((text, ""));
    let (scheme, rest) = url.split_once("://").ok_or("no scheme")?;
    let at = rest.find('/').unwrap_or(rest.len());
    let headers = Fields::new();
    headers.append(&"accept".into(), &b"text/plain".to_vec())?;
    if !body.is_empty() {
        headers.append(&"content-length".into(), &body.len().to_string().into_bytes())?;
    }
    let request = OutgoingRequest::new(headers);
    request.set_method(if body.is_empty() { &Method::Get } else { &Method::Post }).map_err(|()| "method")?;
    request.set_scheme(Some(if scheme == "http" { &Scheme::Http } else { &Scheme::Https })).map_err(|()| "scheme")?;
    request.set_authority(Some(&rest[..at])).map_err(|()| "authority")?;
    request.set_path_with_query(Some(if at == rest.len() { "/" } else { &rest[at..] })).map_err(|()| "path")?;
    let options = RequestOptions::new();
    options.set_first_byte_timeout(Some(5_000_000_000)).map_err(|()| "timeout")?;
    let outgoing = request.body().map_err(|()| "body")?;
    let answer = outgoing_handler::handle(request, Some(options))?;
    {
        let stream = outgoing.write().map_err(|()| "write")?;
        for piece in body.as_bytes().chunks(4096) {
            stream.blocking_write_and_flush(piece)?;
        }
    }
    OutgoingBody::finish(outgoing, None)?;
    answer.subscribe().block();
    let response = answer.get().ok_or("no answer")?.map_err(|()| "taken")??;
    let kind = response.headers().get(&"content-type".into()).pop().unwrap_or_default();
    let incoming = response.consume().map_err(|()| "consumed")?;
    let stream = incoming.stream().map_err(|()| "streamed")?;
    let mut all = Vec::new();
    loop {
        match stream.blocking_read(65536) {
            Ok(bytes) => all.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(e)) => return Err(wasi::http::types::http_error_code(&e).map_or(e.to_debug_string(), |c| format!("{c:?}")).into()),
        }
    }
    let text = String::from_utf8_lossy(&all);
    let shown = if all.len() > 100 { format!("{} bytes", all.len()) } else { text.into_owned() };
    Ok(format!("{} {} {shown}", response.status(), String::from_utf8_lossy(&kind)))
}
