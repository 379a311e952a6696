#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tokfold_fuzz::lark::run(data));
