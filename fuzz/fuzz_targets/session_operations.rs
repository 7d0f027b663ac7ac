//! What a legacy client may do to its session, in any order.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::session_operations(data));
