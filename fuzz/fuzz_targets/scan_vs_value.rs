//! The scanner against `serde_json::Value`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::scan_vs_value(data));
