//! A site's word on a plan: checked against its own data, cap and cards, then signed.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, ensure};
use padmm_commands::terminal::{print, print_json};
use padmm_core::message::SiteIndex;
use padmm_core::schema::OWN_EYES;
use padmm_data::write_atomically;
use padmm_node::contract::{Acceptance, Contract};
use padmm_node::identity::{Card, Home, IdentityError, cards_in};
use padmm_node::site::{DataChoice, ProjectedSpending, encode_records, projected_spending};
use padmm_privacy::words::{delta_text, epsilon_text};
use serde_json::json;

use super::check::{SiteCost, cost};

pub(super) fn run(
    plan: &Path,
    home: &Path,
    cards: Option<&Path>,
    data: &DataChoice,
    yes: bool,
    now: SystemTime,
    json: bool,
) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(plan)
        .with_context(|| format!("the plan '{}' cannot be read", plan.display()))?;
    let contract = Contract::from_toml(&text, plan)?;
    let home = Home::open(home)?;
    let index = contract.site_index(home.name())?;
    contract.check_card(home.card(), now)?;
    let others = find_cards(&contract, &home, cards, now)?;
    check_data(&contract, index, &home)?;
    let cost = cost(&contract, index);
    check_run_folder(&contract, &home)?;
    let projected = projected_spending(&home, &contract, data)?;
    check_cap(&projected, &home)?;

    let price = price(&cost, &projected) + &reminder(data);
    if !yes {
        confirm(&contract, &price)?;
    }
    for card in &others {
        home.cards().import(card, false)?;
    }
    let acceptance = Acceptance::accept(&contract, home.name(), home.identity())?;
    let folder = home.run_dir(contract.name());
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("the folder '{}' cannot be made", folder.display()))?;
    let (kept, file) = (folder.join("plan.toml"), folder.join(format!("{}.accept", home.name())));
    write_atomically(&kept, true, text.as_bytes())?;
    write_atomically(&file, true, acceptance.to_toml().as_bytes())?;
    if json {
        return print_json(&json!({
            "hash": contract.hash(), "plan": kept, "acceptance": file,
            "epsilon_exact": cost.epsilon_exact, "delta": cost.delta,
            "epsilon_spent": projected.spent, "accepted_plans": projected.accepted,
            "epsilon_with_accepted": projected.with_accepted, "epsilon_after": projected.total, "cap": projected.cap,
        }));
    }
    print(&format!(
        "{} accepts the plan {} (hash {}).\n{}\nThe plan is kept as {}.\nSend {} to the other sites; running sites also collect it over \
         the network.\n",
        home.name(),
        contract.name(),
        contract.hash(),
        price,
        kept.display(),
        file.display(),
    ))
}

/// The card of every other site, from the folder or else from the home, each the one that the plan means. Nothing is
/// imported before all of them are found to be in order.
fn find_cards(
    contract: &Contract,
    home: &Home,
    folder: Option<&Path>,
    now: SystemTime,
) -> anyhow::Result<Vec<Card>> {
    let given = folder.map(cards_in).transpose()?.unwrap_or_default();
    let store = home.cards();
    let mut found = Vec::new();
    for site in contract.sites().iter().filter(|site| site.name != *home.name()) {
        let known = store.find(&site.name)?;
        let given = given.iter().find(|card| *card.name() == site.name);
        let card = match (given, known) {
            // The home may have a newer card of the same identity than the folder.
            (Some(given), Some(known))
                if known.identity() == given.identity() && known.serial() > given.serial() =>
            {
                known
            }
            (Some(given), _) => given.clone(),
            (None, Some(known)) => known,
            (None, None) => {
                return Err(IdentityError::UnknownSite { name: site.name.clone() })
                    .context("a plan is accepted with the cards of all its sites (--cards DIR)");
            }
        };
        contract.check_card(&card, now)?;
        store.judge(&card, false)?;
        found.push(card);
    }
    Ok(found)
}

/// The file must be there, have the schema's columns and as many rows as the plan says. What its rows say decides nothing, because others see
/// whether a plan is accepted; it is shown here, to the site's own people, before they decide.
fn check_data(contract: &Contract, index: usize, home: &Home) -> anyhow::Result<()> {
    let encoded = encode_records(home, contract, SiteIndex(index))?;
    let warnings = encoded.warnings();
    if !warnings.is_empty() {
        let lines: String = warnings.iter().map(|warning| format!("Warning: {warning}\n")).collect();
        // A terminal that went away must not decide either, and it is written to only where there are warnings.
        let _ = writeln!(std::io::stderr(), "{lines}{OWN_EYES}");
    }
    Ok(())
}

/// The plan must fit the cap together with what earlier runs spent and what other accepted plans will. The ledger asks again before
/// the run's first round.
fn check_cap(projected: &ProjectedSpending, home: &Home) -> anyhow::Result<()> {
    let ProjectedSpending { spent, accepted, with_accepted, total, cap } = projected;
    let earlier = match (spent.value() > 0.0, accepted.is_empty()) {
        (false, true) => "the plan costs".to_owned(),
        (true, true) => format!(
            "earlier runs on these records cost ε = {}, and with this plan it would be",
            epsilon_text(spent.value())
        ),
        (_, false) => format!(
            "earlier runs on these records cost ε = {}; with the plans that are accepted here and not finished ({}) it is {}, and with \
             this plan it would be",
            epsilon_text(spent.value()),
            accepted.join(", "),
            epsilon_text(with_accepted.value()),
        ),
    };
    let or_drop = if accepted.is_empty() {
        String::new()
    } else {
        format!(
            ", or, if one of those will never run, tell its sites and remove its folder from {}",
            home.dir().join("runs").display()
        )
    };
    ensure!(
        projected.is_within_cap(),
        "{earlier} ε = {} at δ = {}, where {} allows ε = {}: raise the cap, or ask for a plan that costs less{or_drop}",
        epsilon_text(total.value()),
        delta_text(cap.delta.value()),
        home.config().path().display(),
        cap.epsilon.value(),
    );
    Ok(())
}

/// A run's name stands for one plan; accepting the same plan twice changes nothing.
fn check_run_folder(contract: &Contract, home: &Home) -> anyhow::Result<()> {
    let path: PathBuf = home.run_dir(contract.name()).join("plan.toml");
    if !path.exists() {
        return Ok(());
    }
    let known = Contract::read(&path)?;
    ensure!(
        known.hash() == contract.hash(),
        "{} has accepted another plan named {} already: `padmm-site plan diff {} NEW` shows where they differ; give the new plan \
         another name",
        home.name(),
        contract.name(),
        path.display()
    );
    Ok(())
}

fn price(cost: &SiteCost, projected: &ProjectedSpending) -> String {
    let ProjectedSpending { spent, accepted, with_accepted, total, cap } = projected;
    let others = match accepted.len() {
        0 => "no other accepted plan is unfinished".to_owned(),
        _ => format!(
            "with the accepted plans that are not finished ({}) it is {}",
            accepted.join(", "),
            epsilon_text(with_accepted.value())
        ),
    };
    format!(
        "It costs ε = {} at δ = {} of the privacy of this site's {} records, if all rounds are run; models go to {}.\n\
         Of the cap, ε = {} at δ = {}, {} is spent so far; {others}; after this plan it is {}.",
        epsilon_text(cost.epsilon_exact),
        delta_text(cost.delta),
        cost.records,
        match cost.passed_on {
            true => "all sites of the plan".to_owned(),
            false => cost.neighbours.join(", "),
        },
        cap.epsilon.value(),
        delta_text(cap.delta.value()),
        epsilon_text(spent.value()),
        epsilon_text(total.value()),
    )
}

/// What was said about the records holds for this answer; the ledger is changed when the run starts, and has to be told then.
fn reminder(data: &DataChoice) -> String {
    match data {
        DataChoice::Known => String::new(),
        DataChoice::Update(name) => format!("\nStart the run with --data-updates {name} too."),
        DataChoice::New(name) => format!("\nStart the run with --new-data {name} too."),
    }
}

fn confirm(contract: &Contract, price: &str) -> anyhow::Result<()> {
    ensure!(
        std::io::stdin().is_terminal(),
        "accepting a plan asks for confirmation, and there is no terminal: add --yes if it has been decided"
    );
    let mut out = std::io::stderr();
    write!(out, "Plan {}, hash {}.\n{}\nAccept it? [y/N] ", contract.name(), contract.hash(), price)?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "the plan was not accepted; nothing was changed");
    Ok(())
}
