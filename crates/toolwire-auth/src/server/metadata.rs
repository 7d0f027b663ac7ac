//! The document that says where to log in (RFC 9728).
//!
//! Everything in it comes from the configuration, nothing from a request.

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use serde_json::{Map, Value, json};

/// Where such documents are.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// For how long it may be kept.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// The metadata of a resource, and where they are.
#[derive(Debug)]
pub(super) struct Metadata {
    /// The URL of the document, which challenges name.
    pub(super) url: String,
    /// The paths that lead to it: that of the resource, and the root, where some clients look first.
    paths: Vec<String>,
    body: Bytes,
}

/// What the document says besides.
pub(super) struct Contents<'a> {
    pub(super) resource: &'a str,
    pub(super) issuers: Vec<&'a str>,
    pub(super) scopes: Vec<String>,
    pub(super) name: Option<&'a str>,
    /// The algorithms of proofs, and whether there has to be one.
    pub(super) dpop: Option<(Vec<&'static str>, bool)>,
}

impl Metadata {
    pub(super) fn new(contents: &Contents<'_>) -> Self {
        let (origin, path, query) = split(contents.resource);
        let path = if path == "/" { "" } else { path };
        let own = format!("{WELL_KNOWN}{path}");
        let mut paths = vec![own.clone()];
        if !path.is_empty() {
            paths.push(WELL_KNOWN.to_owned());
        }
        let url = format!("{origin}{own}{query}");
        Self { url, paths, body: document(contents).to_string().into() }
    }

    pub(super) fn paths(&self) -> &[String] {
        &self.paths
    }

    pub(super) fn document(&self, path: &str) -> Option<Response<Bytes>> {
        if !self.paths.iter().any(|known| known == path) {
            return None;
        }
        let mut response = Response::new(self.body.clone());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        Some(response)
    }
}

fn document(contents: &Contents<'_>) -> Value {
    let mut members = Map::new();
    members.insert("resource".to_owned(), json!(contents.resource));
    members.insert("authorization_servers".to_owned(), json!(contents.issuers));
    if !contents.scopes.is_empty() {
        members.insert("scopes_supported".to_owned(), json!(contents.scopes));
    }
    members.insert("bearer_methods_supported".to_owned(), json!(["header"]));
    if let Some(name) = contents.name {
        members.insert("resource_name".to_owned(), json!(name));
    }
    if let Some((algorithms, required)) = &contents.dpop {
        members.insert("dpop_signing_alg_values_supported".to_owned(), json!(algorithms));
        members.insert("dpop_bound_access_tokens_required".to_owned(), json!(required));
    }
    Value::Object(members)
}

/// The parts of a URL as they were written: origin, path, query with its question mark.
fn split(url: &str) -> (&str, &str, &str) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let after = |from: usize, ends: &[char]| {
        url.get(from..).and_then(|rest| rest.find(ends)).map_or(url.len(), |at| from + at)
    };
    let path = after(authority, &['/', '?']);
    let query = after(path, &['?']);
    (&url[..path], &url[path..query], &url[query..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(resource: &str) -> Metadata {
        Metadata::new(&Contents {
            resource,
            issuers: vec!["https://login.example"],
            scopes: vec!["files:read".to_owned()],
            name: Some("Files"),
            dpop: None,
        })
    }

    #[test]
    fn the_document_is_where_the_path_of_the_resource_says() {
        for (resource, url, paths) in [
            (
                "https://files.example/mcp",
                "https://files.example/.well-known/oauth-protected-resource/mcp",
                &["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"][..],
            ),
            (
                "https://files.example:8443/a/b?tenant=1",
                "https://files.example:8443/.well-known/oauth-protected-resource/a/b?tenant=1",
                &["/.well-known/oauth-protected-resource/a/b", "/.well-known/oauth-protected-resource"],
            ),
            (
                "https://files.example",
                "https://files.example/.well-known/oauth-protected-resource",
                &["/.well-known/oauth-protected-resource"],
            ),
            (
                "https://files.example/",
                "https://files.example/.well-known/oauth-protected-resource",
                &["/.well-known/oauth-protected-resource"],
            ),
        ] {
            let metadata = metadata(resource);
            assert_eq!(metadata.url, url);
            assert_eq!(metadata.paths(), paths);
        }
    }

    #[test]
    fn the_document_has_what_was_configured_letter_for_letter() {
        let metadata = metadata("https://FILES.example/mcp");
        let found = metadata.document("/.well-known/oauth-protected-resource").unwrap();
        assert_eq!(found.headers()["content-type"], "application/json");
        let document: Value = serde_json::from_slice(found.body()).unwrap();
        assert_eq!(
            document,
            json!({
                "resource": "https://FILES.example/mcp",
                "authorization_servers": ["https://login.example"],
                "scopes_supported": ["files:read"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Files",
            })
        );
        assert!(metadata.document("/.well-known/oauth-protected-resource/").is_none());
        assert!(metadata.document("/.well-known/oauth-protected-resource/other").is_none());
    }
}
