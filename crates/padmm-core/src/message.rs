//! What agents tell each other. An outgoing message can hold nothing but releases and what was computed from
//! releases; what arrives is of another type, which no agent can mistake for its own.

use std::sync::Arc;

use padmm_privacy::{Payload, PeerRelease, PrivacyError, Public, Release};

/// The part of a run that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A private round: a noisy model.
    Model,
    /// A gossip round after the private ones: an average of releases.
    Average,
}

/// A message to every neighbour.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The sender's place in the plan's list of sites.
    pub from: usize,
    /// Round within the stage, from 1.
    pub round: u32,
    /// What is said.
    pub content: Content,
}

/// What a message says.
#[derive(Clone, Debug)]
pub enum Content {
    /// A model that went through the gate.
    Model(Release<Payload>),
    /// A function of releases.
    Average(Public),
}

/// A message as a receiver sees it, decoded and checked. Cheap to hand to many receivers.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The sender's place in the plan's list of sites.
    pub from: usize,
    /// Part of the run.
    pub stage: Stage,
    /// Round within the stage, from 1.
    pub round: u32,
    /// The model.
    pub vector: Arc<Public>,
}

impl Incoming {
    /// What a peer sent as `payload`; an error if it is not a vector of finite numbers.
    pub fn decode(
        from: usize,
        stage: Stage,
        round: u32,
        site: &str,
        payload: Payload,
    ) -> Result<Self, PrivacyError> {
        let peer = PeerRelease::new(site.to_owned(), round, payload)?;
        Ok(Incoming { from, stage, round, vector: Arc::new(Public::from(&peer)) })
    }
}

/// Delivery within one process.
impl From<&Outgoing> for Incoming {
    fn from(message: &Outgoing) -> Self {
        let (stage, vector) = match &message.content {
            Content::Model(release) => (Stage::Model, Public::from(release)),
            Content::Average(average) => (Stage::Average, average.clone()),
        };
        Incoming { from: message.from, stage, round: message.round, vector: Arc::new(vector) }
    }
}
