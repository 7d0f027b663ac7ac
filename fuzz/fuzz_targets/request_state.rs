//! What comes back as `requestState`, and what it is bound to.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::request_state(data));
