"""The public keys of clients that sign assertions, as operators give and see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.administration.operation import Parameter
from fhirpub.auth.assertions.key_set import read_key_set
from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.strict_json import dumps
from fhirpub.problems import OperationProblem
from fhirpub.storage.contract import Client
from fhirpub.webhooks.transport.url_policy import TargetRules

JWKS = Parameter(
    name="jwks",
    type="object",
    text="Public keys with which the client signs assertions (private_key_jwt): a JSON Web Key "
    "Set. It has no secret then.",
)
JWKS_URL = Parameter(
    name="jwks_url", text="The https URL where the client publishes its key set instead."
)


def keys_given(
    administration: Administration, given: Mapping[str, Any], *, tenant: str
) -> dict[str, str]:
    """Return the key set as text and its URL in canonical form, of what a request has.

    The rules of webhooks apply to the URL. Raises InvalidContent, also if both are given.
    """
    if given.get("jwks") and given.get("jwks_url"):
        rule = "must not be given beside jwks: a client has either"
        raise InvalidContent([Issue.error(OperationProblem.FIELD_INVALID, rule, "jwks_url")])
    jwks = dumps(given["jwks"]).decode() if given.get("jwks") else ""
    if not given.get("jwks_url"):
        return {"jwks": jwks, "jwks_url": ""}
    settings = administration.config.webhooks
    rules = TargetRules(allow_networks=settings.allow_networks, ports=settings.ports)
    try:
        return {"jwks": jwks, "jwks_url": rules.target(given["jwks_url"], tenant=tenant).url}
    except InvalidContent as refusal:
        raise InvalidContent([issue.at("jwks_url") for issue in refusal.issues]) from None


def shown_keys(client: Client) -> str | list[str] | None:
    """Return where a client publishes its keys, or the names of those it has."""
    if client.jwks:
        return [key.kid for key in read_key_set(client.jwks.encode())]
    return client.jwks_url or None
