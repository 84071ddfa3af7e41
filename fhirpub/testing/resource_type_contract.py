"""The promises of a resource type as tests over real HTTP.

The groups of promises are in `fhirpub.testing.contracts.resource_type`.
"""

from __future__ import annotations

from fhirpub.testing.contracts.resource_type.acceptance import ResourceAcceptanceContract
from fhirpub.testing.contracts.resource_type.identity import ResourceIdentityContract
from fhirpub.testing.contracts.resource_type.members import ResourceMemberContract
from fhirpub.testing.contracts.resource_type.registration import ResourceRegistrationContract
from fhirpub.testing.contracts.resource_type.search import ResourceSearchContract
from fhirpub.testing.contracts.resource_type.updates import ResourceUpdateContract


class ResourceTypeContract(
    ResourceRegistrationContract,
    ResourceIdentityContract,
    ResourceAcceptanceContract,
    ResourceMemberContract,
    ResourceUpdateContract,
    ResourceSearchContract,
):
    """A test for every promise of a resource type, to be inherited by the tests of its plugin.

    Subclasses set ``resource_type``, implement `body`, and provide the fixture ``service``, a
    `RunningService` in which the type is enabled.

    Attributes:
        resource_type: The declaration under test.
    """
