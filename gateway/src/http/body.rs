//! Reading a request body that nobody vouches for: bounded in bytes and time, UTF-8, and nested only so deep.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;

use crate::fault::Fault;

/// Nesting of JSON that we follow. Arguments are flat; anything deep is an accident or an attack.
const DEPTH_MAX: usize = 64;
const READ_TIME_MAX: Duration = Duration::from_secs(30);

/// Reads the whole body, counting as it comes, whatever Content-Length says.
pub(crate) async fn read(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Bytes, Fault> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(size) = announced
        && size > bytes_max as u64
    {
        return Err(too_large(bytes_max, &format!("Content-Length is {size}")));
    }
    match tokio::time::timeout(READ_TIME_MAX, collect(body, bytes_max)).await {
        Ok(read) => read,
        Err(_) => Err(Fault::new(
            "malformed_request",
            "the body did not arrive within 30 s; send it again",
        )),
    }
}

async fn collect(mut body: Body, bytes_max: usize) -> Result<Bytes, Fault> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Fault::new("malformed_request", "the body broke off; send it again"))?;
        if let Ok(data) = frame.into_data() {
            if read.len() + data.len() > bytes_max {
                return Err(too_large(bytes_max, &format!("more than {bytes_max} bytes came")));
            }
            read.extend_from_slice(&data);
        }
    }
    Ok(read.freeze())
}

fn too_large(bytes_max: usize, actual: &str) -> Fault {
    metrics::counter!("waggle_gateway_rejected_requests_total", "reason" => "size").increment(1);
    Fault::new(
        "payload_too_large",
        format!("a request body may have {bytes_max} bytes, but {actual}; split the text into several calls"),
    )
}

/// Text of a body that is JSON of bounded depth, as far as a scan can tell.
pub(crate) fn text(bytes: &Bytes) -> Result<&str, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|why| {
        Fault::new(
            "malformed_request",
            format!("the body is not UTF-8 at byte {}", why.valid_up_to()),
        )
    })?;
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(Fault::new(
                        "malformed_request",
                        format!("JSON is nested deeper than {DEPTH_MAX}"),
                    ));
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_outside_of_strings_only() {
        let deep = |n: usize| Bytes::from(format!("{}{}", "[".repeat(n), "]".repeat(n)));
        assert!(text(&deep(64)).is_ok());
        assert!(text(&deep(65)).is_err());
        assert!(
            text(&Bytes::from(format!(
                "[\"{}\\\"{}\"]",
                "[".repeat(100),
                "{".repeat(100)
            )))
            .is_ok()
        );
        assert!(text(&Bytes::from_static(b"\xff")).is_err());
    }
}
