//! The bytes of an HTTP/2 connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::http2_bytes(data));
