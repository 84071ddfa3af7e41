"""FHIR's own rules between elements, of everything that a registration brings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from fhirpub.errors import Issue
from fhirpub.fhir.identity import identity_problems, repeated_element_ids
from fhirpub.fhir.invariants import (
    broken_invariants,
    mistyped_references,
    repeated_ids,
    types_of_contained,
)
from fhirpub.interactions.submission.record import Submission


def broken_fhir_rules(submission: Submission) -> Iterator[Issue]:
    """Yield what breaks FHIR's own rules between elements, in the resource and in its parts.

    A plain one has none of these elements (``schema_plain``).
    """
    unusual = [
        entry for entry in (submission.entry, *submission.parts.values()) if not entry.is_plain
    ]
    if not unusual:
        return
    types = {
        literal: submission.parts[name].resource["resourceType"]
        for literal, name in submission.local.items()
    }
    for contained in submission.contained_of_parts.values():
        types |= {literal: resource["resourceType"] for literal, resource in contained.items()}
    for entry in unusual:
        leading, identified = types_of_contained(entry.resource) | types, entry.identified
        for issue in chain(
            broken_invariants(entry.resource, entry.rule_targets, entry.place_of, leading),
            repeated_ids(entry.resource),
            identity_problems(identified, entry.rule_targets, entry.place_of),
            repeated_element_ids(entry.resource, identified, entry.place_of),
            mistyped_references(entry.rule_targets, entry.place_of, leading),
        ):
            yield issue.below(entry.at)
