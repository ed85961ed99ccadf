//! A site's records, and what may be refused because of them: nothing that a single record can turn.
//!
//! Whether a site accepts a plan, and whether it takes part, is seen by the organiser and by its neighbours. If one record could decide it, that
//! would tell them about the record, and no noise would be paid for it. So the only thing about the records that is compared with the plan is the
//! number of rows, which is public; everything else is a warning for the site's own eyes.

use padmm_core::message::SiteIndex;
use padmm_core::schema::{Encoded, OWN_EYES};

use super::SiteError;
use crate::contract::Contract;
use crate::identity::Home;

/// The records of the plan's site `me`: every row of its file is one.
///
/// The errors are about the file, its header, the plan, and the number of rows.
pub fn encode_records(home: &Home, contract: &Contract, me: SiteIndex) -> Result<Encoded, SiteError> {
    let loss = contract.plan().settings().loss;
    if loss.is_classification() != contract.schema().label().is_binary() {
        return Err(SiteError::Label { loss: loss.to_string() });
    }
    let file = home.config().data()?;
    let encoded = padmm_data::encode_site_file(file, contract.schema())?;
    let site = &contract.sites()[me.0];
    let (found, planned) = (encoded.records.n_records(), site.records);
    if found != planned {
        let (file, site) = (file.to_owned(), site.name.to_string());
        return Err(SiteError::Records { file, site, found, planned });
    }
    Ok(encoded)
}

/// What the site's own people should know about its records; empty if there is nothing. It goes to their terminal and log and nowhere
/// else.
pub(super) fn own_eyes(encoded: &Encoded) -> Vec<String> {
    let mut warnings = encoded.warnings();
    if !warnings.is_empty() {
        warnings.push(OWN_EYES.to_owned());
    }
    warnings
}
