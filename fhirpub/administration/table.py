"""The one table of all operations."""

from __future__ import annotations

from fhirpub.administration import (
    clients,
    deliveries,
    encryption,
    endpoint_acts,
    endpoints,
    keys,
    patients,
    persons,
    quotas,
    tenants,
)
from fhirpub.administration.audit import operations as audit
from fhirpub.administration.erasure import holds
from fhirpub.administration.erasure import operations as erasure
from fhirpub.administration.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *tenants.OPERATIONS,
    *clients.OPERATIONS,
    *persons.OPERATIONS,
    *quotas.OPERATIONS,
    *keys.OPERATIONS,
    *encryption.OPERATIONS,
    *endpoints.OPERATIONS,
    *endpoint_acts.OPERATIONS,
    *deliveries.OPERATIONS,
    *patients.OPERATIONS,
    *erasure.OPERATIONS,
    *holds.OPERATIONS,
    *audit.OPERATIONS,
)
