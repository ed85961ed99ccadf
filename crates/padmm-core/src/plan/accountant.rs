//! By which rule a plan's budget is spent.

use std::str::FromStr;

use padmm_privacy::{Conversion, PrivacyError};
use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

use crate::settings::SettingsError;

/// What turns noise into epsilon when noise is calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Display, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AccountantKind {
    /// The best valid accounting: for Gaussian noise [`Conversion::Exact`].
    #[default]
    Exact,
    /// That of the method's own publication: for Gaussian noise [`Conversion::Paper`].
    Paper,
    /// Epsilons added up, as the publications of pure methods do; Gaussian noise has none.
    Basic,
}

impl AccountantKind {
    /// The conversion that Gaussian noise is calibrated by; an error for a rule that is about other noise.
    pub fn conversion(self) -> Result<Conversion, PrivacyError> {
        match self {
            Self::Exact => Ok(Conversion::Exact),
            Self::Paper => Ok(Conversion::Paper),
            Self::Basic => Err(not_pure("basic")),
        }
    }
}

impl FromStr for AccountantKind {
    type Err = SettingsError;
    fn from_str(name: &str) -> Result<Self, SettingsError> {
        let found = Self::VARIANTS.iter().find(|kind| kind.to_string() == name);
        found.copied().ok_or_else(|| SettingsError::UnknownName {
            setting: "accountant",
            text: name.to_owned(),
            known: Self::VARIANTS.iter().map(Self::to_string).collect::<Vec<_>>().join(", "),
        })
    }
}

/// An accountant for pure differential privacy was handed Gaussian noise.
pub fn not_pure(accountant: &str) -> PrivacyError {
    let reason = format!(
        "the {accountant} accountant knows pure differential privacy (delta = 0) only; \
         use the exact or the paper's accountant for Gaussian noise"
    );
    PrivacyError::Compared { reason, is_budget: false }
}
