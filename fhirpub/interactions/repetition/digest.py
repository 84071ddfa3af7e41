"""The digest of what a registration brought, before any setting or rule had a say.

It covers every entry of the request, also those that are not taken. Each document stands in it
by its SHA-256, and the local ids by which entries refer to one another do not count.
"""

from __future__ import annotations

import hashlib
from operator import itemgetter

from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.interactions.repetition.canonical import canonical
from fhirpub.interactions.submission import Submission

_FORM = b"\x02"
"""The first byte of each digest: another canonical form gets another one."""


def digest_of(submission: Submission) -> bytes:
    """Return the digest of a submission whose documents are replaced by their placeholders.

    It is called before anything else changes. ``$register`` and create have the same one if they
    bring the same.
    """
    entries = sorted(submission.content, key=itemgetter("name"))
    text = canonical([_without_local_id(entry) for entry in entries])
    for literal, name in submission.local.items():
        sent = b'"reference":' + dumps(literal)
        text = text.replace(sent, b'"reference":@' + name.encode())
    return _FORM + hashlib.sha256(text).digest()


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
