//! What agents tell each other. An outgoing message can hold nothing but releases and what was computed from
//! releases; what arrives is of another type, which no agent can mistake for its own.

use std::fmt;
use std::sync::Arc;

use padmm_privacy::{Payload, PrivacyError, PublicVector, Release};

use crate::graph::Graph;

/// A site's place in the plan's list of sites, from 0. Agents, messages and sessions know each other by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteIndex(pub usize);

impl fmt::Display for SiteIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The part of a run that a message belongs to, in the order of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The algorithm's own turns, in which models are exchanged.
    Model,
    /// The turn after the algorithm's: every site's average of its releases, passed on to all.
    Average,
}

impl Stage {
    /// 0 or 1, as ledgers and frames store it.
    pub fn number(self) -> u32 {
        match self {
            Self::Model => 0,
            Self::Average => 1,
        }
    }

    /// The inverse of [`Stage::number`]; none for any other number.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Model, Self::Average].into_iter().find(|stage| stage.number() == number)
    }
}

/// The step of a run that a message belongs to: in every turn each agent sends at most one message, and then waits for those
/// of its neighbours. Turns are ordered as the run goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn {
    /// Which part of the run it is in.
    pub stage: Stage,
    /// Counted within the stage, from 1.
    pub number: u32,
}

impl Turn {
    /// Turn `number` of the algorithm's own stage.
    pub const fn model(number: u32) -> Self {
        Self { stage: Stage::Model, number }
    }

    /// Turn `number` of the averaging that follows; there is one.
    pub const fn average(number: u32) -> Self {
        Self { stage: Stage::Average, number }
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stage {
            Stage::Model => write!(f, "turn {}", self.number),
            Stage::Average if self.number == 1 => f.write_str("the averaging"),
            Stage::Average => write!(f, "averaging turn {}", self.number),
        }
    }
}

/// SHA-256 of the public state that a release was computed at.
pub type StateDigest = [u8; 32];

/// A message from an agent to some or all of its neighbours.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The agent that made it.
    pub from: SiteIndex,
    /// When in the run it is sent: the stage is [`Stage::Average`] for [`Content::Average`] and for nothing else.
    pub turn: Turn,
    /// Which of the sender's neighbours receive it.
    pub to: Recipients,
    /// A release, or something computed from releases alone.
    pub content: Content,
}

/// The neighbours that a message is addressed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// Every neighbour that is left.
    Neighbours,
    /// Every other site: neighbours pass it on.
    Everybody,
    /// This neighbour and no other.
    Site(SiteIndex),
}

impl Outgoing {
    /// Whether it is for another site of a network with this graph.
    pub fn is_for(&self, site: SiteIndex, graph: &Graph) -> bool {
        match self.to {
            Recipients::Neighbours => graph.has_edge(self.from.0, site.0),
            Recipients::Everybody => self.from != site,
            Recipients::Site(only) => only == site,
        }
    }
}

/// What a message carries: never anything that was computed from records without the gate.
#[derive(Clone, Debug)]
pub enum Content {
    /// A model that went through the gate.
    Model(Release<Payload>),
    /// What an algorithm says without its records: a function of releases.
    Derived(PublicVector),
    /// A site's average of what it released.
    Average(PublicVector),
}

/// A message as a receiver sees it, decoded and checked. Cheap to hand to many receivers.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Which neighbour sent it; whoever delivers it has checked that.
    pub from: SiteIndex,
    /// The turn in which it was sent, and in which it is used.
    pub turn: Turn,
    /// What was sent, as finite numbers.
    pub vector: Arc<PublicVector>,
    /// Where the sender computed it, if the sender says so: a release that was computed elsewhere means nothing here.
    pub state: Option<StateDigest>,
}

impl Incoming {
    /// What the site `from` sent as `payload`; an error if it is not a vector of finite numbers.
    pub fn decode(from: SiteIndex, turn: Turn, payload: &Payload) -> Result<Self, PrivacyError> {
        Ok(Self { from, turn, vector: Arc::new(PublicVector::received(payload)?), state: None })
    }

    /// The same, computed at a public state that the sender names.
    pub fn at(self, state: Option<StateDigest>) -> Self {
        Self { state, ..self }
    }
}

/// Delivery within one process: nothing is encoded, and nothing needs checking.
impl From<&Outgoing> for Incoming {
    fn from(message: &Outgoing) -> Self {
        let vector = match &message.content {
            Content::Model(release) => PublicVector::from(release),
            Content::Derived(values) | Content::Average(values) => values.clone(),
        };
        Self { from: message.from, turn: message.turn, vector: Arc::new(vector), state: None }
    }
}
