//! Which arguments travel in headers, and whether they agree.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::header_plan(data));
