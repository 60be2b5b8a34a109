//! libFuzzer's door to `rowgate_fuzz::token`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rowgate_fuzz::token::check(data));
