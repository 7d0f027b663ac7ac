//! What a resource may return.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::Serialize;
use toolwire_protocol::{
    ErrorCode, RpcError,
    wire::{
        BlobResourceContents, ReadResourceResult, ResourceContents, ResourceNotFoundData,
        TextResourceContents,
    },
};

use super::{Failure, Json, NotFound};
use crate::{Reply, layer::BoxError};

/// What is known of the resource that is being read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResourceInfo<'a> {
    /// The URI that was asked for.
    pub uri: &'a str,
    /// The media type given at registration.
    pub mime_type: Option<&'a str>,
}

/// A return type of a resource.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    label = "not a resource output",
    note = "return a `String` (text), `Vec<u8>` or `Bytes` (binary), `Json<T>`, `ResourceContents`, a list of them, a `ReadResourceResult`, or an `Option` or `Result` of one of them (`None` means not found)"
)]
pub trait IntoResource {
    /// Makes the contents, or the error that the request fails with.
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError>;
}

impl IntoResource for Reply {
    fn into_resource(self, _: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        Ok(self)
    }
}

impl IntoResource for ReadResourceResult {
    fn into_resource(self, _: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        Ok(Reply::ReadResource(self))
    }
}

impl IntoResource for Vec<ResourceContents> {
    fn into_resource(self, _: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        Ok(Reply::ReadResource(ReadResourceResult::new(self)))
    }
}

impl IntoResource for ResourceContents {
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        vec![self].into_resource(info)
    }
}

impl IntoResource for String {
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        text(self, info, "text/plain")
    }
}

impl IntoResource for &'static str {
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        text(self.to_owned(), info, "text/plain")
    }
}

impl IntoResource for Vec<u8> {
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        blob(&self, info)
    }
}

impl IntoResource for Bytes {
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        blob(&self, info)
    }
}

impl<T: Serialize> IntoResource for Json<T> {
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        let json = serde_json::to_string(&self.0).map_err(|error| {
            tracing::error!(%error, uri = info.uri, "a resource could not be serialised");
            RpcError::internal("the resource could not be serialised")
        })?;
        text(json, info, "application/json")
    }
}

impl<T: IntoResource> IntoResource for Option<T> {
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        self.map_or_else(|| Err(not_found(info.uri)), |output| output.into_resource(info))
    }
}

impl<T: IntoResource, E: Into<BoxError>> IntoResource for Result<T, E> {
    fn into_resource(self, info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        match self {
            Ok(output) => output.into_resource(info),
            Err(error) => {
                let error = error.into();
                if error.is::<NotFound>() {
                    return Err(not_found(info.uri));
                }
                Ok(Reply::Failed(Failure::new(error)))
            }
        }
    }
}

/// The neutral form of "not found"; the codec gives it the number that the caller's revision has for it.
pub(crate) fn not_found(uri: &str) -> RpcError {
    RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, format!("resource not found: {uri:?}"))
        .with_data(&ResourceNotFoundData::new(uri))
}

fn text(text: String, info: ResourceInfo<'_>, default: &str) -> Result<Reply, RpcError> {
    let contents = TextResourceContents::new(info.uri, text).mime_type(info.mime_type.unwrap_or(default));
    ResourceContents::Text(contents).into_resource(info)
}

fn blob(bytes: &[u8], info: ResourceInfo<'_>) -> Result<Reply, RpcError> {
    let contents = BlobResourceContents::new(info.uri, BASE64_STANDARD.encode(bytes))
        .mime_type(info.mime_type.unwrap_or("application/octet-stream"));
    ResourceContents::Blob(contents).into_resource(info)
}
