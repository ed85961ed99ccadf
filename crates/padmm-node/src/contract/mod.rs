//! What the sites agreed to.
//!
//! A [`Contract`] is a `plan.toml` that has been checked: settings, schema, sites with their public record counts and
//! fingerprints, who talks to whom, and what is done about silence. All sites hold the same one, which its [`PlanHash`]
//! shows; each signs an [`Acceptance`] of that hash.

mod acceptance;
mod difference;
mod draft;
mod error;
mod text;

pub use acceptance::Acceptance;
pub use difference::{Difference, difference};
pub use draft::{ContractDraft, Silence, SiteEntry, Trust};
pub use error::ContractError;

use std::fmt;
use std::path::Path;
use std::time::SystemTime;

use padmm_core::calibration::Calibration;
use padmm_core::data::FeatureSpace;
use padmm_core::graph::Graph;
use padmm_core::plan::Plan;
use padmm_core::schema::Schema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::identity::{Authority, Card, Expiry, IdentityError, KeyError, SiteName, from_hex, to_hex};

/// The format of plans and acceptances that this program writes and reads.
pub const CONTRACT_FORMAT: u32 = 1;
/// The largest number of sites in a plan; a site's place takes two bytes in a frame.
pub const MAX_SITES: usize = 1000;
/// The shortest silence after which a site may be left behind, in seconds.
pub const LEAST_SILENCE: u32 = 5;
/// This program's version, which all sites of a run share.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// What a contract is known by: a SHA-256 digest of what it says, whatever its file looks like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanHash(pub [u8; 32]);

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlanHash({self})")
    }
}

impl From<PlanHash> for String {
    fn from(hash: PlanHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for PlanHash {
    type Error = KeyError;
    fn try_from(text: String) -> Result<Self, KeyError> {
        from_hex("a plan's hash", &text).map(PlanHash)
    }
}

/// A checked contract. Deserialising goes through the same check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "ContractDraft", into = "ContractDraft")]
pub struct Contract {
    /// As written, with the edges in their normal order.
    draft: ContractDraft,
    plan: Plan,
    graph: Graph,
    space: FeatureSpace,
    calibration: Calibration,
    authority: Option<Authority>,
    hash: PlanHash,
}

impl Contract {
    /// Reads a `plan.toml` and checks all of it; errors name the line where it is known.
    pub fn read(path: &Path) -> Result<Self, ContractError> {
        let text = std::fs::read_to_string(path)
            .map_err(|problem| ContractError::Read { path: path.to_owned(), problem })?;
        Self::from_toml(&text, path)
    }

    /// Checks the text of a `plan.toml`; `path` is what errors call it.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, ContractError> {
        let draft: ContractDraft = text::parse(text, path)?;
        draft.check().map_err(|error| ContractError::Text {
            path: path.to_owned(),
            line: None,
            problem: error.to_string(),
        })
    }

    /// The text of its `plan.toml`, with comments for people.
    pub fn to_toml(&self) -> String {
        text::write(self)
    }

    /// As it was written, with the edges in their normal order.
    pub fn draft(&self) -> &ContractDraft {
        &self.draft
    }

    /// What people call the run; its folder at every site has this name.
    pub fn name(&self) -> &SiteName {
        &self.draft.name
    }

    /// The hash of its contents, by which sites know that they hold the same plan.
    pub fn hash(&self) -> PlanHash {
        self.hash
    }

    /// Algorithm, budget and rounds, checked.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the columns of every site's file mean.
    pub fn schema(&self) -> &Schema {
        &self.draft.schema
    }

    /// The columns of the encoded records, as they follow from the schema.
    pub fn space(&self) -> &FeatureSpace {
        &self.space
    }

    /// Who talks to whom, by place in [`Contract::sites`].
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The sites, in the order in which agents are numbered.
    pub fn sites(&self) -> &[SiteEntry] {
        &self.draft.sites
    }

    /// The place of a site in [`Contract::sites`]; an error lists those that there are.
    pub fn site_index(&self, name: &SiteName) -> Result<usize, ContractError> {
        self.sites().iter().position(|site| site.name == *name).ok_or_else(|| ContractError::UnknownSite {
            name: name.to_string(),
            known: self.sites().iter().map(|site| site.name.to_string()).collect(),
        })
    }

    /// The places of a site's neighbours, ascending.
    pub fn neighbours(&self, index: usize) -> &[usize] {
        self.graph.neighbours(index)
    }

    /// Every edge once, as places `(i, j)` with `i < j`.
    pub fn edges(&self) -> Vec<(usize, usize)> {
        self.graph.edges().collect()
    }

    /// What follows from the contract for each site, before any record is touched.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// What is done about a site that is not heard of.
    pub fn silence(&self) -> Silence {
        self.draft.silence
    }

    /// The authority that all certificates must come from, if there is one.
    pub fn authority(&self) -> Option<&Authority> {
        self.authority.as_ref()
    }

    /// Whether a card is the one that this contract means: name, fingerprint, dates, and the authority's word.
    pub fn check_card(&self, card: &Card, now: SystemTime) -> Result<Expiry, ContractError> {
        let site = &self.sites()[self.site_index(card.name())?];
        if card.fingerprint() != site.fingerprint {
            return Err(ContractError::OtherFingerprint {
                site: site.name.clone(),
                planned: site.fingerprint,
                found: card.fingerprint(),
            });
        }
        let expiry = card.check(now)?;
        if let Some(authority) = &self.authority {
            authority.check(card.name(), card.certificate(), now)?;
        }
        Ok(expiry)
    }
}

impl PartialEq for Contract {
    fn eq(&self, other: &Self) -> bool {
        self.draft == other.draft
    }
}

impl TryFrom<ContractDraft> for Contract {
    type Error = ContractError;
    fn try_from(draft: ContractDraft) -> Result<Self, ContractError> {
        draft.check()
    }
}

impl From<Contract> for ContractDraft {
    fn from(contract: Contract) -> Self {
        contract.draft
    }
}

/// SHA-256 over a prefix that says what is hashed, and the value as JSON.
///
/// The fields of our types have a fixed order and numbers their shortest form, so the same value has the same bytes
/// everywhere.
fn digest(prefix: &[u8], value: &impl Serialize) -> [u8; 32] {
    let json = serde_json::to_vec(value).expect("checked values are plain text and finite numbers");
    let mut hash = Sha256::new();
    hash.update(prefix);
    hash.update(json);
    hash.finalize().into()
}

/// The hash by which a schema is known in a plan.
pub fn schema_hash(schema: &Schema) -> String {
    to_hex(&digest(b"padmm schema 1\0", schema))
}

fn plan_hash(draft: &ContractDraft) -> PlanHash {
    PlanHash(digest(b"padmm plan 1\0", draft))
}

fn read_authority(trust: Option<&Trust>) -> Result<Option<Authority>, IdentityError> {
    trust.map(|trust| Authority::from_pem(&trust.ca)).transpose()
}
