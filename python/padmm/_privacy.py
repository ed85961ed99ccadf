"""What a run spent, and whether that is a guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SitePrivacy:
    """What one site spent. All epsilons are rounded up."""

    site: str
    records: int
    epsilon_exact: float | None
    epsilon_paper: float | None
    delta: float | None
    rho_total: float | None
    noise_std_first: float | None
    noise_std_last: float | None
    sensitivity: float | None
    statement: str | None = field(repr=False)


@dataclass(frozen=True)
class Privacy:
    """What all sites spent, the largest over sites, and what the number rests on.

    ``valid`` says whether the epsilon is proved for these records: the algorithm is private, its sensitivity is derived,
    and bounds and categories are public. ``caveats`` has the reasons if it is not, and what else to know before anything is
    handed on. ``publishable`` is stricter: the noise also came from the operating system and not from a seed, and the proof
    covers finite precision.
    """

    valid: bool
    caveats: tuple[str, ...]
    epsilon_exact: float | None
    epsilon_paper: float | None
    delta: float | None
    rho_total: float | None
    noise_is_secure: bool
    noise_is_exact: bool
    statement: str | None = field(repr=False)
    sites: tuple[SitePrivacy, ...] = field(repr=False)

    @property
    def publishable(self) -> bool:
        """Whether what was released may leave: the epsilon is proved for the very bytes."""
        return self.valid and self.noise_is_secure and self.noise_is_exact


def privacy_of(
    record: Mapping[str, Any], sites: Sequence[Mapping[str, Any]], *, data_bounds: bool, secure: bool
) -> Privacy:
    """Judges a record."""
    spent = record["privacy"]
    caveats = []
    if data_bounds:
        caveats.append("bounds or categories were taken from the data")
    if spent is None:
        caveats.append("the algorithm is not private: exact models were exchanged")
    elif spent["sensitivity_basis"] != "record":
        caveats.append("the sensitivity is the paper's, which is not a proved bound")
    valid = not caveats
    exact = bool(spent and spent["noise_is_exact"])
    if spent is not None and not exact:
        caveats.append("the guarantee holds in exact arithmetic only, not for floating-point noise")
    if spent is not None and not secure:
        caveats.append("the noise came from a seed: whoever knows the seed can take it off again")
    caveats.append("the trace and all scores are computed from records and are not private: they are for your own eyes")
    return Privacy(
        valid=valid,
        caveats=tuple(caveats),
        epsilon_exact=spent and spent["epsilon_exact"],
        epsilon_paper=spent and spent["epsilon_paper"],
        delta=spent and spent["delta"],
        rho_total=spent and spent["rho_total"],
        noise_is_secure=secure and spent is not None,
        noise_is_exact=exact,
        statement=spent and spent["statement"],
        sites=tuple(_site(site) for site in sites),
    )


def _site(site: Mapping[str, Any]) -> SitePrivacy:
    spent = site["privacy"] or {}
    return SitePrivacy(
        site=site["site"],
        records=site["records"],
        epsilon_exact=spent.get("epsilon_exact"),
        epsilon_paper=spent.get("epsilon_paper"),
        delta=spent.get("delta"),
        rho_total=spent.get("rho_total"),
        noise_std_first=spent.get("noise_std_first"),
        noise_std_last=spent.get("noise_std_last"),
        sensitivity=spent.get("sensitivity"),
        statement=site["statement"],
    )
