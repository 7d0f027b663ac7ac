//! Sets of keys, as issuers publish them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::jwks(data));
