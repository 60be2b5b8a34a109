//! libFuzzer's door to `rowgate_fuzz::key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rowgate_fuzz::key::check(data));
