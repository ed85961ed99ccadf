//! Text to [`GraphSpec`] and back, for the command line and for plans.

use std::fmt;
use std::str::FromStr;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{GraphError, GraphSpec};

impl fmt::Display for GraphSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shaped = |f: &mut fmt::Formatter<'_>, name: &str, shape: &Option<(usize, usize)>| match shape {
            Some((rows, columns)) => write!(f, "{name}:{rows}x{columns}"),
            None => f.write_str(name),
        };
        match self {
            Self::Ring => f.write_str("ring"),
            Self::Path => f.write_str("path"),
            Self::Star => f.write_str("star"),
            Self::Complete => f.write_str("complete"),
            Self::Grid { shape } => shaped(f, "grid", shape),
            Self::Torus { shape } => shaped(f, "torus", shape),
            Self::ErdosRenyi { probability } => write!(f, "erdos-renyi:{probability}"),
            Self::Geometric { radius } => write!(f, "geometric:{radius}"),
            Self::SmallWorld { degree, rewiring } => write!(f, "small-world:{degree},{rewiring}"),
            Self::Regular { degree } => write!(f, "regular:{degree}"),
            Self::Edges(pairs) => {
                f.write_str("edges:")?;
                for (k, (a, b)) in pairs.iter().enumerate() {
                    let comma = if k == 0 { "" } else { "," };
                    let join = if a.contains('-') || b.contains('-') { "--" } else { "-" };
                    write!(f, "{comma}{a}{join}{b}")?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for GraphSpec {
    type Err = GraphError;

    fn from_str(text: &str) -> Result<Self, GraphError> {
        let syntax = |reason: String| GraphError::Syntax { text: text.to_owned(), reason };
        let (name, parameters) = match text.trim().split_once(':') {
            Some((name, parameters)) => (name.trim(), Some(parameters.trim())),
            None => (text.trim(), None),
        };
        let needed = |what: &str| {
            parameters
                .filter(|p| !p.is_empty())
                .ok_or_else(|| syntax(format!("`{name}` needs {what} after a colon")))
        };
        let plain = |spec: Self| match parameters {
            None => Ok(spec),
            Some(_) => Err(syntax(format!("`{name}` takes nothing after a colon"))),
        };
        match name {
            "ring" => plain(Self::Ring),
            "path" => plain(Self::Path),
            "star" => plain(Self::Star),
            "complete" => plain(Self::Complete),
            "grid" => Ok(Self::Grid { shape: parameters.map(shape).transpose().map_err(syntax)? }),
            "torus" => Ok(Self::Torus { shape: parameters.map(shape).transpose().map_err(syntax)? }),
            "erdos-renyi" => {
                let probability = number(needed("the probability of an edge")?).map_err(syntax)?;
                Ok(Self::ErdosRenyi { probability })
            }
            "geometric" => Ok(Self::Geometric { radius: number(needed("a radius")?).map_err(syntax)? }),
            "small-world" => {
                let (degree, rewiring) = needed("K,BETA")?
                    .split_once(',')
                    .ok_or_else(|| syntax("`small-world` needs two parameters, K,BETA".to_owned()))?;
                Ok(Self::SmallWorld {
                    degree: count(degree).map_err(syntax)?,
                    rewiring: number(rewiring).map_err(syntax)?,
                })
            }
            "regular" => Ok(Self::Regular { degree: count(needed("a degree")?).map_err(syntax)? }),
            "edges" => {
                let pairs = needed("pairs of site names")?.split(',').map(pair).collect::<Result<_, _>>();
                Ok(Self::Edges(pairs.map_err(syntax)?))
            }
            _ => Err(syntax(format!("there is no family called `{name}`"))),
        }
    }
}

/// `RxC` as two positive counts.
fn shape(text: &str) -> Result<(usize, usize), String> {
    let (rows, columns) =
        text.split_once(['x', '×']).ok_or_else(|| format!("`{text}` is not of the form RxC"))?;
    match (count(rows)?, count(columns)?) {
        (0, _) | (_, 0) => Err(format!("`{text}` has no agents")),
        shape => Ok(shape),
    }
}

fn count(text: &str) -> Result<usize, String> {
    text.trim().parse().map_err(|_| format!("`{}` is not a whole number", text.trim()))
}

fn number(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.trim().parse().ok();
    value.filter(|v| v.is_finite()).ok_or_else(|| format!("`{}` is not a number", text.trim()))
}

/// `a-b`, or `a--b` where a name holds a hyphen itself.
fn pair(text: &str) -> Result<(String, String), String> {
    let joint = if text.contains("--") { "--" } else { "-" };
    let parts: Vec<&str> = text.split(joint).map(str::trim).collect();
    match parts[..] {
        [a, b] if !a.is_empty() && !b.is_empty() => Ok((a.to_owned(), b.to_owned())),
        _ => Err(format!(
            "`{}` is not a pair of site names `a-b` (join names that hold hyphens by two, `a--b`)",
            text.trim()
        )),
    }
}

/// An edge list is an array of pairs, everything else its text.
impl Serialize for GraphSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Edges(pairs) => pairs.serialize(serializer),
            other => serializer.collect_str(other),
        }
    }
}

impl<'de> Deserialize<'de> for GraphSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrPairs;

        impl<'de> Visitor<'de> for TextOrPairs {
            type Value = GraphSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a graph such as \"ring\", or an array of pairs of site names")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<GraphSpec, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<GraphSpec, A::Error> {
                let mut list = Vec::new();
                while let Some(pair) = pairs.next_element::<(String, String)>()? {
                    list.push(pair);
                }
                Ok(GraphSpec::Edges(list))
            }
        }

        deserializer.deserialize_any(TextOrPairs)
    }
}
