//! Writing envelopes: the outer object by hand, the inner value by serde, each byte once.

use bytes::Bytes;
use serde::Serialize;

use crate::{MethodName, RequestId, RpcError};

/// A request with its parameters.
///
/// # Errors
/// When `params` cannot be serialised.
pub fn write_request<P: Serialize + ?Sized>(
    id: &RequestId,
    method: &MethodName,
    params: &P,
) -> serde_json::Result<Bytes> {
    let mut out = start(Some(id))?;
    out.extend_from_slice(b",\"method\":");
    serde_json::to_writer(&mut out, method.as_str())?;
    out.extend_from_slice(b",\"params\":");
    serde_json::to_writer(&mut out, params)?;
    Ok(end(out))
}

/// A notification with its parameters.
///
/// # Errors
/// When `params` cannot be serialised.
pub fn write_notification<P: Serialize + ?Sized>(
    method: &MethodName,
    params: &P,
) -> serde_json::Result<Bytes> {
    let mut out = start(None)?;
    out.extend_from_slice(b",\"method\":");
    serde_json::to_writer(&mut out, method.as_str())?;
    out.extend_from_slice(b",\"params\":");
    serde_json::to_writer(&mut out, params)?;
    Ok(end(out))
}

/// A successful response. `write_result` appends one JSON value to the buffer.
///
/// # Errors
/// Whatever `write_result` fails with.
pub fn write_response<E: From<serde_json::Error>>(
    id: &RequestId,
    write_result: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<Bytes, E> {
    let mut out = start(Some(id))?;
    out.extend_from_slice(b",\"result\":");
    write_result(&mut out)?;
    Ok(end(out))
}

/// An error response. Without an id when the request's was unreadable: `null` is not an id.
pub fn write_error(id: Option<&RequestId>, error: &RpcError) -> Bytes {
    let write = || -> serde_json::Result<Bytes> {
        let mut out = start(id)?;
        out.extend_from_slice(b",\"error\":");
        serde_json::to_writer(&mut out, error)?;
        Ok(end(out))
    };
    // Numbers, strings and raw JSON always serialise, so the other branch is never taken.
    write().unwrap_or_else(|_| {
        Bytes::from_static(br#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"internal error"}}"#)
    })
}

fn start(id: Option<&RequestId>) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(TYPICAL_MESSAGE_BYTES);
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        serde_json::to_writer(&mut out, id)?;
    }
    Ok(out)
}

fn end(mut out: Vec<u8>) -> Bytes {
    out.push(b'}');
    out.into()
}

/// Most answers fit, so that the buffer is allocated once.
const TYPICAL_MESSAGE_BYTES: usize = 512;
