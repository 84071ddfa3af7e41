"""Erasures as they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fhirpub.cli.printing import Record


def records_of(erased: Sequence[Record]) -> list[Record]:
    """Return what is shown of erasures, as rows of a table."""
    return [
        {
            "resource": f"{one['type']}/{one['id']}",
            "versions": one["versions"],
            "results": one["members"],
            "documents": one["documents"],
            "documents kept": one["documents_kept"],
            "bytes": one["bytes"],
        }
        for one in erased
    ]


def rest_of(erased: Sequence[Record]) -> Iterator[str]:
    """Yield what is left to know after erasures."""
    later = sum(one["documents_later"] for one in erased)
    if later:
        yield (
            f"{later:,} documents were added within the last hour: the sweep of a running "
            "service deletes them within two hours."
        )
    if any(not one["is_complete"] and not one["documents_later"] for one in erased):
        yield (
            "Something is left for now, since another process reads the store file, or sends an "
            "event: a running service tries again, and so does `fhirpub erase resume`."
        )
