//! A schema of a peer and a value of a peer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::schema_validate(data));
