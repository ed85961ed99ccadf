//! Any bytes from a neighbour: no panic, and what is a frame has exactly one encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use padmm_node::frame::{Frame, is_question, peek_speech};
use padmm_node::identity::SecretKey;

fuzz_target!(|bytes: &[u8]| {
    let peeked = peek_speech(bytes);
    let _ = is_question(bytes);
    let Ok(frame) = Frame::decode(bytes) else { return };
    let signature = if frame.origin().is_some() { 64 } else { 0 };
    let again = frame.encode(&SecretKey::from_bytes(&[7; 32]));
    let body = bytes.len() - signature;
    assert_eq!(again.len(), bytes.len());
    assert_eq!(&again[..body], &bytes[..body]);
    if let Frame::Speech(speech) = &frame {
        assert_eq!(peeked, Some((speech.origin, speech.stage, speech.turn)));
    }
});
