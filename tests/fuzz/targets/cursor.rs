//! libFuzzer's door to `rowgate_fuzz::cursor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rowgate_fuzz::cursor::check(data));
