//! The sites' words on a plan: those in the run's folder, and those that come over the network.

use std::path::Path;

use padmm_core::message::SiteIndex;

use super::SiteError;
use crate::contract::{Acceptance, CONTRACT_FORMAT, Contract};
use crate::frame::Accepted;
use crate::identity::{Card, Home, PublicKey};

/// The words that are in the run's folder: this site's own, and those that others sent as files.
pub(super) fn read_acceptances(
    folder: &Path,
    contract: &Contract,
    home: &Home,
    cards: &[(SiteIndex, Card)],
) -> Result<Vec<Accepted>, SiteError> {
    let mut found = vec![];
    for (i, site) in contract.sites().iter().enumerate() {
        let path = folder.join(format!("{}.accept", site.name));
        if !path.is_file() {
            continue;
        }
        let known = cards.iter().find(|c| c.0 == SiteIndex(i)).map(|c| *c.1.identity());
        let own = (site.name == *home.name()).then(|| home.identity().public());
        let stored = || home.cards().find(&site.name).ok().flatten().map(|c| *c.identity());
        // Without a card of theirs, the word of a site that is no neighbour comes over the network, with its key.
        let Some(key) = own.or(known).or_else(stored) else { continue };
        let acceptance = Acceptance::read(&path)?;
        acceptance.verify(contract, &key)?;
        found.push(Accepted { site: SiteIndex(i), key: key.to_bytes(), signature: acceptance.signature });
    }
    Ok(found)
}

/// The names of the plans that a site has accepted.
pub fn accepted_runs(home: &Home) -> Vec<String> {
    let runs = std::fs::read_dir(home.dir().join("runs")).into_iter().flatten().flatten();
    let mut names: Vec<String> = runs
        .filter(|run| run.path().join(format!("{}.accept", home.name())).is_file())
        .map(|run| run.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Whether a word that came over the network is that of the site it names, on this contract.
pub(super) fn is_acceptance(contract: &Contract, word: &Accepted) -> bool {
    let (Some(site), Ok(key)) = (contract.sites().get(word.site.0), PublicKey::from_bytes(&word.key)) else {
        return false;
    };
    let (plan, site) = (contract.hash(), site.name.clone());
    let acceptance = Acceptance { format: CONTRACT_FORMAT, plan, site, signature: word.signature };
    acceptance.verify(contract, &key).is_ok()
}
