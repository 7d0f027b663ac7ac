//! Messages and batches: parsed, peeked at and classified.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::envelope(data));
