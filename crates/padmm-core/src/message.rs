//! What agents tell each other. An outgoing message can hold nothing but releases and what was computed from
//! releases; what arrives is of another type, which no agent can mistake for its own.

use std::sync::Arc;

use padmm_privacy::{Payload, PeerRelease, PrivacyError, Public, Release};

/// The part of a run that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The algorithm's own turns.
    Model,
    /// A gossip turn after the algorithm's: an average of releases.
    Average,
}

/// A message to neighbours.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The sender's place in the plan's list of sites.
    pub from: usize,
    /// Turn within the stage, from 1.
    pub turn: u32,
    /// Whom it is for.
    pub to: Recipients,
    /// What is said.
    pub content: Content,
}

/// Whom a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// Every neighbour that is left.
    Neighbours,
    /// The site in this place of the plan's list.
    Site(usize),
}

impl Outgoing {
    /// Whether the neighbour `site` is to get it.
    pub fn is_for(&self, site: usize) -> bool {
        match self.to {
            Recipients::Neighbours => true,
            Recipients::Site(only) => only == site,
        }
    }
}

/// What a message says.
#[derive(Clone, Debug)]
pub enum Content {
    /// A model that went through the gate.
    Model(Release<Payload>),
    /// What an algorithm says without its records: a function of releases.
    Derived(Public),
    /// An average of releases, for gossip.
    Average(Public),
}

/// A message as a receiver sees it, decoded and checked. Cheap to hand to many receivers.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The sender's place in the plan's list of sites.
    pub from: usize,
    /// Part of the run.
    pub stage: Stage,
    /// Turn within the stage, from 1.
    pub turn: u32,
    /// The model.
    pub vector: Arc<Public>,
}

impl Incoming {
    /// What a peer sent as `payload`; an error if it is not a vector of finite numbers.
    pub fn decode(
        from: usize,
        stage: Stage,
        turn: u32,
        site: &str,
        payload: Payload,
    ) -> Result<Self, PrivacyError> {
        let peer = PeerRelease::new(site.to_owned(), turn, payload)?;
        Ok(Incoming { from, stage, turn, vector: Arc::new(Public::from(&peer)) })
    }
}

/// Delivery within one process.
impl From<&Outgoing> for Incoming {
    fn from(message: &Outgoing) -> Self {
        let (stage, vector) = match &message.content {
            Content::Model(release) => (Stage::Model, Public::from(release)),
            Content::Derived(derived) => (Stage::Model, derived.clone()),
            Content::Average(average) => (Stage::Average, average.clone()),
        };
        Incoming { from: message.from, stage, turn: message.turn, vector: Arc::new(vector) }
    }
}
