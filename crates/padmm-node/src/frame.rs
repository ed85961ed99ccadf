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

/// A site's word that all its edges work: it has heard every one of its neighbours, with this plan, and they are content with
/// its ledger. It is passed on like an acceptance; the key that signed it comes with the site's acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Place of the site in the contract.
    pub site: u16,
    /// Its signature.
    pub signature: Signature,
}

impl Ready {
    fn message(plan: &PlanDigest, site: u16) -> [u8; 34] {
        let mut message = [0; 34];
        message[..32].copy_from_slice(plan);
        message[32..].copy_from_slice(&site.to_le_bytes());
        message
    }

    /// The word of the site with this origin and key.
    pub fn say(origin: Origin, key: &SecretKey) -> Self {
        let signature = key.sign(Purpose::Ready, &Self::message(&origin.plan, origin.sender));
        Ready { site: origin.sender, signature }
    }

    /// Whether `key` signed it for this plan.
    pub fn is_said_by(&self, plan: &PlanDigest, key: &PublicKey) -> bool {
        key.verifies(Purpose::Ready, &Self::message(plan, self.site), &self.signature)
    }
}

/// "This release is in my ledger and is about to leave." A neighbour keeps it before the release leaves, so that it can tell later
/// whether that ledger was put back.
///
/// The digest is of the release's whole frame, with its signature: who does not have the site's key cannot make the signature that
/// belongs to a guess, and so cannot test a guess of the release against the digest before the release has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Who says it.
    pub origin: Origin,
    /// The round.
    pub turn: u32,
    /// Hash of the first entry of the ledger that charges it: which of the site's ledgers it is.
    pub ledger: [u8; 32],
    /// Number of the entry that charges it.
    pub entry: u64,
    /// Head of the ledger before that entry.
    pub head: [u8; 32],
    /// SHA-256 of the frame of the release.
    pub digest: [u8; 32],
}

/// Bytes of an announcement's frame.
pub const ANNOUNCEMENT: usize = 1 + 34 + 4 + 32 + 8 + 32 + 32 + SIGNATURE;
/// The frame of an announcement as it is shown to whom it is from.
pub type Shown = [u8; ANNOUNCEMENT];
/// Announcements in a greeting at most: one for each of the receiver's ledgers that the sender knows.
pub const MOST_SHOWN: usize = 32;

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
    /// "I hold this plan, and these sites' words on it, and this is how far I know your ledgers to be." With `proof`, a release of the
    /// receiver's own follows.
    Hello {
        /// Who says it.
        origin: Origin,
        /// Whether a release of the receiver's own follows, from a run before there were announcements.
        proof: bool,
        /// The receiver's own newest announcements, one for each of its ledgers.
        shown: Vec<Shown>,
        /// Signatures on the plan.
        accepted: Vec<Accepted>,
        /// Words that all edges of a site work.
        ready: Vec<Ready>,
    },
    /// A release is about to leave.
    Announce(Announcement),
    /// "I have kept your announcement, on disk."
    Receipt {
        /// Who says it.
        origin: Origin,
        /// Whose announcement.
        whose: u16,
        /// Its entry.
        entry: u64,
        /// Its digest.
        digest: [u8; 32],
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
        Ok((stage, self.turn()?))
    }

    fn turn(&mut self) -> Result<u32, FrameError> {
        match self.u32()? {
            0 => Err(FrameError::Field { field: "turn", value: 0 }),
            turn => Ok(turn),
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

    /// How many of something follow.
    fn count(&mut self, n: usize) -> &mut Self {
        self.put(&u16::try_from(n).expect("a contract has at most 1000 sites").to_le_bytes())
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
const ANNOUNCE: u8 = 9;
const RECEIPT: u8 = 10;

impl Frame {
    /// Who says it, where that is signed.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Frame::Hello { origin, .. }
            | Frame::Receipt { origin, .. }
            | Frame::Status { origin, .. }
            | Frame::Departure { origin, .. } => Some(*origin),
            Frame::Speech(speech) => Some(speech.origin),
            Frame::Announce(announcement) => Some(announcement.origin),
            Frame::Want { .. } | Frame::WantPlan | Frame::WantHello | Frame::PlanText(_) => None,
        }
    }

    /// The bytes, signed where the kind asks for it.
    pub fn encode(&self, key: &SecretKey) -> Arc<[u8]> {
        let mut w = Writer::default();
        match self {
            Frame::Hello { origin, proof, shown, accepted, ready } => {
                w.put(&[HELLO]).origin(*origin).put(&[u8::from(*proof)]).count(shown.len());
                shown.iter().for_each(|s| w.0.extend_from_slice(s));
                w.count(accepted.len());
                for a in accepted {
                    w.put(&a.site.to_le_bytes()).put(&a.key).put(&a.signature.0);
                }
                w.count(ready.len());
                for r in ready {
                    w.put(&r.site.to_le_bytes()).put(&r.signature.0);
                }
            }
            Frame::Announce(a) => {
                w.put(&[ANNOUNCE]).origin(a.origin).put(&a.turn.to_le_bytes()).put(&a.ledger);
                w.put(&a.entry.to_le_bytes()).put(&a.head).put(&a.digest);
            }
            Frame::Receipt { origin, whose, entry, digest } => {
                w.put(&[RECEIPT]).origin(*origin).put(&whose.to_le_bytes());
                w.put(&entry.to_le_bytes()).put(digest);
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
        let is_signed = matches!(kind, HELLO | SPEECH | STATUS | DEPARTURE | ANNOUNCE | RECEIPT);
        let end = bytes.len().checked_sub(if is_signed { SIGNATURE } else { 0 });
        let body = end.and_then(|end| bytes.get(1..end)).ok_or(FrameError::Short)?;
        let mut r = Reader(body);
        let frame = match kind {
            HELLO => {
                let (origin, proof) = (r.origin()?, r.flag("proof")?);
                let (mut shown, mut accepted, mut ready) = (vec![], vec![], vec![]);
                for _ in 0..r.u16()? {
                    shown.push(r.array()?);
                }
                for _ in 0..r.u16()? {
                    let (site, key, signature) = (r.u16()?, r.array()?, Signature(r.array()?));
                    accepted.push(Accepted { site, key, signature });
                }
                for _ in 0..r.u16()? {
                    ready.push(Ready { site: r.u16()?, signature: Signature(r.array()?) });
                }
                Frame::Hello { origin, proof, shown, accepted, ready }
            }
            ANNOUNCE => {
                let (origin, turn) = (r.origin()?, r.turn()?);
                let (ledger, entry) = (r.array()?, r.u64()?);
                let (head, digest) = (r.array()?, r.array()?);
                Frame::Announce(Announcement { origin, turn, ledger, entry, head, digest })
            }
            RECEIPT => {
                let (origin, whose) = (r.origin()?, r.u16()?);
                Frame::Receipt { origin, whose, entry: r.u64()?, digest: r.array()? }
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
    let words = n_sites * (2 + 32 + 64) + n_sites * (2 + 64);
    let hello = 1 + 34 + 1 + 3 * 2 + MOST_SHOWN * ANNOUNCEMENT + words + SIGNATURE;
    // Another plan's text may be longer than ours; twice is plenty to find the difference.
    let plan = 1 + (2 * plan_text + 4096).min(MOST_PLAN_TEXT);
    (SPEECH_OVERHEAD + 8 * n_features).max(hello).max(plan)
}

#[cfg(test)]
mod tests;
