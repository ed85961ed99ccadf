//! What travels between two sites: frames of bytes, signed by their sender and bound to the plan.
//!
//! A frame is `kind, body` and, for everything that another site believes, `signature` at the end. The signature covers all bytes
//! before it under [`Purpose::Envelope`]; the body starts with the plan's hash and the sender's place in the plan, so what
//! was said in one run, by one site, for one turn, is nothing else. Decoding reads lengths only after checking them against what is
//! there, allocates no more than it was given, and accepts exactly one encoding of every frame.

use std::sync::Arc;

use padmm_core::message::Stage;
use padmm_privacy::Payload;

use crate::identity::{PublicKey, Purpose, SecretKey, Signature};

/// Bytes of a speech beside its coefficients.
pub const SPEECH_OVERHEAD: usize = 1 + 32 + 2 + 1 + 4 + 8 + 32 + 1 + 4 + 4 + 64;
/// The largest text of a plan that is accepted.
pub const MOST_PLAN_TEXT: usize = 4 << 20;

const SIGNATURE: usize = 64;

/// The hash of the contract that a frame belongs to.
pub type PlanDigest = [u8; 32];

/// Who says something, in which run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Hash of the contract.
    pub plan: PlanDigest,
    /// The sender's place in the contract.
    pub sender: u16,
}

/// A site's word on the contract, as it is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Place of the site in the contract.
    pub site: u16,
    /// Its identity key; the contract has the fingerprint.
    pub key: [u8; 32],
    /// Its signature.
    pub signature: Signature,
}

/// One site's message of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Speech {
    /// Who says it.
    pub origin: Origin,
    /// Part of the run.
    pub stage: Stage,
    /// Turn within it, from 1.
    pub turn: u32,
    /// Number of the sender's ledger entry that charges it; 0 for what is free.
    pub entry: u64,
    /// Head of the sender's ledger before that entry; zeros for what is free.
    pub head: [u8; 32],
    /// The model.
    pub payload: Payload,
}

/// Everything that can travel.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// "I hold this plan, and these sites' words on it." With `proof`, the receiver's own latest release follows.
    Hello {
        /// Who says it.
        origin: Origin,
        /// Whether a frame of the receiver's own follows, to show how far its ledger must be.
        proof: bool,
        /// Signatures on the plan.
        accepted: Vec<Accepted>,
    },
    /// A model.
    Speech(Speech),
    /// "I am alive, and this far."
    Status {
        /// Who says it.
        origin: Origin,
        /// Part of the run.
        stage: Stage,
        /// Turn that the sender is at.
        turn: u32,
        /// Grows from one status to the next.
        counter: u64,
        /// Whether the sender has its model.
        done: bool,
    },
    /// "I went on without this neighbour from this turn on."
    Departure {
        /// Who says it.
        origin: Origin,
        /// Whom it lost.
        lost: u16,
        /// Part of the run.
        stage: Stage,
        /// The first turn without it.
        turn: u32,
    },
    /// "Send me your message of this turn." Not signed: the connection tells who asks, and every answer is public.
    Want {
        /// Part of the run.
        stage: Stage,
        /// Turn.
        turn: u32,
    },
    /// "Send me the text of your plan."
    WantPlan,
    /// "Greet me again": a greeting, or somebody's word on the plan, has not arrived.
    WantHello,
    /// The text of a plan, to find out in what two plans differ.
    PlanText(String),
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// They end too early.
    #[error("the message is cut short")]
    Short,
    /// They go on after the end.
    #[error("the message has {extra} bytes too many")]
    Long {
        /// How many.
        extra: usize,
    },
    /// No such kind.
    #[error("messages of kind {kind} are unknown")]
    Kind {
        /// The first byte.
        kind: u8,
    },
    /// A field that cannot be.
    #[error("its {field} is {value}, which cannot be")]
    Field {
        /// Which.
        field: &'static str,
        /// What it is.
        value: u64,
    },
    /// Integers beyond 2^53, steps outside the doubles' range, or numbers that are not finite.
    #[error("its numbers are absurd: integers of 2^53 or more, or not finite")]
    Absurd,
    /// Text that is not text.
    #[error("its text is not UTF-8")]
    Text,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(FrameError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        Ok(self.take(N)?.try_into().expect("N bytes were taken"))
    }

    fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_le_bytes)
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, FrameError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(FrameError::Field { field, value: value.into() }),
        }
    }

    fn origin(&mut self) -> Result<Origin, FrameError> {
        Ok(Origin { plan: self.array()?, sender: self.u16()? })
    }

    fn place(&mut self) -> Result<(Stage, u32), FrameError> {
        let stage = if self.flag("stage")? { Stage::Average } else { Stage::Model };
        match self.u32()? {
            0 => Err(FrameError::Field { field: "turn", value: 0 }),
            turn => Ok((stage, turn)),
        }
    }

    /// Eight bytes for each of `n` numbers, checked to be there before anything is allocated.
    fn numbers(&mut self, n: u32) -> Result<impl Iterator<Item = [u8; 8]> + use<'a>, FrameError> {
        let bytes = self.take((n as usize).checked_mul(8).ok_or(FrameError::Short)?)?;
        Ok(bytes.chunks_exact(8).map(|c| c.try_into().expect("chunks of eight")))
    }

    fn payload(&mut self) -> Result<Payload, FrameError> {
        let on_grid = self.flag("payload")?;
        let exponent = i32::from_le_bytes(self.array()?);
        let n = self.u32()?;
        let payload = if on_grid {
            Payload::Grid { exponent, values: self.numbers(n)?.map(i64::from_le_bytes).collect() }
        } else if exponent != 0 {
            return Err(FrameError::Field { field: "exponent", value: exponent.unsigned_abs().into() });
        } else {
            Payload::Plain(self.numbers(n)?.map(f64::from_le_bytes).collect())
        };
        payload.check().map_err(|_| FrameError::Absurd)?;
        Ok(payload)
    }
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn origin(&mut self, origin: Origin) -> &mut Self {
        self.put(&origin.plan).put(&origin.sender.to_le_bytes())
    }

    fn place(&mut self, stage: Stage, turn: u32) -> &mut Self {
        self.put(&[u8::from(stage == Stage::Average)]).put(&turn.to_le_bytes())
    }

    fn payload(&mut self, payload: &Payload) -> &mut Self {
        let n = u32::try_from(payload.len()).expect("a model has fewer than 2^32 coefficients").to_le_bytes();
        match payload {
            Payload::Grid { exponent, values } => {
                self.put(&[1]).put(&exponent.to_le_bytes()).put(&n);
                values.iter().for_each(|v| self.0.extend_from_slice(&v.to_le_bytes()));
            }
            Payload::Plain(values) => {
                self.put(&[0]).put(&0i32.to_le_bytes()).put(&n);
                values.iter().for_each(|v| self.0.extend_from_slice(&v.to_le_bytes()));
            }
        }
        self
    }
}

const HELLO: u8 = 1;
const SPEECH: u8 = 2;
const STATUS: u8 = 3;
const DEPARTURE: u8 = 4;
const WANT: u8 = 5;
const WANT_PLAN: u8 = 6;
const PLAN_TEXT: u8 = 7;
const WANT_HELLO: u8 = 8;

impl Frame {
    /// Who says it, where that is signed.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Frame::Hello { origin, .. } | Frame::Status { origin, .. } | Frame::Departure { origin, .. } => {
                Some(*origin)
            }
            Frame::Speech(speech) => Some(speech.origin),
            Frame::Want { .. } | Frame::WantPlan | Frame::WantHello | Frame::PlanText(_) => None,
        }
    }

    /// The bytes, signed where the kind asks for it.
    pub fn encode(&self, key: &SecretKey) -> Arc<[u8]> {
        let mut w = Writer::default();
        match self {
            Frame::Hello { origin, proof, accepted } => {
                let n = u16::try_from(accepted.len()).expect("a contract has at most 1000 sites");
                w.put(&[HELLO]).origin(*origin).put(&[u8::from(*proof)]).put(&n.to_le_bytes());
                for a in accepted {
                    w.put(&a.site.to_le_bytes()).put(&a.key).put(&a.signature.0);
                }
            }
            Frame::Speech(s) => {
                w.put(&[SPEECH]).origin(s.origin).place(s.stage, s.turn);
                w.put(&s.entry.to_le_bytes()).put(&s.head).payload(&s.payload);
            }
            Frame::Status { origin, stage, turn, counter, done } => {
                w.put(&[STATUS]).origin(*origin).place(*stage, *turn);
                w.put(&counter.to_le_bytes()).put(&[u8::from(*done)]);
            }
            Frame::Departure { origin, lost, stage, turn } => {
                w.put(&[DEPARTURE]).origin(*origin).put(&lost.to_le_bytes()).place(*stage, *turn);
            }
            Frame::Want { stage, turn } => {
                w.put(&[WANT]).place(*stage, *turn);
            }
            Frame::WantPlan => {
                w.put(&[WANT_PLAN]);
            }
            Frame::WantHello => {
                w.put(&[WANT_HELLO]);
            }
            Frame::PlanText(text) => {
                w.put(&[PLAN_TEXT]).put(text.as_bytes());
            }
        }
        if self.origin().is_some() {
            let signature = key.sign(Purpose::Envelope, &w.0);
            w.put(&signature.0);
        }
        w.0.into()
    }

    /// Reads a frame; its signature is left to [`is_signed_by`].
    pub fn decode(bytes: &[u8]) -> Result<Frame, FrameError> {
        let kind = *bytes.first().ok_or(FrameError::Short)?;
        let is_signed = matches!(kind, HELLO | SPEECH | STATUS | DEPARTURE);
        let end = bytes.len().checked_sub(if is_signed { SIGNATURE } else { 0 });
        let body = end.and_then(|end| bytes.get(1..end)).ok_or(FrameError::Short)?;
        let mut r = Reader(body);
        let frame = match kind {
            HELLO => {
                let (origin, proof, n) = (r.origin()?, r.flag("proof")?, r.u16()?);
                let mut accepted = Vec::new();
                for _ in 0..n {
                    let (site, key, signature) = (r.u16()?, r.array()?, Signature(r.array()?));
                    accepted.push(Accepted { site, key, signature });
                }
                Frame::Hello { origin, proof, accepted }
            }
            SPEECH => {
                let origin = r.origin()?;
                let (stage, turn) = r.place()?;
                let (entry, head, payload) = (r.u64()?, r.array()?, r.payload()?);
                Frame::Speech(Speech { origin, stage, turn, entry, head, payload })
            }
            STATUS => {
                let origin = r.origin()?;
                let (stage, turn) = r.place()?;
                Frame::Status { origin, stage, turn, counter: r.u64()?, done: r.flag("done")? }
            }
            DEPARTURE => {
                let (origin, lost) = (r.origin()?, r.u16()?);
                let (stage, turn) = r.place()?;
                Frame::Departure { origin, lost, stage, turn }
            }
            WANT => {
                let (stage, turn) = r.place()?;
                Frame::Want { stage, turn }
            }
            WANT_PLAN => Frame::WantPlan,
            WANT_HELLO => Frame::WantHello,
            PLAN_TEXT => {
                let text = std::str::from_utf8(r.take(body.len())?).map_err(|_| FrameError::Text)?;
                Frame::PlanText(text.to_owned())
            }
            kind => return Err(FrameError::Kind { kind }),
        };
        match r.0.len() {
            0 => Ok(frame),
            extra => Err(FrameError::Long { extra }),
        }
    }
}

/// Whether the signature at the end of `bytes` is `key`'s.
pub fn is_signed_by(bytes: &[u8], key: &PublicKey) -> bool {
    let Some((message, signature)) = bytes.split_last_chunk::<SIGNATURE>() else { return false };
    key.verifies(Purpose::Envelope, message, &Signature(*signature))
}

/// Origin, stage and turn of the bytes of a speech, without reading its numbers: enough to pass over what is known already.
pub fn peek_speech(bytes: &[u8]) -> Option<(Origin, Stage, u32)> {
    let mut r = Reader(bytes);
    if r.u8().ok()? != SPEECH {
        return None;
    }
    let origin = r.origin().ok()?;
    let (stage, turn) = r.place().ok()?;
    Some((origin, stage, turn))
}

/// Whether the bytes only ask for something; such frames are answered from the shelf, whatever else the site is doing.
pub fn is_question(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&WANT | &WANT_PLAN))
}

/// The largest frame that a site of a run has a reason to send: a model, a hello with every site's word, or the plan.
pub fn largest_frame(n_features: usize, n_sites: usize, plan_text: usize) -> usize {
    let hello = 1 + 34 + 3 + n_sites * (2 + 32 + 64) + SIGNATURE;
    // Another plan's text may be longer than ours; twice is plenty to find the difference.
    let plan = 1 + (2 * plan_text + 4096).min(MOST_PLAN_TEXT);
    (SPEECH_OVERHEAD + 8 * n_features).max(hello).max(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin() -> impl Strategy<Value = Origin> {
        (any::<[u8; 32]>(), any::<u16>()).prop_map(|(plan, sender)| Origin { plan, sender })
    }

    fn place() -> impl Strategy<Value = (Stage, u32)> {
        (any::<bool>(), 1u32..)
            .prop_map(|(average, turn)| (if average { Stage::Average } else { Stage::Model }, turn))
    }

    fn payload() -> impl Strategy<Value = Payload> {
        let integer = -(1i64 << 53) + 1..1i64 << 53;
        prop_oneof![
            (-1022..970i32, prop::collection::vec(integer, 0..40))
                .prop_map(|(exponent, values)| Payload::Grid { exponent, values }),
            prop::collection::vec(-1e300..1e300f64, 0..40).prop_map(Payload::Plain),
        ]
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let signature = prop::collection::vec(any::<u8>(), 64).prop_map(|v| Signature(v.try_into().unwrap()));
        let accepted = (any::<u16>(), any::<[u8; 32]>(), signature)
            .prop_map(|(site, key, signature)| Accepted { site, key, signature });
        prop_oneof![
            (origin(), any::<bool>(), prop::collection::vec(accepted, 0..9))
                .prop_map(|(origin, proof, accepted)| Frame::Hello { origin, proof, accepted }),
            (origin(), place(), any::<u64>(), any::<[u8; 32]>(), payload()).prop_map(
                |(origin, (stage, turn), entry, head, payload)| {
                    Frame::Speech(Speech { origin, stage, turn, entry, head, payload })
                }
            ),
            (origin(), place(), any::<u64>(), any::<bool>()).prop_map(
                |(origin, (stage, turn), counter, done)| {
                    Frame::Status { origin, stage, turn, counter, done }
                }
            ),
            (origin(), any::<u16>(), place()).prop_map(|(origin, lost, (stage, turn))| Frame::Departure {
                origin,
                lost,
                stage,
                turn
            }),
            place().prop_map(|(stage, turn)| Frame::Want { stage, turn }),
            Just(Frame::WantPlan),
            Just(Frame::WantHello),
            ".{0,60}".prop_map(Frame::PlanText),
        ]
    }

    fn key() -> SecretKey {
        SecretKey::from_bytes(&[7; 32])
    }

    proptest! {
        #[test]
        fn frames_come_back_as_they_were_and_signed(frame in frame()) {
            let bytes = frame.encode(&key());
            prop_assert_eq!(&Frame::decode(&bytes).unwrap(), &frame);
            if frame.origin().is_some() {
                prop_assert!(is_signed_by(&bytes, &key().public()));
                prop_assert!(!is_signed_by(&bytes, &SecretKey::from_bytes(&[8; 32]).public()));
            }
        }

        /// Arbitrary bytes, and real frames with one byte changed or cut short: never a panic, and what decodes has one encoding.
        #[test]
        fn garbage_is_refused_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(frame) = Frame::decode(&bytes) {
                let end = bytes.len() - if frame.origin().is_some() { 64 } else { 0 };
                prop_assert_eq!(&frame.encode(&key())[..end], &bytes[..end]);
            }
        }

        #[test]
        fn a_changed_byte_is_an_error_or_breaks_the_signature(
            frame in frame(), place in any::<prop::sample::Index>(), flip in 1u8..
        ) {
            let mut bytes = frame.encode(&key()).to_vec();
            let place = place.index(bytes.len());
            bytes[place] ^= flip;
            if let Ok(changed) = Frame::decode(&bytes) && changed.origin().is_some() {
                prop_assert!(!is_signed_by(&bytes, &key().public()));
            }
        }

        #[test]
        fn a_cut_frame_is_an_error(frame in frame(), place in any::<prop::sample::Index>()) {
            let bytes = frame.encode(&key());
            let cut = &bytes[..place.index(bytes.len())];
            let is_text = matches!(frame, Frame::PlanText(_)) && !cut.is_empty();
            prop_assert!(is_text || Frame::decode(cut).is_err());
        }
    }

    #[test]
    fn a_speech_has_the_announced_size() {
        let payload = Payload::Grid { exponent: -30, values: vec![1; 1000] };
        let origin = Origin { plan: [1; 32], sender: 3 };
        let speech = Speech { origin, stage: Stage::Model, turn: 9, entry: 4, head: [2; 32], payload };
        let bytes = Frame::Speech(speech).encode(&key());
        assert_eq!(bytes.len(), SPEECH_OVERHEAD + 8000);
        assert_eq!(peek_speech(&bytes), Some((origin, Stage::Model, 9)));
        assert!(bytes.len() <= largest_frame(1000, 5, 0));
    }

    /// A length field that promises more than is there must not be believed.
    #[test]
    fn a_promised_length_allocates_nothing() {
        let payload = Payload::Grid { exponent: -30, values: vec![1] };
        let origin = Origin { plan: [1; 32], sender: 3 };
        let speech = Speech { origin, stage: Stage::Model, turn: 9, entry: 4, head: [2; 32], payload };
        let mut bytes = Frame::Speech(speech).encode(&key()).to_vec();
        let length = bytes.len() - 64 - 8 - 4;
        bytes[length..length + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Short));
    }
}
