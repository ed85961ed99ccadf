//! The averaging after the last round: every site's own average reaches every other site, and all keep the mean of the same vectors, formed
//! in the same order, so that their models are the same bits.

use std::collections::BTreeMap;
use std::sync::Arc;

use padmm_privacy::PublicVector;

use crate::message::SiteIndex;
use crate::step;

/// The sites whose averages are to be averaged, each with its own once that is here.
pub(super) struct Averaging(BTreeMap<SiteIndex, Option<Arc<PublicVector>>>);

impl Averaging {
    /// All sites of a plan.
    pub(super) fn of(n_agents: usize) -> Self {
        Self((0..n_agents).map(|site| (SiteIndex(site), None)).collect())
    }

    /// A site's average, of which the first counts; false if the site has no place in the mean.
    pub(super) fn put(&mut self, site: SiteIndex, average: Arc<PublicVector>) -> bool {
        let Some(place) = self.0.get_mut(&site) else { return false };
        place.get_or_insert(average);
        true
    }

    /// The mean is formed without this site, unless its average is here.
    pub(super) fn leave_out(&mut self, site: SiteIndex) {
        if self.0.get(&site).is_some_and(Option::is_none) {
            self.0.remove(&site);
        }
    }

    /// Those whose averages the mean is of.
    pub(super) fn sites(&self) -> impl Iterator<Item = SiteIndex> {
        self.0.keys().copied()
    }

    /// The mean, once nobody's average is missing.
    pub(super) fn mean(&self) -> Option<PublicVector> {
        let all: Option<Vec<&PublicVector>> = self.0.values().map(Option::as_deref).collect();
        all.map(|averages| step::mean(&averages))
    }
}
