"""The names of members as pages write them."""

from __future__ import annotations

_LABELS = {
    "at": "When",
    "client_id": "Client",
    "disabled": "State",
    "failures": "Failures in a row",
    "id": "Id",
    "jti": "Id of the token",
    "jwks": "Public keys (JSON Web Key Set)",
    "jwks_url": "URL of the public keys",
    "kid": "Key",
    "query": "Searched by",
    "url": "URL",
    "what": "Records",
    "why": "Reason",
}


def label_of(name: str) -> str:
    """Return how pages write the name of a member."""
    words = name.replace("_", " ")
    return _LABELS.get(name) or words[:1].upper() + words[1:]
