//! The bytes of an HTTP/1 connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::http1_bytes(data));
