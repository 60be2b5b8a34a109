//! libFuzzer's door to `rowgate_fuzz::filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rowgate_fuzz::filter::check(data));
