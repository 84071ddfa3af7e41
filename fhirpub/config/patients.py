"""The settings of patients: whose identifiers stand for a person."""

# ruff: noqa: RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.config.reader import setting as _setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PatientsConfig:
    """Which patients of different reports are one person."""

    person_systems: list[str] = _setting(
        [],
        "Systems of identifiers that stand for one person, such as a national number or the "
        "number of a master patient index, in order of preference. Reports whose patients have "
        "the same identifier in the first of these systems that they have share one Patient. "
        "List only systems whose numbers are checked and never given to two persons: a wrong one "
        "shows the results of one person to another. Empty: each report has a Patient of its own. "
        "A change rebuilds the search index at the next start.",
    )
