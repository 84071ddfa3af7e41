"""No identifier of a resource may embed the id of the organization that sends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from fhirpub.errors import Issue
from fhirpub.interactions.identity.identification import identification_of
from fhirpub.interactions.submission.record import Submission
from fhirpub.problems import ContentProblem

_UUID = re.compile("[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def organization_in_system(submission: Submission, tenant_id: str) -> Iterator[Issue]:
    """The system of no identifier among which the key is may embed the organization's id."""
    resource = submission.entry.resource
    own = [one.replace("-", "") for one in _organization_ids(submission, tenant_id)]
    for at, identifier in identification_of(submission.type).identifiers_in(resource):
        system = identifier.get("system", "").lower()
        if "%" in system:
            system = unquote(system).lower()
        plain = system.replace("-", "")
        if any(one in plain for one in own):
            rule = "must not contain the organization's id: it comes from the access token"
            yield Issue.error(ContentProblem.TENANT_IN_IDENTIFIER, rule, f"{at}.system")


def _organization_ids(submission: Submission, tenant_id: str) -> Iterator[str]:
    """Yield the tenant's id, and the UUIDs that the organization in the body has as its own."""
    yield tenant_id
    for part in submission.parts.values():
        if part.resource["resourceType"] != "Organization":
            continue
        for one in part.resource.get("identifier", ()):
            if _UUID.fullmatch(value := one.get("value", "")):
                yield value.lower()
