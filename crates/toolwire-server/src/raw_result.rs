//! Results that were written elsewhere, and are passed on.

use serde::de::Error as _;
use toolwire_protocol::{
    Method, MethodName, RawJson, RpcError, Version,
    codec::ResultCodec,
    wire::{CallToolResult, CompleteResult, EmptyResult, GetPromptResult, ReadResourceResult},
};

use crate::{
    Reply,
    output::{IntoPrompt, IntoResource, IntoToolOutput, ResourceInfo},
};

/// The whole result of a request, as another server has written it. Tools, prompts and resources may return it.
///
/// A caller that speaks the same revision gets it byte for byte: nothing is decoded, checked against a schema or added.
/// For another revision it is read and written again, with the members that nobody knows.
///
/// ```
/// use toolwire_protocol::RpcError;
/// use toolwire_server::{Context, RawResult, Server, tool};
/// # use toolwire_protocol::{RawJson, Version};
/// # async fn send_on(_method: &str, _params: RawJson) -> Result<(Version, RawJson), RpcError> {
/// #     Err(RpcError::internal("nobody is there"))
/// # }
///
/// // Calls the tool of the same name at another server, whatever its arguments are.
/// async fn pass_on(cx: Context) -> Result<RawResult, RpcError> {
///     let params = cx.params().raw().map_err(|error| RpcError::internal(error.to_string()))?;
///     let (version, result) = send_on(cx.method().as_str(), params).await?;
///     Ok(RawResult::new(version, result))
/// }
///
/// let schema = serde_json::json!({ "type": "object" });
/// let server = Server::builder("proxy", "1.0").tool(tool("search", pass_on).input_schema(schema)).build().unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct RawResult {
    version: Version,
    result: RawJson,
}

impl RawResult {
    /// A result that was written for this revision. One that is not an object fails its request.
    pub const fn new(version: Version, result: RawJson) -> Self {
        Self { version, result }
    }

    /// The revision that it was written for.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The result.
    pub const fn result(&self) -> &RawJson {
        &self.result
    }

    /// Appends the result of `method` as a caller of `version` wants it.
    pub(crate) fn write(
        &self,
        method: &MethodName,
        version: Version,
        codec: &ResultCodec,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let Self { version: written, result } = self;
        if !result.is_object() {
            return Err(serde_json::Error::custom("a result that was passed on is not an object"));
        }
        if *written == version {
            out.extend_from_slice(result.text().as_bytes());
            return Ok(());
        }
        // The codec says of what type a result is, where that is said.
        macro_rules! again {
            ($result:ty) => {{
                let mut result: $result = result.decode()?;
                result.result_type = None;
                codec.write(version, result, out)
            }};
        }
        match method.known() {
            Some(Method::CallTool) => again!(CallToolResult),
            Some(Method::GetPrompt) => again!(GetPromptResult),
            Some(Method::ReadResource) => again!(ReadResourceResult),
            Some(Method::Complete) => again!(CompleteResult),
            _ => again!(EmptyResult),
        }
    }
}

impl IntoToolOutput for RawResult {
    fn into_tool_output(self) -> Result<Reply, RpcError> {
        Ok(Reply::Raw(self))
    }
}

impl IntoPrompt for RawResult {
    fn into_prompt(self) -> Result<Reply, RpcError> {
        Ok(Reply::Raw(self))
    }
}

impl IntoResource for RawResult {
    fn into_resource(self, _: ResourceInfo<'_>) -> Result<Reply, RpcError> {
        Ok(Reply::Raw(self))
    }
}

#[cfg(test)]
mod tests {
    use toolwire_protocol::wire::Implementation;

    use super::*;

    fn written(text: &str, from: Version, to: Version) -> serde_json::Result<String> {
        let codec = ResultCodec::new(&Implementation::new("here", "1"));
        let raw = RawResult::new(from, RawJson::parse(text).unwrap());
        let mut out = Vec::new();
        raw.write(&Method::CallTool.into(), to, &codec, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_same_revision_gets_the_same_bytes() {
        let text = r#"{"resultType":"complete","x":1.50,"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"there","version":"2"}}}"#;
        let now = Version::V2026_07_28;
        assert_eq!(written(text, now, now).unwrap(), text);
    }

    #[test]
    fn another_revision_gets_what_it_knows_and_what_nobody_knows() {
        let (old, new) = (Version::V2025_11_25, Version::V2026_07_28);
        let modern = written(r#"{"content":[],"vendor":{"a":1}}"#, old, new).unwrap();
        assert!(modern.starts_with(r#"{"resultType":"complete","_meta":{"#), "{modern}");
        assert!(modern.contains(r#""vendor":{"a":1}"#) && modern.contains(r#""name":"here""#), "{modern}");
        let legacy = written(r#"{"resultType":"complete","content":[],"vendor":1}"#, new, old).unwrap();
        assert!(!legacy.contains("resultType") && legacy.contains(r#""vendor":1"#), "{legacy}");
    }

    #[test]
    fn what_cannot_be_passed_on_is_an_error() {
        let (old, new) = (Version::V2025_11_25, Version::V2026_07_28);
        assert!(written("[]", new, new).is_err());
        // Questions in the place of a result are for those who can be asked in rounds.
        assert!(written(r#"{"resultType":"input_required","requestState":"s"}"#, new, old).is_err());
    }
}
