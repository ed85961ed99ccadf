//! The site's own model after a run: fitted to its records without noise, for use inside the site.
//!
//! It is made when the session has ended and the network is closed. What it finds, how long it takes and whether it succeeds depend on
//! records, and no neighbour may be able to see any of that: so nothing of it is in a frame, in the ledger, in `result.json` or in the log,
//! and the site has left before it begins.

use std::path::{Path, PathBuf};

use padmm_core::own::{OwnFit, OwnInputs, fit};

use super::SiteError;
use crate::contract::Contract;
use crate::identity::{Home, SiteName};

/// Its file, beside the `model.json` of the run.
pub const OWN_MODEL: &str = "own-model.json";

/// Fits the own model of a run that has finished here, from its `model.json` and the records that the site has now, and writes it in place
/// of an older one. Returns where it is.
///
/// Every row of the file counts that fits the schema: unlike in the run, nobody sees how many they are.
pub fn own_model(home: &Path, run: &SiteName) -> Result<(PathBuf, OwnFit), SiteError> {
    let home = Home::open(home)?;
    let folder = home.run_dir(run);
    if !folder.join("model.json").exists() {
        return Err(SiteError::NoModel { run: run.to_string(), folder });
    }
    let contract = Contract::read(&folder.join("plan.toml"))?;
    let joint = padmm_data::read_model(&folder.join("model.json"))?;
    let encoded = padmm_data::encode_site_file(home.config().data()?, contract.schema())?;
    let inputs = OwnInputs {
        records: &encoded.records,
        space: &encoded.features,
        loss: joint.loss(),
        joint: joint.values(),
    };
    let found = fit(&inputs, true);
    let path = folder.join(OWN_MODEL);
    let failed = |reason: String| SiteError::Output { path: path.clone(), reason };
    let model = joint.own(&found).map_err(|e| failed(e.to_string()))?;
    padmm_data::write_model(&path, &model, true)?;
    Ok((path, found))
}
