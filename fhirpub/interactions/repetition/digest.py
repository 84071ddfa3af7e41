"""The digest of what a registration brought, before any setting or rule was applied.

It covers every entry of the request, also those that are not taken. Each document stands in it
by its SHA-256, and the local ids by which entries refer to one another do not count, nor does the
order of the entries.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.interactions.repetition.canonical import canonical
from fhirpub.interactions.submission.keys import key_of
from fhirpub.interactions.submission.record import Submission

_FORM = b"\x03"
"""The first byte of each digest: another canonical form gets another one."""
_REFERENCE = re.compile(rb'"reference":("[^"\\]*+(?:\\.[^"\\]*+)*+")')
_SYSTEM_AND_VALUE = 2


def digest_of(submission: Submission) -> bytes:
    """Return the digest of a submission whose documents are replaced by their placeholders.

    It is called before anything else changes. ``$register`` and create have the same one if they
    bring the same.
    """
    entries = submission.content
    if submission.members:
        entries = sorted(entries, key=_place)
    entries = sorted(entries, key=itemgetter("name"))
    text = canonical([_without_local_id(entry) for entry in entries])
    names = {dumps(literal): name for literal, name in _names(submission, entries)}

    def name_entry(reference: re.Match[bytes]) -> bytes:
        name = names.get(reference[1])
        return reference[0] if name is None else b'"reference":@' + name.encode()

    text = _REFERENCE.sub(name_entry, text)
    return _FORM + hashlib.sha256(text).digest()


def _place(entry: JsonObject) -> tuple[str, str | bytes, str]:
    """Return what puts entries that repeat in one order, however they were sent.

    That is the identifier of a resource. Those without one follow from what is in them, and from
    their local ids only where that is the same.
    """
    resource = entry.get("resource")
    if not isinstance(resource, dict):
        return "", b"", ""
    kind, *key = key_of(resource)
    if len(key) == _SYSTEM_AND_VALUE:
        return kind, key[0], key[1]
    return kind, _REFERENCE.sub(b"", canonical(_without_local_id(entry))), key[0]


def _names(submission: Submission, entries: Sequence[JsonObject]) -> Iterator[tuple[str, str]]:
    """Yield what each local reference leads to: the name of an entry, with its number if many.

    Entries that repeat are numbered in the order of the digest, not as they were sent.
    """
    for literal, name in submission.local.items():
        if name not in submission.held:
            yield literal, name
    if submission.members:
        own = submission.entry.resource
        yield f"{own.get('resourceType')}/{own.get('id')}", submission.type.entry_name
    counts: Counter[str] = Counter()
    for entry in entries if submission.members else ():
        name, resource = entry["name"], entry.get("resource")
        if isinstance(resource, dict):
            literal = f"{resource.get('resourceType')}/{resource.get('id')}"
            if submission.local.get(literal) in submission.members:
                yield literal, f"{name}[{counts[name]}]"
        counts[name] += 1


def is_same(first: bytes, second: bytes) -> bool | None:
    """Return whether two digests are of the same content; None if they cannot be compared.

    What was registered before there were digests has none.
    """
    if not first or first[:1] != second[:1]:
        return None
    return first == second


def _without_local_id(entry: JsonObject) -> JsonObject:
    resource = entry.get("resource")
    if not isinstance(resource, dict):
        return entry
    return {**entry, "resource": {**resource, "id": ""}}
