"""Which resources belong to a Patient, to be erased together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass

from fhirpub.fhir.elements import items_of, literals_of
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.fhir.xml.tables import tables
from fhirpub.interactions.context import Context
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.statements import Source, sources_of, statement_in
from fhirpub.storage.contract import SearchQuery, Version
from fhirpub.storage.criteria import IDENTIFIER, Criterion, TokenMatch, sort_key
from fhirpub.tenant import Tenant, is_member_id

_PAGE = 100


@dataclass(frozen=True, slots=True)
class OfPatients:
    """The resources of some Patients.

    Attributes:
        patients: The ids of the Patients.
        resources: The resources that refer to one of them now, by id, with their types.
        moved: Those that did so in an earlier version, and belong to another Patient now.
    """

    patients: tuple[str, ...]
    resources: dict[str, str]
    moved: dict[str, str]


async def patients_by_identifier(
    identifier: tuple[str, str], *, tenant: Tenant, context: Context
) -> list[str]:
    """Return the ids of all Patients that were ever stated with an identifier."""
    found: dict[str, None] = {}
    for source in sources_of(context):
        wanted = Criterion(source.names.identifier, (TokenMatch(*identifier),))
        async for version in _all(source, wanted, tenant, context, every_version=True):
            statement = statement_in(version, source)
            if statement is not None:
                found[statement.patient_id] = None
            for literal in _subjects_of(version, source):  # also one that another stated
                found[literal] = None
    return [*found]


def _subjects_of(version: Version, source: Source) -> Iterator[str]:
    """Yield the ids of the Patients that a version refers to."""
    items = (item for _at, item in items_of(loads_stored(version.body), source.element))
    for literal in literals_of(items):
        type_name, _, patient_id = literal.partition("/")
        if type_name == PATIENT:
            yield patient_id


async def resources_of(patients: Iterable[str], *, tenant: Tenant, context: Context) -> OfPatients:
    """Return the resources of all types that refer to Patients, now or in an earlier version.

    Raises NotErasable if there are resources of types that are not enabled: which Patient they
    belong to is not known.
    """
    await _refuse_other_types(tenant, context)
    ids = tuple(dict.fromkeys(patients))
    now: dict[str, str] = {}
    ever: dict[str, str] = {}
    for source in sources_of(context) if ids else ():
        for one in ids:
            wanted = referring_to(one, source, tenant, context)
            async for version in _all(source, wanted, tenant, context):
                now[version.id] = version.type
            async for version in _all(source, wanted, tenant, context, every_version=True):
                ever[version.id] = version.type
    moved = {id_: type_name for id_, type_name in ever.items() if id_ not in now}
    return OfPatients(ids, now, moved)


async def _refuse_other_types(tenant: Tenant, context: Context) -> None:
    others = tables().resources - context.types.keys()
    found = [name for name in sorted(others) if await _is_stored(name, tenant, context)]
    if found:
        raise NotErasable(
            f"the tenant has resources of types that are not enabled: {', '.join(found)}. Whether "
            "they belong to the patient is not known: enable their plugins, or erase reports"
        )


async def _is_stored(type_name: str, tenant: Tenant, context: Context) -> bool:
    """Return whether a resource of a type is stored that did not come with another one."""
    alone = Criterion(IDENTIFIER, (TokenMatch("", ""),), negated=True)
    query = SearchQuery(type=type_name, criteria=(alone,), limit=1, count_up_to=0)
    found = (await context.resources.search(tenant.id, query)).versions
    return any(not is_member_id(version.id) for version in found)


def referring_to(patient_id: str, source: Source, tenant: Tenant, context: Context) -> Criterion:
    """Return the criterion of the resources that refer to a Patient.

    The id of one that belongs to a single resource is stored nowhere: it leads to the resource.
    """
    owners = context.searched[source.type_name].owners(PATIENT, patient_id, tenant)
    return Criterion(source.element, (TokenMatch(PATIENT, patient_id), *owners))


async def _all(
    source: Source,
    wanted: Criterion,
    tenant: Tenant,
    context: Context,
    *,
    every_version: bool = False,
) -> AsyncGenerator[Version, None]:
    """Yield all versions that match, page by page."""
    after, more = None, True
    while more:
        query = SearchQuery(
            type=source.type_name,
            criteria=(wanted,),
            after=after,
            limit=_PAGE,
            count_up_to=0,
            every_version=every_version,
        )
        page = await context.resources.search(tenant.id, query)
        for version in page.versions:
            yield version
        more = page.more
        if page.versions:
            after = sort_key(query.order, page.versions[-1])
