//! URI templates.

use std::time::Duration;

use toolwire_protocol::uri_template::{MAX_EXPANDED_BYTES, UriTemplate};

use crate::{cost::within, schema::halves};

/// Matches a URI of a peer against a template of a peer, and writes it again.
pub fn uri_template(data: &[u8]) {
    let (template, uri) = halves(data).unwrap_or((data, b""));
    let (Ok(template), Ok(uri)) = (std::str::from_utf8(template), std::str::from_utf8(uri)) else { return };
    let parsed = within(Duration::from_millis(500), "parsing a template", || UriTemplate::parse(template));
    let Ok(template) = parsed else { return };
    let captures = within(Duration::from_secs(1), "matching", || template.match_uri(uri));
    let Some(variables) = captures else { return };
    let Ok(again) = within(Duration::from_secs(1), "expanding", || template.expand(&variables)) else {
        return;
    };
    assert!(again.len() <= MAX_EXPANDED_BYTES);
    within(Duration::from_secs(1), "matching again", || template.match_uri(&again));
}
