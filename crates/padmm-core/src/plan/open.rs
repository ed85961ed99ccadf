//! What a plan leaves to the rule on public facts until its sites are known.

use super::{Plan, PlanError};
use crate::advice::{recommend, recommended_weights};
use crate::algorithm::P_ADMM;
use crate::calibration::NetworkFacts;
use crate::plan::PlanDraft;
use crate::settings::{Settings, SettingsError};

/// In place of an algorithm or of weights: the rule on public facts picks them.
pub const AUTO: &str = "auto";

/// What the rule is to pick. Until it has, a draft has a stand-in there that every setting can be checked with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Open {
    /// Whether the algorithm is open.
    pub algorithm: bool,
    /// Whether it is open whose records count how much.
    pub weights: bool,
    /// The rounds that were asked for, whatever the algorithm; none where they are the algorithm's own affair.
    pub rounds: Option<u32>,
    /// A setting that was given and that only algorithms have whose rounds solve.
    pub solving: Option<&'static str>,
}

impl Open {
    /// What settings leave open; they name [`AUTO`] for it.
    pub(crate) fn of(settings: &Settings) -> Result<Self, SettingsError> {
        let is_auto = |name: &str| settings.text(name).is_some_and(|text| text == AUTO);
        let algorithm = is_auto("algorithm");
        let of_solving = || {
            let given = ["penalty", "decay", "tolerance"].into_iter().find(|name| settings.has(name));
            given.or_else(|| (settings.text("sensitivity")? == "paper").then_some("sensitivity"))
        };
        Ok(Self {
            algorithm,
            weights: is_auto("weights"),
            rounds: if algorithm { settings.typed("rounds", "a whole number from 0 on")? } else { None },
            solving: algorithm.then(of_solving).flatten(),
        })
    }
}

/// The plan with everything picked.
pub(super) fn close(plan: &Plan, network: &NetworkFacts<'_>) -> Result<Plan, PlanError> {
    let open = plan.draft.open.clone();
    let mut draft = PlanDraft { open: Open::default(), ..plan.draft.clone() };
    // Without noise there is nothing to damp.
    if open.weights && draft.algorithm.is_private() {
        draft.weights = recommended_weights(network.n_records).0;
    }
    let plan = draft.check()?;
    if !open.algorithm {
        return Ok(plan);
    }
    let algorithm = if open.solving.is_some() { P_ADMM } else { recommend(&plan, network)?.kind() };
    let picked = plan.with_algorithm(algorithm)?;
    match open.rounds {
        Some(rounds) => PlanDraft { rounds, ..picked.draft }.check(),
        None => Ok(picked),
    }
}
