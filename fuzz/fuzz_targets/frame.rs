//! `padmm_fuzz::frame` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    padmm_fuzz::frame(bytes);
});
