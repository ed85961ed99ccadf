//! Signatures that are known to be valid. The same frame often comes over several edges, and a simulation has all sites in one thread; an
//! answer that was found once need not be computed again. It is only ever "yes", and only for exactly the same key, purpose, message and
//! signature.

use std::cell::RefCell;
use std::collections::HashSet;

use super::keys::Signature;

/// So many are remembered by each thread; then all are forgotten.
const MOST: usize = 4096;

/// That a signature is a key's for some bytes, which begin with its purpose and end with the message's hash.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Verified {
    pub(super) key: [u8; 32],
    pub(super) bytes: Vec<u8>,
    pub(super) signature: Signature,
}

thread_local! {
    static KNOWN: RefCell<HashSet<Verified>> = RefCell::default();
}

pub(super) fn is_known(what: &Verified) -> bool {
    KNOWN.with_borrow(|known| known.contains(what))
}

pub(super) fn remember(what: Verified) {
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(what);
    });
}

#[cfg(test)]
mod tests {
    use crate::identity::{SecretKey, Signature, SignaturePurpose};

    /// Whatever was found valid before, another key, purpose, message or signature is looked at by itself, and again and again.
    #[test]
    fn nothing_else_is_valid_because_something_was() {
        let (key, other) = (SecretKey::from_bytes(&[7; 32]), SecretKey::from_bytes(&[8; 32]).public());
        let (public, message) = (key.public(), b"a message".as_slice());
        let signature = key.sign(SignaturePurpose::Envelope, message);
        let mut changed = signature;
        changed.0[3] ^= 1;
        for _ in 0..3 {
            assert!(public.verifies(SignaturePurpose::Envelope, message, &signature));
            assert!(!other.verifies(SignaturePurpose::Envelope, message, &signature));
            assert!(!public.verifies(SignaturePurpose::Ready, message, &signature));
            assert!(!public.verifies(SignaturePurpose::Envelope, b"another", &signature));
            assert!(!public.verifies(SignaturePurpose::Envelope, message, &changed));
            assert!(!public.verifies(SignaturePurpose::Envelope, message, &Signature([0; 64])));
        }
    }

    /// A thread that knows nothing finds the same.
    #[test]
    fn what_was_never_seen_is_verified() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let signature = key.sign(SignaturePurpose::Card, b"a card");
        let is_valid = move || {
            let public = key.public();
            let [first, again] =
                [0, 1].map(|_| public.verifies(SignaturePurpose::Card, b"a card", &signature));
            first && again && !public.verifies(SignaturePurpose::Card, b"a cart", &signature)
        };
        assert!(std::thread::spawn(is_valid).join().unwrap());
    }
}
