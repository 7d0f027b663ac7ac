//! Writing results: the body once by serde, what the revision demands around it.

use serde::Serialize;

use super::Adapt;
use crate::{
    Version,
    wire::{
        CacheHint, CacheScope, CallToolResult, CompleteResult, DiscoverResult, EmptyResult, GetPromptResult,
        Implementation, InitializeResult, InputRequiredResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Meta, ReadResourceResult,
        SubscriptionsListenResult, meta::SERVER_INFO,
    },
};

/// A result that the codec can write for any revision.
pub trait WireResult: Serialize + Adapt {
    /// What `resultType` says in the modern era.
    const RESULT_TYPE: &'static str = "complete";

    /// Takes `_meta` out, so that it can be merged with what the codec adds.
    fn take_meta(&mut self) -> Option<Meta>;

    /// Takes the caching hints out; `None` for results that have none.
    fn take_cache_hint(&mut self) -> Option<CacheHint> {
        None
    }
}

/// Writes the results of one server.
///
/// ```
/// use toolwire_protocol::{Version, codec::ResultCodec, wire::{EmptyResult, Implementation}};
///
/// let codec = ResultCodec::new(&Implementation::new("demo", "1.0"));
/// let mut out = Vec::new();
/// codec.write(Version::V2025_11_25, EmptyResult::new(), &mut out).unwrap();
/// assert_eq!(out, b"{}");
/// out.clear();
/// codec.write(Version::V2026_07_28, EmptyResult::new(), &mut out).unwrap();
/// assert!(out.starts_with(br#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":"#));
/// ```
#[derive(Clone, Debug)]
pub struct ResultCodec {
    /// `"io.modelcontextprotocol/serverInfo":{…}`, serialised once for the life of the server.
    server_info: Box<[u8]>,
}

impl ResultCodec {
    /// A codec for the server that is known by `info`.
    pub fn new(info: &Implementation) -> Self {
        let mut member = format!("\"{SERVER_INFO}\":").into_bytes();
        match serde_json::to_vec(info) {
            Ok(info) => member.extend_from_slice(&info),
            // Strings and numbers always serialise; an empty member list keeps the JSON whole if not.
            Err(_) => member.clear(),
        }
        Self { server_info: member.into() }
    }

    /// Appends `result` as the JSON value that `version` expects.
    ///
    /// # Errors
    /// When the body cannot be serialised.
    pub fn write<R: WireResult>(
        &self,
        version: Version,
        mut result: R,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        result.adapt(version);
        if !version.is_modern() {
            // The hints are modern; a handler may have set them for whoever understands them.
            result.take_cache_hint();
            return serde_json::to_writer(out, &result);
        }
        let meta = result.take_meta();
        let hint = result.take_cache_hint();
        self.write_stamped(R::RESULT_TYPE, meta.as_ref(), hint, &result, out)
    }

    /// Appends any JSON object with the modern stamps; for results outside the model.
    ///
    /// # Errors
    /// When the body cannot be serialised.
    pub fn write_custom<R: Serialize>(
        &self,
        version: Version,
        result: &R,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        if version.is_modern() {
            self.write_stamped("complete", None, None, result, out)
        } else {
            serde_json::to_writer(out, result)
        }
    }

    fn write_stamped<R: Serialize>(
        &self,
        result_type: &str,
        meta: Option<&Meta>,
        hint: Option<CacheHint>,
        body: &R,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        out.extend_from_slice(b"{\"resultType\":\"");
        out.extend_from_slice(result_type.as_bytes());
        out.push(b'"');
        if let Some(CacheHint { ttl_ms, scope }) = hint {
            out.extend_from_slice(b",\"ttlMs\":");
            serde_json::to_writer(&mut *out, &ttl_ms)?;
            out.extend_from_slice(match scope {
                CacheScope::Public => b",\"cacheScope\":\"public\"".as_slice(),
                CacheScope::Private => b",\"cacheScope\":\"private\"",
            });
        }
        out.extend_from_slice(b",\"_meta\":{");
        out.extend_from_slice(&self.server_info);
        for (key, value) in meta.into_iter().flat_map(Meta::iter).filter(|(key, _)| *key != SERVER_INFO) {
            out.push(b',');
            serde_json::to_writer(&mut *out, key)?;
            out.push(b':');
            serde_json::to_writer(&mut *out, value)?;
        }
        out.push(b'}');
        // The body is an object of its own; its opening brace becomes the comma between the two parts.
        let at = out.len();
        serde_json::to_writer(&mut *out, body)?;
        if out.get(at + 1) == Some(&b'}') {
            out.remove(at);
        } else if let Some(brace) = out.get_mut(at) {
            *brace = b',';
        }
        Ok(())
    }
}

macro_rules! wire_result {
    ($($result:ty $(, $kind:literal)?;)+) => {$(
        impl WireResult for $result {
            $(const RESULT_TYPE: &'static str = $kind;)?

            fn take_meta(&mut self) -> Option<Meta> {
                self.result_type = None;
                self.meta.take()
            }
        }
    )+};
    (cacheable: $($result:ty;)+) => {$(
        impl WireResult for $result {
            fn take_meta(&mut self) -> Option<Meta> {
                self.result_type = None;
                self.meta.take()
            }

            fn take_cache_hint(&mut self) -> Option<CacheHint> {
                Some(CacheHint::of(self.ttl_ms.take(), self.cache_scope.take()))
            }
        }
    )+};
}

wire_result! {
    CallToolResult;
    GetPromptResult;
    CompleteResult;
    EmptyResult;
    SubscriptionsListenResult;
    InputRequiredResult, "input_required";
}

wire_result! {
    cacheable:
    DiscoverResult;
    ListToolsResult;
    ListPromptsResult;
    ListResourcesResult;
    ListResourceTemplatesResult;
    ReadResourceResult;
}

impl WireResult for InitializeResult {
    fn take_meta(&mut self) -> Option<Meta> {
        self.meta.take()
    }
}
