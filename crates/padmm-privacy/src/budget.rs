//! Privacy quantities as types, so that a variance cannot be passed for an epsilon, and adjacency as a value.
//!
//! Every type is built through a check, deserialising included.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::error::{PrivacyError, require};
use crate::outward::{mul_up, sqrt_up};

/// Charges beyond this mean no privacy whatsoever and would overflow the conversions.
const LARGEST_RHO: f64 = 1e120;
/// Covers the square root of twice [`LARGEST_RHO`].
const LARGEST_MU: f64 = 2e60;
/// A budget above this is a mistake of the plan, not a budget.
const LARGEST_BUDGET: f64 = 1e6;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $label:literal, $allowed:literal, |$v:ident| $ok:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Checks the range; NaN is refused.
            pub fn new($v: f64) -> Result<Self, PrivacyError> {
                require($ok, $label, $v, $allowed)?;
                Ok(Self($v))
            }

            /// The quantity as a plain number, within the range that [`Self::new`] checked.
            pub fn value(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = PrivacyError;
            fn try_from(value: f64) -> Result<Self, PrivacyError> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(quantity: $name) -> f64 {
                quantity.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

quantity!(
    /// The epsilon of (epsilon, delta)-differential privacy.
    Epsilon, "epsilon", "a finite number >= 0", |v| v >= 0.0 && v.is_finite()
);
quantity!(
    /// The delta of (epsilon, delta)-differential privacy.
    Delta, "delta", "between 0 and 1, both excluded", |v| v > 0.0 && v < 1.0
);
quantity!(
    /// Zero-concentrated differential privacy (Bun, Steinke 2016): Renyi divergence of order a is at most a * rho.
    ZcdpRho, "rho", "between 0 and 1e120", |v| (0.0..=LARGEST_RHO).contains(&v)
);
quantity!(
    /// Gaussian differential privacy (Dong, Roth, Su 2022): as hard to tell apart as N(0,1) and N(mu,1).
    GdpMu, "mu", "between 0 and 2e60", |v| (0.0..=LARGEST_MU).contains(&v)
);

impl Epsilon {
    /// The privacy loss of a site that has released nothing.
    pub const ZERO: Self = Self(0.0);
}

impl ZcdpRho {
    /// Where every sum of charges begins.
    pub const ZERO: Self = Self(0.0);
}

/// What a plan may spend in total: (epsilon, delta)-differential privacy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawBudget")]
pub struct Budget {
    /// More than zero, and at most a million.
    pub epsilon: Epsilon,
    /// Covers all releases of the run together; between 0 and 1, both excluded.
    pub delta: Delta,
}

#[derive(Deserialize)]
struct RawBudget {
    epsilon: f64,
    delta: f64,
}

impl Budget {
    /// Checks both numbers; an epsilon of zero buys nothing and is refused.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, PrivacyError> {
        require(epsilon > 0.0 && epsilon <= LARGEST_BUDGET, "epsilon", epsilon, "above 0 and at most 1e6")?;
        Ok(Self { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? })
    }

    /// The same check for a value that was put together field by field.
    pub fn checked(self) -> Result<Self, PrivacyError> {
        Self::new(self.epsilon.value(), self.delta.value())
    }
}

impl TryFrom<RawBudget> for Budget {
    type Error = PrivacyError;
    fn try_from(raw: RawBudget) -> Result<Self, PrivacyError> {
        Self::new(raw.epsilon, raw.delta)
    }
}

/// Which data sets count as neighbours, that is, whose influence is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjacency {
    /// One record of one site is replaced by any other; the number of records of each site is public.
    #[default]
    ReplaceOne,
}

impl fmt::Display for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReplaceOne => f.write_str("replace one record of one site by any other"),
        }
    }
}

impl Adjacency {
    /// What counts as a record, and what is public: one sentence.
    pub fn explanation(&self) -> &'static str {
        match self {
            Self::ReplaceOne => {
                "At a site every row of the file is a record, whatever its contents, and the number of rows is public."
            }
        }
    }
}

/// The guarantee for a patient with `records_per_site` records at each of `sites` sites, rounded up:
///
/// ```text
/// mu_group = mu * records_per_site * sqrt(sites)
/// ```
///
/// Replacing r records of one site moves its models by at most r times the sensitivity; the sites' noises are
/// independent, so the squares of mu add up over sites. `mu` is the largest of the sites' own.
pub fn group_mu(mu: GdpMu, records_per_site: u32, sites: u32) -> Result<GdpMu, PrivacyError> {
    check_group(records_per_site, sites)?;
    GdpMu::new(mul_up(mul_up(mu.0, f64::from(records_per_site)), sqrt_up(f64::from(sites))))
}

/// The same in zCDP, rounded up: `rho_group = rho * records_per_site^2 * sites`.
pub fn group_rho(rho: ZcdpRho, records_per_site: u32, sites: u32) -> Result<ZcdpRho, PrivacyError> {
    check_group(records_per_site, sites)?;
    let records = f64::from(records_per_site);
    ZcdpRho::new(mul_up(mul_up(mul_up(rho.0, records), records), f64::from(sites)))
}

fn check_group(records_per_site: u32, sites: u32) -> Result<(), PrivacyError> {
    require(records_per_site >= 1, "records per site", f64::from(records_per_site), "at least 1")?;
    require(sites >= 1, "sites of a patient", f64::from(sites), "at least 1")
}
