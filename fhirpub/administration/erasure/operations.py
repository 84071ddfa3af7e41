"""Operations that erase resources for good, on an order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, TypeVar

from fhirpub.administration.context import Administration
from fhirpub.administration.erasure.meant import find_meant
from fhirpub.administration.erasure.work import MAX_AT_ONCE, Work
from fhirpub.administration.naming import resource_in, why_no_identifier, why_no_resource
from fhirpub.administration.operation import Operation, Parameter, why_no_name
from fhirpub.administration.paging import FROM
from fhirpub.administration.tenants import OF_TENANT, ONLY_OF_TENANT
from fhirpub.errors import InvalidContent, Issue
from fhirpub.problems import OperationProblem
from fhirpub.storage.erasure.contract import Erasure, Hold

Record = Mapping[str, Any]

_PAGE = 1_000
_MAX_NOTE, _MAX_TEXT = 500, 2_000
_LATEST = 253_402_300_799_999  # the last millisecond of the year 9999
_R = TypeVar("_R", Erasure, Hold)
_KINDS = {"int": int, "str": str, "bool": bool}
REASON = Parameter(
    name="reason",
    text="Why, for the log and the store; no name or number of a patient.",
    required=True,
    max_length=_MAX_NOTE,
    rule=why_no_name,
)
OPERATOR = Parameter(
    name="operator",
    text="Who decided it; default: the caller.",
    max_length=_MAX_NOTE,
    rule=why_no_name,
)


async def plan(administration: Administration, *, tenant: str, **given: Any) -> Record:
    """Return what would be erased; some of it, and where to go on, if it is much."""
    work = await Work.on(administration, tenant)
    meant, begin = await find_meant(work, given), given.get("from", 0)
    page = meant.ids[begin : begin + _PAGE]
    planned = await work.plan(page, besides=meant.ids, leaves_out_holds=meant.leaves_out_holds)
    end = begin + len(page)
    return {
        "planned": [asdict(one) for one in planned],
        "moved": [f"{type_name}/{id_}" for id_, type_name in meant.moved.items()],
        "following": end if end < len(meant.ids) else None,
    }


async def erase(
    administration: Administration,
    *,
    tenant: str,
    resources: list[str],
    reason: str,
    operator: str = "",
    allow_reuse: bool = False,
) -> Record:
    """Erase resources with all versions, documents and deliveries."""
    work = await Work.on(administration, tenant)
    orders = [
        Erasure(
            tenant=work.tenant.id,
            type=type_name,
            id=id_,
            ordered=administration.clock(),
            operator=operator or administration.operator,
            reason=reason.strip(),
            allows_reuse=allow_reuse,
        )
        for type_name, id_ in map(resource_in, dict.fromkeys(resources))
    ]
    return await work.carry_out(orders, work.eraser.begin)


async def resume(administration: Administration, *, tenant: str, after: str = "") -> Record:
    """Complete orders that were interrupted; some of them, and where to go on."""
    work = await Work.on(administration, tenant)
    place = (work.tenant.id, after) if after else ("", "")
    orders = await administration.store.erasures(
        tenant=work.tenant.id, unfinished=True, after=place, limit=MAX_AT_ONCE
    )
    done = await work.carry_out(orders, work.eraser.resume)
    is_more = len(orders) == MAX_AT_ONCE
    return {**done, "following": orders[-1].id if is_more else None}


async def repeat(
    administration: Administration,
    *,
    tenant: str,
    orders: list[Record] | None = None,
    holds: list[Record] | None = None,
) -> Record:
    """Carry out orders that were carried out before, on what a backup brought back."""
    work = await Work.on(administration, tenant)
    found = [_of_tenant(one, work.tenant.id, Erasure, "orders") for one in orders or ()]
    kept = [_of_tenant(one, work.tenant.id, Hold, "holds") for one in holds or ()]
    done = await work.carry_out(found, work.eraser.forbid)
    for hold in kept:
        what = (hold.type, hold.id)
        async with administration.recorded("hold.add", what, tenant=hold.tenant):
            await administration.store.put_hold(hold)
    return done


def _of_tenant(members: Record, tenant: str, kind: type[_R], place: str) -> _R:
    record = record_of(members, place)
    if not isinstance(record, kind) or record.tenant != tenant:
        rule = f"must be {place} of this tenant, as they were exported"
        raise InvalidContent([Issue.error(OperationProblem.FIELD_INVALID, rule, place)])
    return record


def record_of(members: Record, place: str = "orders") -> Erasure | Hold:
    """Return an exported order, to be carried out in another store, or a hold.

    Raises InvalidContent.
    """
    try:
        record: Erasure | Hold | None = (
            Hold(**members) if "since" in members else Erasure(**members)
        )
    except TypeError:
        record = None
    if record is None or not (_has_its_kinds(record) and _can_be(record)):
        rule = "has one that was not written by `fhirpub erase export`"
        raise InvalidContent([Issue.error(OperationProblem.FIELD_INVALID, rule, place)])
    return record if isinstance(record, Hold) else replace(record, version=0, finished=None)


def _has_its_kinds(record: Erasure | Hold) -> bool:
    kinds = [(_KINDS.get(str(one.type)), getattr(record, one.name)) for one in fields(record)]
    return all(kind is None or type(value) is kind for kind, value in kinds)


def _can_be(record: Erasure | Hold) -> bool:
    """Return whether a record can have been written by the service."""
    is_resource = not why_no_resource(f"{record.type}/{record.id}")
    moment = record.since if isinstance(record, Hold) else record.ordered
    texts = (record.type, record.operator, record.reason)
    return is_resource and 0 <= moment <= _LATEST and max(map(len, texts)) <= _MAX_TEXT


async def list_(
    administration: Administration,
    *,
    tenant: str | None = None,
    unfinished: bool = False,
    after: str = "",
) -> Record:
    """List orders, and where to go on if there are more."""
    owner = None if tenant is None else (await administration.tenant(tenant)).id
    first, _, second = after.partition("/")
    found = await administration.store.erasures(
        tenant=owner, unfinished=unfinished, after=(first, second), limit=_PAGE
    )
    for one in sorted({one.tenant for one in found}):
        await administration.record_read("erase.list", tenant=one)
    following = f"{found[-1].tenant}/{found[-1].id}" if len(found) == _PAGE else None
    return {"orders": [asdict(one) for one in found], "following": following}


PLAN = Operation(
    command="erase report --dry-run",
    method="POST",
    path="/tenants/{tenant}/erasures/plan",
    summary="Show what would be erased, and change nothing",
    run=plan,
    parameters=(
        OF_TENANT,
        Parameter(name="reports", type="strings", text="These resources, by their ids."),
        Parameter(
            name="report_identifier",
            text="The resource with this identifier: its system, a bar, its value.",
            rule=why_no_identifier,
        ),
        Parameter(name="type", text="The FHIR type of what report_identifier names."),
        Parameter(
            name="patients", type="strings", text="Everything that refers to these Patients."
        ),
        Parameter(
            name="patient_identifier",
            text="Everything that refers to a Patient with this identifier.",
            rule=why_no_identifier,
        ),
        Parameter(name="expired", type="boolean", text="What [retention] policies name now."),
        Parameter(name="from", type="integer", text=FROM, minimum=0),
    ),
    creates_store=False,
)
ERASE = Operation(
    command="erase report",
    method="POST",
    path="/tenants/{tenant}/erasures",
    summary="Erase resources with all their versions, documents and deliveries",
    run=erase,
    parameters=(
        OF_TENANT,
        Parameter(
            name="resources",
            type="strings",
            text=f"The resources, each as TYPE/ID; at most {MAX_AT_ONCE}.",
            required=True,
            minimum=1,
            maximum=MAX_AT_ONCE,
            rule=why_no_resource,
        ),
        REASON,
        OPERATOR,
        Parameter(
            name="allow_reuse",
            type="boolean",
            text="Whether the identifiers may be registered again.",
        ),
    ),
    is_final=True,
    creates_store=False,
    action="erase",
)
RESUME = Operation(
    command="erase resume",
    method="POST",
    path="/tenants/{tenant}/erasures/resume",
    summary="Complete orders to erase that were interrupted",
    run=resume,
    parameters=(OF_TENANT, Parameter(name="after", text=FROM)),
    is_final=True,
    creates_store=False,
)
REPEAT = Operation(
    command="restore",
    method="POST",
    path="/tenants/{tenant}/erasures/repeat",
    summary="Repeat erasures and holds on a store that was restored from an older backup",
    run=repeat,
    parameters=(
        OF_TENANT,
        Parameter(
            name="orders",
            type="objects",
            text=f"Orders, as they are listed; at most {MAX_AT_ONCE}.",
            maximum=MAX_AT_ONCE,
        ),
        Parameter(
            name="holds",
            type="objects",
            text=f"Holds, as they are listed; at most {MAX_AT_ONCE}.",
            maximum=MAX_AT_ONCE,
        ),
    ),
    is_final=True,
    creates_store=False,
)
LIST = Operation(
    command="erase list",
    method="GET",
    path="/erasures",
    summary="List orders to erase: what, when, why, who, and whether they are finished",
    run=list_,
    parameters=(
        ONLY_OF_TENANT,
        Parameter(
            name="unfinished",
            type="boolean",
            text="Only orders that were interrupted.",
            place="query",
        ),
        Parameter(name="after", text=FROM, place="query"),
    ),
    creates_store=False,
)
OPERATIONS = (PLAN, ERASE, RESUME, REPEAT, LIST)
