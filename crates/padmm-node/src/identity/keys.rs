//! Signing keys. Every signature says what it is for, so that none can be passed off as another.

use std::fmt;

use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::verified::{self, Verified};

/// What a signature is for: one that was made for another purpose does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignaturePurpose {
    /// A site's card, signed by its identity key.
    Card,
    /// A site's word that it accepts a contract.
    Acceptance,
    /// A frame of a run, from a greeting to a release.
    Envelope,
    /// A site's word that all its edges work.
    Ready,
}

impl SignaturePurpose {
    fn prefix(self) -> &'static [u8] {
        match self {
            Self::Card => b"padmm card 1\0",
            Self::Acceptance => b"padmm acceptance 1\0",
            Self::Envelope => b"padmm envelope 1\0",
            Self::Ready => b"padmm ready 1\0",
        }
    }

    /// What is signed: the purpose, and the message's hash, so that a long message is read once.
    fn bytes(self, message: &[u8]) -> Vec<u8> {
        [self.prefix(), &Sha256::digest(message)[..]].concat()
    }
}

/// Why something is not a key or a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum KeyError {
    /// Not the hexadecimal text of the right length.
    #[error("{what} is {expected} hexadecimal digits, and this is something else: {found:?}")]
    Hex {
        /// A key, a signature or a hash, in words.
        what: &'static str,
        expected: usize,
        /// The start of what was found.
        found: String,
    },
    /// Not a point of the curve.
    #[error("the public key is not valid")]
    NotAKey,
    /// The operating system gave no randomness.
    #[error("the operating system gives no randomness ({reason})")]
    NoRandomness { reason: String },
}

/// A secret Ed25519 key. `Debug` hides it, and its memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

// The key inside does the overwriting; without its feature for that, this does not compile.
impl ZeroizeOnDrop for SecretKey where SigningKey: ZeroizeOnDrop {}

impl SecretKey {
    /// A new key from the operating system's randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map_err(|e| KeyError::NoRandomness { reason: e.to_string() })?;
        Ok(Self::from_bytes(&bytes))
    }

    /// The key with these bytes, any of which make one.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(bytes))
    }

    /// Its bytes, for a file that only its owner can read; they are overwritten when they are dropped.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The key that others verify its signatures with.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs `message` for one purpose.
    pub fn sign(&self, purpose: SignaturePurpose, message: &[u8]) -> Signature {
        let bytes = purpose.bytes(message);
        let signature = Signature(self.0.sign(&bytes).to_bytes());
        verified::remember(Verified { key: self.public().to_bytes(), bytes, signature });
        signature
    }

    /// Signs a certificate or a certificate request, whose formats leave no room for a purpose.
    ///
    /// Both begin with the byte 0x30, which begins no purpose, so such a signature cannot pass for another.
    pub(super) fn sign_der(&self, der: &[u8]) -> Vec<u8> {
        debug_assert_eq!(der.first(), Some(&0x30), "a certificate is a sequence");
        self.0.sign(der).to_bytes().to_vec()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(hidden)")
    }
}

/// A public Ed25519 key; in text, 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The key with these bytes, unless it is no point of the curve or a weak one.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NotAKey)?;
        if key.is_weak() { Err(KeyError::NotAKey) } else { Ok(Self(key)) }
    }

    /// The 32 bytes of the curve point.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Whether `signature` is this key's for `message` and this purpose.
    pub fn verifies(&self, purpose: SignaturePurpose, message: &[u8], signature: &Signature) -> bool {
        let known = Verified { key: self.to_bytes(), bytes: purpose.bytes(message), signature: *signature };
        if verified::is_known(&known) {
            return true;
        }
        // Keys of small order were refused when this one was made, so the stricter and slower check adds nothing.
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        let is_valid = self.0.verify(&known.bytes, &signature).is_ok();
        if is_valid {
            verified::remember(known);
        }
        is_valid
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.to_bytes()))
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;
    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::from_bytes(&from_hex("a public key", &text)?)
    }
}

/// An Ed25519 signature; in text, 128 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Signature(pub [u8; 64]);

impl From<Signature> for String {
    fn from(signature: Signature) -> Self {
        to_hex(&signature.0)
    }
}

impl TryFrom<String> for Signature {
    type Error = KeyError;
    fn try_from(text: String) -> Result<Self, KeyError> {
        from_hex("a signature", &text).map(Signature)
    }
}

/// Two lower-case hexadecimal digits for each byte.
pub fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}

/// Exactly `N` bytes from hexadecimal digits.
pub fn from_hex<const N: usize>(what: &'static str, text: &str) -> Result<[u8; N], KeyError> {
    let wrong = || KeyError::Hex { what, expected: 2 * N, found: text.chars().take(20).collect() };
    if text.len() != 2 * N || !text.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |d: u8| (d as char).to_digit(16).ok_or_else(wrong);
        *byte = (digit(digits[0])? << 4 | digit(digits[1])?) as u8;
    }
    Ok(bytes)
}
