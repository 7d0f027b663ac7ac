//! A document of a server or an issuer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::oauth_metadata(data));
