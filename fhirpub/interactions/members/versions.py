"""The members of a submission as versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.submission.keys import key_of
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.versions import with_server_meta
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant


def ids_of_members(submission: Submission, tenant: Tenant, resource_id: str) -> dict[str, str]:
    """Return the ids that the members of a resource get, by their keys in the submission."""
    return {
        key: tenant.member_id(resource_id, submission.declared[key].name, key_of(entry.resource))
        for key, entry in submission.members.items()
    }


def first_versions(
    submission: Submission,
    ids: Mapping[str, str],
    parts: Mapping[str, JsonObject],
    *,
    number: int,
    now: int,
    context: Context,
) -> tuple[Version, ...]:
    """Return the first version of each member, whose references lead to ids already.

    ``parts`` are those of the resource that have no versions, as they are stored. ``number`` is
    that of the version that brings them: 1, or one that no erased version of them had.
    """
    versions = []
    for key, entry in submission.members.items():
        stored = with_server_meta(entry.resource, ids[key], version=number, updated=now)
        type_name = stored["resourceType"]
        versions.append(
            Version(
                id=ids[key],
                version=number,
                type=type_name,
                system="",
                value="",
                status=stored.get("status", ""),
                created=now,
                updated=now,
                body=dumps(stored),
                search=context.searched[type_name].values_of_member(stored, parts),
            )
        )
    return tuple(versions)


def parameters_of_members(
    submission: Submission, members: Sequence[Version]
) -> Iterator[JsonObject]:
    """Yield what the response says of each member: the name of its entry, and its address."""
    for key, member in zip(submission.members, members, strict=True):
        reference = {"reference": f"{member.type}/{member.id}"}
        yield {"name": submission.declared[key].name, "valueReference": reference}
