"""Links between pages, and the cursors in them that serve one tenant and one question only."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Sequence
from operator import itemgetter
from urllib.parse import quote, urlencode

from fhirpub.storage.criteria import SortKey
from fhirpub.tenant import Tenant

CURSOR = "_cursor"
Parameters = Sequence[tuple[str, str]]

_TAG_BYTES = 16


def link_to(address: str, parameters: Parameters) -> str:
    """Return an address with these parameters."""
    return f"{address}?{urlencode(parameters, quote_via=quote)}" if parameters else address


def seal(after: SortKey, tenant: Tenant, type_name: str, parameters: Parameters) -> str:
    """Return a cursor that only this tenant can use, and only with this search."""
    text = json.dumps(after).encode()
    return (
        base64.urlsafe_b64encode(_signature(text, tenant, type_name, parameters) + text)
        .decode()
        .rstrip("=")
    )


def unseal(cursor: str, tenant: Tenant, type_name: str, parameters: Parameters) -> SortKey | None:
    """Return the place that a cursor stands for, None if it is of another tenant or question."""
    try:
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    text = sealed[_TAG_BYTES:]
    if not hmac.compare_digest(
        sealed[:_TAG_BYTES], _signature(text, tenant, type_name, parameters)
    ):
        return None
    return tuple(json.loads(text))


def _signature(text: bytes, tenant: Tenant, type_name: str, parameters: Parameters) -> bytes:
    # By name alone: which of two that are named alike comes first says how they sort.
    filters = sorted(
        (parameter for parameter in parameters if parameter[0] != "_count"), key=itemgetter(0)
    )
    message = json.dumps([text.decode("latin-1"), type_name, filters]).encode()
    return tenant.signature(b"cursor:" + message)[:_TAG_BYTES]
