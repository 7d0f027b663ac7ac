//! Proofs of possession, as they come with requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwire_fuzz::dpop_proof(data));
