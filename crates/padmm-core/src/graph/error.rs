//! What can be wrong with a graph.

/// Why a graph cannot be built or read. Every message names the offending agents or text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum GraphError {
    /// Zero agents were asked for.
    #[error("a graph needs at least one agent; ask for one or more")]
    NoAgents,

    /// Names and agents differ in number.
    #[error("{n_names} site names were given for {n_agents} agents; give one name to each agent")]
    NamesDoNotMatch { n_agents: usize, n_names: usize },

    /// Two agents share a name, so an edge list could not tell them apart.
    #[error("two agents are called `{name}`; site names must differ")]
    RepeatedName { name: String },

    /// An edge by index to an agent that is not there.
    #[error("an edge leads to agent number {agent} (counted from 0), but there are only {n_agents} agents")]
    AgentOutOfRange { agent: usize, n_agents: usize },

    /// An edge from an agent to itself.
    #[error("the graph has an edge from `{agent}` to itself; remove it")]
    SelfLoop { agent: String },

    /// Some agents cannot reach each other.
    #[error(
        "the graph is not connected: {}; add an edge between them, or every site learns only from its own group",
        describe_groups(groups)
    )]
    NotConnected {
        /// The connected components, each with the names of its agents.
        groups: Vec<Vec<String>>,
    },

    /// An edge names a site that takes no part.
    #[error("the edge list names the site `{name}`, which takes no part{}; the sites are {}", suggestion.as_ref().map(|s| format!(" (did you mean `{s}`?)")).unwrap_or_default(), list_names(known))]
    UnknownSite {
        name: String,
        /// The sites that do take part.
        known: Vec<String>,
        /// The known name that looks most like it, if any looks like it.
        suggestion: Option<String>,
    },

    /// The text of a graph is not understood.
    #[error(
        "`{text}` is not a graph: {reason}; write one of ring, path, star, complete, grid, grid:RxC, torus, torus:RxC, erdos-renyi:P, geometric:RADIUS, small-world:K,BETA, regular:D, edges:a-b,b-c"
    )]
    Syntax { text: String, reason: String },

    /// The family exists but not with these parameters and this number of agents.
    #[error("there is no graph `{graph}` over {n_agents} agents: {reason}")]
    Impossible { graph: String, n_agents: usize, reason: String },

    /// A random family gave no connected graph in a bounded number of draws.
    #[error(
        "none of {tries} draws of `{graph}` over {n_agents} agents with graph seed {seed} was connected; {advice}"
    )]
    NoConnectedDraw {
        graph: String,
        n_agents: usize,
        /// The public seed of the draw.
        seed: u64,
        tries: usize,
        advice: String,
    },
}

/// The longest list of names that is printed in full.
const NAMES_SHOWN: usize = 12;

/// `a, b and c`, shortened where it would fill a screen.
fn list_names(names: &[String]) -> String {
    let quoted = names.iter().take(NAMES_SHOWN).map(|n| format!("`{n}`"));
    let mut text = quoted.collect::<Vec<_>>().join(", ");
    if names.len() > NAMES_SHOWN {
        text.push_str(&format!(" and {} more", names.len() - NAMES_SHOWN));
    }
    text
}

/// `{a, b} cannot reach {c}, {d, e}`.
fn describe_groups(groups: &[Vec<String>]) -> String {
    let sets: Vec<String> = groups.iter().take(4).map(|group| format!("{{{}}}", list_names(group))).collect();
    let rest = groups.len().saturating_sub(4);
    let (first, others) = sets.split_first().expect("a graph that is not connected has components");
    let more = if rest > 0 { format!(" and {rest} more groups") } else { String::new() };
    format!("{first} cannot reach {}{more}", others.join(", "))
}

/// The known name nearest to `name`, if it is near enough to be a slip.
pub(super) fn nearest_name(name: &str, known: &[String]) -> Option<String> {
    let wanted = name.to_lowercase();
    known
        .iter()
        .map(|candidate| (edit_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| {
            let length = candidate.chars().count().max(wanted.chars().count());
            distance <= (length / 3).max(1) && distance < length
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate.clone())
}

/// The number of insertions, deletions and replacements that turn `a` into `b` (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known: Vec<String> = ["cleveland", "hungary", "va"].map(String::from).to_vec();
        assert_eq!(nearest_name("Clevland", &known).as_deref(), Some("cleveland"));
        assert_eq!(nearest_name("hungray", &known).as_deref(), Some("hungary"));
        assert_eq!(nearest_name("zurich", &known), None);
        assert_eq!(nearest_name("xy", &known), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }

    #[test]
    fn long_lists_are_shortened() {
        let many: Vec<String> = (0..40).map(|i| format!("s{i}")).collect();
        assert!(list_names(&many).ends_with("and 28 more"));
        let groups: Vec<Vec<String>> = many.iter().map(|n| vec![n.clone()]).collect();
        let text = GraphError::NotConnected { groups }.to_string();
        assert!(text.contains("{`s0`} cannot reach {`s1`}") && text.contains("36 more groups"), "{text}");
    }
}
