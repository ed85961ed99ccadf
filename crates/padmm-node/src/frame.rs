//! What travels between two sites: frames of bytes, signed by their sender and bound to the plan.
//!
//! A frame is `kind, body` and, for everything that another site believes, `signature` at the end. The signature covers all bytes
//! before it under [`SignaturePurpose::Envelope`]; the body starts with the plan's hash and the sender's place in the plan, so what
//! was said in one run, by one site, for one turn, is nothing else. Decoding reads lengths only after checking them against what is
//! there, allocates no more than it was given, and accepts exactly one encoding of every frame.

mod codec;

use std::sync::Arc;

use padmm_core::message::{SiteIndex, StateDigest, Turn};
use padmm_privacy::Payload;

use self::codec::{Reader, Writer, on_wire};
use crate::identity::{PublicKey, SecretKey, Signature, SignaturePurpose};

/// Bytes of a [`ModelFrame`] beside its coefficients, at most.
pub const MODEL_FRAME_OVERHEAD: usize = 1 + 32 + 2 + 1 + 4 + 8 + 32 + 32 + 1 + 4 + 4 + 64;
/// The largest text of a plan that is accepted.
pub const MOST_PLAN_TEXT: usize = 4 << 20;

const SIGNATURE: usize = 64;

/// The hash of the contract that a frame belongs to.
pub type PlanDigest = [u8; 32];

/// Who says something, in which run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The run, by the hash of its contract.
    pub plan: PlanDigest,
    /// The sender; two bytes on the wire.
    pub sender: SiteIndex,
}

/// A site's word on the contract, as it is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Whose word it is; two bytes on the wire.
    pub site: SiteIndex,
    /// Its identity key; the contract has the fingerprint.
    pub key: [u8; 32],
    /// Over the contract's hash and the site's name.
    pub signature: Signature,
}

/// A site's word that all its edges work: it has heard every one of its neighbours, with this plan, and they are content with
/// its ledger. It is passed on like an acceptance; the key that signed it comes with the site's acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Whose word it is; two bytes on the wire.
    pub site: SiteIndex,
    /// Over the plan's hash and the site's place.
    pub signature: Signature,
}

impl Ready {
    fn message(plan: &PlanDigest, site: SiteIndex) -> [u8; 34] {
        let mut message = [0; 34];
        message[..32].copy_from_slice(plan);
        message[32..].copy_from_slice(&on_wire(site));
        message
    }

    /// The word of the site with this origin and key.
    pub fn say(origin: Origin, key: &SecretKey) -> Self {
        let signature = key.sign(SignaturePurpose::Ready, &Self::message(&origin.plan, origin.sender));
        Self { site: origin.sender, signature }
    }

    /// Whether `key` signed it for this plan.
    pub fn is_said_by(&self, plan: &PlanDigest, key: &PublicKey) -> bool {
        key.verifies(SignaturePurpose::Ready, &Self::message(plan, self.site), &self.signature)
    }
}

/// "This release is in my ledger and is about to leave." A neighbour keeps it before the release leaves, so that it can tell later
/// whether that ledger was replaced by an older copy.
///
/// The digest is of the release's whole frame, with its signature: who does not have the site's key cannot make the signature that
/// belongs to a guess, and so cannot test a guess of the release against the digest before the release has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The site that signs it, and the run.
    pub origin: Origin,
    /// The round that it releases, from 1.
    pub round: u32,
    /// Hash of the first entry of the ledger that charges it: which of the site's ledgers it is.
    pub ledger: [u8; 32],
    /// Number of the entry that charges it.
    pub entry: u64,
    /// Head of the ledger before that entry.
    pub head: [u8; 32],
    /// SHA-256 of the frame of the release.
    pub digest: [u8; 32],
}

/// Bytes of an announcement's frame, signature included.
pub const ANNOUNCEMENT: usize = 1 + 34 + 4 + 32 + 8 + 32 + 32 + SIGNATURE;
/// The frame of an announcement as it is shown to whom it is from.
pub type Shown = [u8; ANNOUNCEMENT];
/// Announcements in a greeting at most: one for each of the receiver's ledgers that the sender knows.
pub const MOST_SHOWN: usize = 32;

/// One site's message of a turn: a release, or something computed from releases.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFrame {
    /// The site that signs it, and the run.
    pub origin: Origin,
    /// When in the run it is sent.
    pub turn: Turn,
    /// Number of the sender's ledger entry that charges it; 0 for what is free.
    pub entry: u64,
    /// Head of the sender's ledger before that entry; zeros for what is free.
    pub head: [u8; 32],
    /// The public state that the release was computed at, where all sites compute at the same one.
    pub state: Option<StateDigest>,
    /// Integers on the plan's grid for a release, plain numbers for what is free.
    pub payload: Payload,
}

/// Everything that can travel between two sites.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// "I hold this plan, and these sites' words on it, and this is how far I know your ledgers to be." With `proof`, a release of the
    /// receiver's own follows.
    Hello {
        /// The site that signs it, and the run.
        origin: Origin,
        /// Whether a release of the receiver's own follows, from a run before there were announcements.
        proof: bool,
        /// The receiver's own newest announcements, one for each of its ledgers.
        shown: Vec<Shown>,
        /// Every site's word on the plan that the sender holds.
        accepted: Vec<Accepted>,
        /// Words that all edges of a site work.
        ready: Vec<Ready>,
    },
    /// A release is about to leave.
    Announce(Announcement),
    /// "I have kept your announcement, on disk."
    Receipt {
        /// The site that signs it, and the run.
        origin: Origin,
        /// The site whose announcement is confirmed.
        whose: SiteIndex,
        /// The ledger entry that it announced.
        entry: u64,
        /// The digest of the release that it announced.
        digest: [u8; 32],
    },
    /// A site's message of a turn.
    Model(ModelFrame),
    /// "I am alive, and this far."
    Status {
        /// The site that signs it, and the run.
        origin: Origin,
        /// The turn that the sender is in.
        turn: Turn,
        /// Grows from one status to the next.
        counter: u64,
        /// Whether the sender has its model.
        done: bool,
    },
    /// "I continue without this neighbour from this turn on."
    Departure {
        /// The site that signs it, and the run.
        origin: Origin,
        /// The neighbour that is left behind.
        lost: SiteIndex,
        /// The first turn that is computed without it.
        turn: Turn,
    },
    /// "Send me this site's message of this turn." Not signed: the connection tells who asks, and every answer is public.
    Request {
        /// Whose message is missing: the receiver's own, or one that it has passed on.
        whose: SiteIndex,
        /// Which of them.
        turn: Turn,
    },
    /// "Send me the text of your plan."
    RequestPlan,
    /// "Greet me again": a greeting, or somebody's word on the plan, has not arrived.
    RequestHello,
    /// The text of a plan, to find out in what two plans differ.
    PlanText(String),
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum FrameError {
    /// The bytes end before the frame does.
    #[error("the message is cut short")]
    Short,
    /// There are bytes after the frame's end.
    #[error("the message has {extra} bytes too many")]
    Long { extra: usize },
    /// The first byte names no kind of frame.
    #[error("messages of kind {kind} are unknown")]
    Kind { kind: u8 },
    /// A field with a value outside its range.
    #[error("its {field} is {value}, which cannot be")]
    Field {
        /// The field's name, for the log.
        field: &'static str,
        value: u64,
    },
    /// Integers beyond 2^53, steps outside the doubles' range, or numbers that are not finite.
    #[error("its numbers are absurd: integers of 2^53 or more, or not finite")]
    Absurd,
    /// The text of a plan is not UTF-8.
    #[error("its text is not UTF-8")]
    Text,
}

const HELLO: u8 = 1;
const MODEL: u8 = 2;
const STATUS: u8 = 3;
const DEPARTURE: u8 = 4;
const REQUEST: u8 = 5;
const REQUEST_PLAN: u8 = 6;
const PLAN_TEXT: u8 = 7;
const REQUEST_HELLO: u8 = 8;
const ANNOUNCE: u8 = 9;
const RECEIPT: u8 = 10;
/// A [`ModelFrame`] that names the state it was computed at.
const MODEL_AT: u8 = 11;

impl Frame {
    /// Who says it, where that is signed.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Self::Hello { origin, .. }
            | Self::Receipt { origin, .. }
            | Self::Status { origin, .. }
            | Self::Departure { origin, .. } => Some(*origin),
            Self::Model(model) => Some(model.origin),
            Self::Announce(announcement) => Some(announcement.origin),
            Self::Request { .. } | Self::RequestPlan | Self::RequestHello | Self::PlanText(_) => None,
        }
    }

    /// The bytes, signed where the kind asks for it.
    pub fn encode(&self, key: &SecretKey) -> Arc<[u8]> {
        let mut w = Writer::default();
        match self {
            Self::Hello { origin, proof, shown, accepted, ready } => {
                w.put(&[HELLO]).origin(*origin).put(&[u8::from(*proof)]).count(shown.len());
                shown.iter().for_each(|s| w.0.extend_from_slice(s));
                w.count(accepted.len());
                for a in accepted {
                    w.site(a.site).put(&a.key).put(&a.signature.0);
                }
                w.count(ready.len());
                for r in ready {
                    w.site(r.site).put(&r.signature.0);
                }
            }
            Self::Announce(a) => {
                w.put(&[ANNOUNCE]).origin(a.origin).put(&a.round.to_le_bytes()).put(&a.ledger);
                w.put(&a.entry.to_le_bytes()).put(&a.head).put(&a.digest);
            }
            Self::Receipt { origin, whose, entry, digest } => {
                w.put(&[RECEIPT]).origin(*origin).site(*whose);
                w.put(&entry.to_le_bytes()).put(digest);
            }
            Self::Model(s) => {
                let kind = if s.state.is_some() { MODEL_AT } else { MODEL };
                w.put(&[kind]).origin(s.origin).turn(s.turn);
                w.put(&s.entry.to_le_bytes()).put(&s.head);
                w.put(s.state.as_ref().map_or(&[], |state| &state[..])).payload(&s.payload);
            }
            Self::Status { origin, turn, counter, done } => {
                w.put(&[STATUS]).origin(*origin).turn(*turn);
                w.put(&counter.to_le_bytes()).put(&[u8::from(*done)]);
            }
            Self::Departure { origin, lost, turn } => {
                w.put(&[DEPARTURE]).origin(*origin).site(*lost).turn(*turn);
            }
            Self::Request { whose, turn } => {
                w.put(&[REQUEST]).site(*whose).turn(*turn);
            }
            Self::RequestPlan => {
                w.put(&[REQUEST_PLAN]);
            }
            Self::RequestHello => {
                w.put(&[REQUEST_HELLO]);
            }
            Self::PlanText(text) => {
                w.put(&[PLAN_TEXT]).put(text.as_bytes());
            }
        }
        if self.origin().is_some() {
            let signature = key.sign(SignaturePurpose::Envelope, &w.0);
            w.put(&signature.0);
        }
        w.0.into()
    }

    /// Reads a frame; its signature is left to [`is_signed_by`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let kind = *bytes.first().ok_or(FrameError::Short)?;
        let is_signed = matches!(kind, HELLO | MODEL | MODEL_AT | STATUS | DEPARTURE | ANNOUNCE | RECEIPT);
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
                    let (site, key, signature) = (r.site()?, r.array()?, Signature(r.array()?));
                    accepted.push(Accepted { site, key, signature });
                }
                for _ in 0..r.u16()? {
                    ready.push(Ready { site: r.site()?, signature: Signature(r.array()?) });
                }
                Self::Hello { origin, proof, shown, accepted, ready }
            }
            ANNOUNCE => {
                let (origin, round) = (r.origin()?, r.counted_from_one("turn")?);
                let (ledger, entry) = (r.array()?, r.u64()?);
                let (head, digest) = (r.array()?, r.array()?);
                Self::Announce(Announcement { origin, round, ledger, entry, head, digest })
            }
            RECEIPT => {
                let (origin, whose) = (r.origin()?, r.site()?);
                Self::Receipt { origin, whose, entry: r.u64()?, digest: r.array()? }
            }
            MODEL | MODEL_AT => {
                let (origin, turn) = (r.origin()?, r.turn()?);
                let (entry, head) = (r.u64()?, r.array()?);
                let state = if kind == MODEL_AT { Some(r.array()?) } else { None };
                Self::Model(ModelFrame { origin, turn, entry, head, state, payload: r.payload()? })
            }
            STATUS => {
                let (origin, turn) = (r.origin()?, r.turn()?);
                Self::Status { origin, turn, counter: r.u64()?, done: r.flag("done")? }
            }
            DEPARTURE => {
                let (origin, lost) = (r.origin()?, r.site()?);
                Self::Departure { origin, lost, turn: r.turn()? }
            }
            REQUEST => Self::Request { whose: r.site()?, turn: r.turn()? },
            REQUEST_PLAN => Self::RequestPlan,
            REQUEST_HELLO => Self::RequestHello,
            PLAN_TEXT => {
                let text = std::str::from_utf8(r.take(body.len())?).map_err(|_| FrameError::Text)?;
                Self::PlanText(text.to_owned())
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
    key.verifies(SignaturePurpose::Envelope, message, &Signature(*signature))
}

/// Origin and turn of the bytes of a [`ModelFrame`], without reading its numbers: enough to ignore what is known already.
pub fn peek_model(bytes: &[u8]) -> Option<(Origin, Turn)> {
    let mut r = Reader(bytes);
    if !matches!(r.u8().ok()?, MODEL | MODEL_AT) {
        return None;
    }
    Some((r.origin().ok()?, r.turn().ok()?))
}

/// Which message some bytes are: copies of one message have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKey {
    /// A site's message of a turn.
    Model(Origin, Turn),
    /// A site's word that it will release a round.
    Announcement(Origin, u32),
}

/// The key of a message that may be sent again, without checking anything else about it. Other frames have none: they are short,
/// and the next one says something else.
pub fn message_key(bytes: &[u8]) -> Option<MessageKey> {
    if let Some((origin, turn)) = peek_model(bytes) {
        return Some(MessageKey::Model(origin, turn));
    }
    let mut r = Reader(bytes);
    if r.u8().ok()? != ANNOUNCE {
        return None;
    }
    Some(MessageKey::Announcement(r.origin().ok()?, r.counted_from_one("turn").ok()?))
}

/// The plan and the ledger entry of a stored release; none if the bytes are something else, or were free.
pub fn release_of(bytes: &[u8]) -> Option<(PlanDigest, u64)> {
    match Frame::decode(bytes) {
        Ok(Frame::Model(model)) if model.entry > 0 => Some((model.origin.plan, model.entry)),
        _ => None,
    }
}

/// Whether the bytes only ask for something; such frames are answered from the outbox, whatever else the site is doing.
pub fn is_request(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&REQUEST | &REQUEST_PLAN))
}

/// The largest frame that a site of a run has a reason to send: a model, a hello with every site's word, or the plan.
pub fn largest_frame(n_coordinates: usize, n_sites: usize, plan_text: usize) -> usize {
    let words = n_sites * (2 + 32 + 64) + n_sites * (2 + 64);
    let hello = 1 + 34 + 1 + 3 * 2 + MOST_SHOWN * ANNOUNCEMENT + words + SIGNATURE;
    // Another plan's text may be longer than ours; twice is plenty to find the difference.
    let plan = 1 + (2 * plan_text + 4096).min(MOST_PLAN_TEXT);
    (MODEL_FRAME_OVERHEAD + 8 * n_coordinates).max(hello).max(plan)
}

#[cfg(test)]
mod tests;
