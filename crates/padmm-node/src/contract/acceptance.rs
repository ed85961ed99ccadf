//! A site's word that it accepts a contract, signed by its identity.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CONTRACT_FORMAT, Contract, ContractError, PlanHash, SiteEntry, text};
use crate::identity::{Fingerprint, PublicKey, SecretKey, Signature, SignaturePurpose, SiteName};

/// The file `SITE.accept`. It is only somebody's claim until [`Acceptance::verify`] has looked at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// Always [`CONTRACT_FORMAT`] once it is checked.
    pub format: u32,
    /// Hash of the contract that is accepted.
    pub plan: PlanHash,
    /// The site that accepts it, as the plan names it.
    pub site: SiteName,
    /// By the site's identity key, over hash and name.
    pub signature: Signature,
}

impl Acceptance {
    /// Accepts `contract` as `site`; the key must be the one whose fingerprint the contract has.
    pub fn accept(contract: &Contract, site: &SiteName, identity: &SecretKey) -> Result<Self, ContractError> {
        check_key(planned(contract, site)?, &identity.public())?;
        let plan = contract.hash();
        let signature = identity.sign(SignaturePurpose::Acceptance, &message(plan, site));
        Ok(Self { format: CONTRACT_FORMAT, plan, site: site.clone(), signature })
    }

    /// Whether this is the word of a site of `contract` on that very contract, given by the key on its card.
    pub fn verify(&self, contract: &Contract, identity: &PublicKey) -> Result<(), ContractError> {
        if self.format != CONTRACT_FORMAT {
            return Err(ContractError::Format { found: self.format, known: CONTRACT_FORMAT });
        }
        check_key(planned(contract, &self.site)?, identity)?;
        if self.plan != contract.hash() {
            return Err(ContractError::OtherPlan {
                site: self.site.clone(),
                accepted: self.plan.to_string(),
                here: contract.hash().to_string(),
            });
        }
        if !identity.verifies(SignaturePurpose::Acceptance, &message(self.plan, &self.site), &self.signature)
        {
            return Err(ContractError::AcceptanceSignature { site: self.site.clone() });
        }
        Ok(())
    }

    /// Reads an `.accept` file; its signature is left to [`Acceptance::verify`].
    pub fn read(path: &Path) -> Result<Self, ContractError> {
        let text = std::fs::read_to_string(path)
            .map_err(|problem| ContractError::Read { path: path.to_owned(), problem })?;
        text::parse(&text, path)
    }

    /// The text of the `.accept` file, with a comment for people.
    pub fn to_toml(&self) -> String {
        let comment = format!("# {} accepts the plan with this hash.\n", self.site);
        comment + &toml::to_string(self).expect("an acceptance is plain text")
    }
}

/// What is signed: 32 bytes of hash, then the name.
fn message(plan: PlanHash, site: &SiteName) -> Vec<u8> {
    [plan.0.as_slice(), site.as_str().as_bytes()].concat()
}

fn planned<'a>(contract: &'a Contract, site: &SiteName) -> Result<&'a SiteEntry, ContractError> {
    Ok(&contract.sites()[contract.site_index(site)?])
}

fn check_key(site: &SiteEntry, key: &PublicKey) -> Result<(), ContractError> {
    let found = Fingerprint::of(key);
    if found == site.fingerprint {
        return Ok(());
    }
    Err(ContractError::OtherFingerprint { site: site.name.clone(), planned: site.fingerprint, found })
}
