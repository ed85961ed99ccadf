//! What this site remembers of a neighbour from all its runs, to show it when it comes: how far its ledgers must be.

use std::collections::BTreeSet;
use std::path::Path;

use padmm_core::message::SiteIndex;

use super::{SiteError, ledger_of_data};
use crate::frame::{Announcement, Frame, PlanDigest, Shown, is_signed_by, release_of};
use crate::identity::{Card, PublicKey};
use crate::ledger::SiteLedger;
use crate::session::Neighbour;

/// A neighbour with what the site's ledgers, the open one and those of its other records in `folder`, hold of it.
pub(super) fn neighbour(
    site: SiteIndex,
    card: &Card,
    addresses: Vec<String>,
    ledger: &SiteLedger,
    folder: &Path,
    plan: &PlanDigest,
) -> Result<Neighbour, SiteError> {
    let (name, key) = (card.name().as_str(), *card.identity());
    let mut neighbour = Neighbour { site, key, addresses, announced: vec![], kept: None, latest: None };
    let mut rows = vec![];
    for path in ledger_of_data::all_in(folder)?.iter().filter(|path| *path != ledger.path()) {
        rows.extend(SiteLedger::announced_in(path, name)?.into_iter().rev());
    }
    rows.extend(ledger.announced_by(name)?.into_iter().rev());
    let mut known: BTreeSet<PlanDigest> = BTreeSet::new();
    for (announcement, bytes) in rows.iter().filter_map(|row| own_announcement(&row.bytes, &key)) {
        known.insert(announcement.origin.plan);
        let is_newer = |kept: &(Announcement, Shown)| kept.0.entry < announcement.entry;
        if announcement.origin.plan == *plan && neighbour.kept.as_ref().is_none_or(is_newer) {
            neighbour.kept = Some((announcement.clone(), bytes));
        }
        neighbour.remember(announcement, bytes);
    }
    let mut newest: Option<((bool, u64), Vec<u8>)> = None;
    ledger.for_each_from(name, |bytes| {
        // Entries count within one ledger only, and a site may have several: what it said in this run comes before all else.
        let age =
            release_of(bytes).filter(|(of, _)| !known.contains(of)).map(|(of, entry)| (of == *plan, entry));
        if let Some(age) = age.filter(|age| newest.as_ref().is_none_or(|n| n.0 < *age))
            && is_signed_by(bytes, &key)
        {
            newest = Some((age, bytes.to_vec()));
        }
    })?;
    neighbour.latest = newest.map(|n| n.1.into());
    Ok(neighbour)
}

/// The table is not part of the chain: what stands in it is believed by its signature.
fn own_announcement(bytes: &[u8], key: &PublicKey) -> Option<(Announcement, Shown)> {
    match Frame::decode(bytes) {
        Ok(Frame::Announce(announcement)) if is_signed_by(bytes, key) => {
            Some((announcement, bytes.try_into().ok()?))
        }
        _ => None,
    }
}
