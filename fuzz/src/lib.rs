//! What must hold for whatever a site reads from outside: frames from the network, plans and cards from files.
//!
//! Each function is the body of a fuzz target and tells whether the input was accepted, so that an ordinary
//! test can say that the seeds are what they are meant to be.

use std::path::Path;

use padmm_node::contract::Contract;
use padmm_node::frame::{Frame, is_request, peek_model};
use padmm_node::identity::{CardDraft, SecretKey};

/// Any bytes from a neighbour: no panic, and what is a frame has exactly one encoding.
pub fn frame(bytes: &[u8]) -> bool {
    let peeked = peek_model(bytes);
    let _ = is_request(bytes);
    let Ok(frame) = Frame::decode(bytes) else { return false };
    let signature = if frame.origin().is_some() { 64 } else { 0 };
    let again = frame.encode(&SecretKey::from_bytes(&[7; 32]));
    let body = bytes.len() - signature;
    assert_eq!(again.len(), bytes.len());
    assert_eq!(&again[..body], &bytes[..body]);
    if let Frame::Model(model) = &frame {
        assert_eq!(peeked, Some((model.origin, model.turn)));
    }
    true
}

/// Any text as a `plan.toml`: an error, or a contract that is read back with the same hash.
pub fn contract(text: &str) -> bool {
    let Ok(contract) = Contract::from_toml(text, Path::new("plan.toml")) else { return false };
    let again =
        Contract::from_toml(&contract.to_toml(), Path::new("plan.toml")).expect("it was written here");
    assert_eq!(again.hash(), contract.hash());
    true
}

/// Any text as a card: an error, or a card that is read back as itself.
pub fn card(text: &str) -> bool {
    let Ok(draft) = toml::from_str::<CardDraft>(text) else { return false };
    let Ok(card) = draft.check() else { return false };
    let again: CardDraft = toml::from_str(&card.to_toml()).expect("it was written here");
    assert_eq!(again.check().expect("it was checked here"), card);
    true
}
