//! Schemas of a peer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::schema_compile(data));
