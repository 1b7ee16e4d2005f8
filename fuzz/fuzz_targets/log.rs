#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| source::hostile::log_block(bytes));
