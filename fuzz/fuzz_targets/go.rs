#![no_main]

libfuzzer_sys::fuzz_target!(|log: &[u8]| memtrial_fuzz::check(&["Go"], log));
