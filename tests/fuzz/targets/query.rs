//! libFuzzer's door to `rowgate_fuzz::query`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rowgate_fuzz::query::check(data));
