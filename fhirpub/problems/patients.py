"""Problems of identifiers that stand for persons."""

from __future__ import annotations

from fhirpub.problems.kind import Problem


class PatientProblem(Problem):
    """What is doubtful about which person a patient is."""

    PERSON_AMBIGUOUS = (
        "person-ambiguous",
        "informational",
        "The patient has several identifiers in one system, none of which stands for the person.",
        "Send the valid one, and former ones with `use` `old`.",
    )
    PERSON_CONFLICT = (
        "person-conflict",
        "informational",
        "An identifier of the patient also belongs to another Patient. Nothing was merged.",
        "Check the identifiers. `fhirpub patient relink` moves a report to another Patient.",
    )
