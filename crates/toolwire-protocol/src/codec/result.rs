//! Writing results: the body once by serde, what the revision demands around it.

use serde::Serialize;

use super::Adapt;
use crate::{
    Version,
    wire::{
        CacheHint, CacheScope, CallToolResult, CompleteResult, DiscoverResult, EmptyResult, GetPromptResult,
        Implementation, InitializeResult, InputRequiredResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult, Meta,
        ReadResourceResult, SubscriptionsListenResult, meta::SERVER_INFO,
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
        // The hints are modern; a handler may have set them for whoever understands them.
        let hint = result.take_cache_hint();
        let stamped = if version.is_modern() {
            let meta = result.take_meta();
            Some(self.write_stamps(R::RESULT_TYPE, meta.as_ref(), hint, out)?)
        } else {
            None
        };
        write_body(stamped, &result, out)
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
        let modern = version.is_modern();
        let stamped = modern.then(|| self.write_stamps("complete", None, None, out)).transpose()?;
        write_body(stamped, result, out)
    }

    /// Begins an object with the stamps, and says where they end.
    fn write_stamps(
        &self,
        result_type: &str,
        meta: Option<&Meta>,
        hint: Option<CacheHint>,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<Stamped> {
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
        Ok(Stamped(out.len()))
    }
}

/// An object that was begun up to here.
#[derive(Clone, Copy)]
struct Stamped(usize);

impl Stamped {
    /// The body is an object of its own; its opening brace becomes the comma between the two parts.
    fn join(self, out: &mut Vec<u8>) {
        let Self(at) = self;
        if out.get(at + 1) == Some(&b'}') {
            out.remove(at);
        } else if let Some(brace) = out.get_mut(at) {
            *brace = b',';
        }
    }
}

/// One place for both eras, so that the code that serialises a body exists once.
fn write_body<R: Serialize>(stamped: Option<Stamped>, body: &R, out: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *out, body)?;
    if let Some(stamped) = stamped {
        stamped.join(out);
    }
    Ok(())
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

impl WireResult for ListTasksResult {
    fn take_meta(&mut self) -> Option<Meta> {
        self.meta.take()
    }
}
