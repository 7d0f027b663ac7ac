//! A template of a peer and a URI of a peer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::uri_template(data));
