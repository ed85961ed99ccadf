//! The shipped data sets, ready to learn from.

use crate::{DataError, Loaded, Source, load};

/// Adult: 45,222 complete census records, of which income is above 50,000 dollars a year.
///
/// ```
/// assert_eq!(padmm_data::datasets::adult()?.encoded.records.n_records(), 45_222);
/// # Ok::<(), padmm_data::DataError>(())
/// ```
///
/// # Errors
/// None in a program that was built whole.
#[cfg(feature = "adult")]
pub fn adult() -> Result<Loaded, DataError> {
    load(&Source::Shipped("adult".to_owned()))
}

/// Heart disease at four hospitals: who has it, from 13 findings. The hospitals are the sites.
///
/// # Errors
/// None in a program that was built whole.
pub fn heart() -> Result<Loaded, DataError> {
    load(&Source::Shipped("heart".to_owned()))
}
