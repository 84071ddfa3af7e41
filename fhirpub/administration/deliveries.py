"""Operations on deliveries to endpoints: what was sent, what came back, and replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.administration.paging import FROM, read_numbers
from fhirpub.administration.tenants import ONLY_OF_TENANT
from fhirpub.errors import InvalidContent, Issue, NoSuchRecord, NotPossible
from fhirpub.problems import OperationProblem
from fhirpub.storage.webhook_contract import Delivery, Endpoint
from fhirpub.webhooks.management import serializers
from fhirpub.webhooks.management.delivery_log import SHOWN_STATES, ShownState, Wanted
from fhirpub.webhooks.transport.pull_url import is_pull

Record = Mapping[str, Any]

_MAX_SHOWN = 5_000
_MAX_REPLAYED = 2_000
"""After so many, a replay returns where to go on, so that no call takes long."""
_ONLY_OF_ENDPOINT = Parameter(
    name="endpoint", text="Only deliveries to this endpoint: its id or description.", place="query"
)


async def list_(
    administration: Administration,
    *,
    state: ShownState | None = None,
    endpoint: str | None = None,
    tenant: str | None = None,
    limit: int = 20,
) -> list[Record]:
    """List deliveries of each endpoint. Raises NotPossible if there are too many."""
    records: list[Record] = []
    for one in await _endpoints(administration, endpoint, tenant):
        page = await administration.deliveries.latest(one, Wanted(), state=state, limit=limit)
        now = administration.clock()
        records += [
            {"endpoint": one.id, **serializers.delivery_record(each, one, now=now)}
            for each in page.deliveries
        ]
        if len(records) > _MAX_SHOWN:
            raise NotPossible(f"there are more than {_MAX_SHOWN:,}: name an endpoint or a tenant")
    return records


async def show(
    administration: Administration, *, event: str, endpoint: str | None = None
) -> list[Record]:
    """Return the deliveries of an event. Raises NoSuchRecord."""
    records: list[Record] = []
    for one in await _endpoints(administration, endpoint, None):
        found = await administration.deliveries.one(one, event)
        if found is None:
            continue
        whole = serializers.whole_delivery_record(found, one, now=administration.clock())
        records.append({"endpoint": one.id, **whole, "body": found.body.decode()})
        what = ("Endpoint", one.id), *_resource_of(found)
        await administration.record_read("delivery.read", *what, tenant=one.tenant)
    if not records:
        raise NoSuchRecord("delivery", event)
    return records


async def replay(administration: Administration, **given: Any) -> Record:
    """Reopen deliveries; the response has where to go on, if not all of them were reopened."""
    wanted = _wanted(given)
    found = await _endpoints(administration, given.get("endpoint"), given.get("tenant"))
    if given.get("endpoint") is None:  # nothing is sent to these, which is refused of a named one
        found = [one for one in found if not is_pull(one.url)]
    chosen = [one for one in found if one.state != "deleted"]
    for event in sorted(given.get("events", ())):
        if not [one for one in chosen if await administration.deliveries.one(one, event)]:
            raise NoSuchRecord("delivery", event)
    named = [("Endpoint", one.id) for one in chosen]
    place = _Place.read(given.get("from", ""))
    if place.endpoint and place.endpoint not in {one.id for one in found}:
        rule = "names none of these endpoints: send what the call before returned as following"
        raise InvalidContent([Issue.error(OperationProblem.FIELD_INVALID, rule, "from")])
    async with administration.recorded("delivery.replay", *named):
        return await _replay(administration, found, wanted, place)


@dataclass(slots=True)
class _Place:
    """From where a replay goes on: an endpoint, and a sequence number there."""

    endpoint: str = ""
    sequence: int | None = None

    @classmethod
    def read(cls, text: str) -> _Place:
        if not text:
            return cls()
        endpoint, _, sequence = text.partition(":")
        return cls(endpoint, *read_numbers([sequence], count=1, name="from"))


async def _replay(
    administration: Administration, found: Sequence[Endpoint], wanted: Wanted, place: _Place
) -> Record:
    reopened, held = 0, []
    ids = [one.id for one in found]
    for one in found[ids.index(place.endpoint) if place.endpoint in ids else 0 :]:
        if one.state == "deleted":  # maybe since the call before, which names it as its place
            continue
        following = place.sequence if one.id == place.endpoint else None
        here = 0
        while True:
            page = await administration.deliveries.replay(
                one, replace(wanted, from_sequence=following)
            )
            here, following = here + page.reopened, page.following
            if following is None or reopened + here >= _MAX_REPLAYED:
                break
        reopened += here
        if here and one.state != "active":
            held.append({"endpoint": one.id, "state": one.state})
        if following is not None:
            return {"reopened": reopened, "held": held, "following": f"{one.id}:{following}"}
    return {"reopened": reopened, "held": held, "following": None}


def _wanted(given: Mapping[str, Any]) -> Wanted:
    events, dead = given.get("events", ()), given.get("dead", False)
    since, until = given.get("since"), given.get("until")
    if not (events or dead or since is not None or until is not None):
        rule = "name events, or since, until or dead"
        raise InvalidContent([Issue.error(OperationProblem.FIELD_REQUIRED, rule)])
    return Wanted(
        event_ids=frozenset(events) if events else None,
        since=since,
        until=until,
        states=frozenset({"dead"}) if dead else frozenset(),
    )


async def _endpoints(
    administration: Administration, endpoint: str | None, tenant: str | None
) -> Sequence[Endpoint]:
    """Return the endpoints that are meant, including deleted ones."""
    if endpoint is not None:
        return [await administration.endpoint(endpoint)]
    store = administration.store
    if tenant is not None:
        return await store.endpoints((await administration.tenant(tenant)).id)
    return [one for item in await store.tenants() for one in await store.endpoints(item.id)]


def _resource_of(delivery: Delivery) -> list[tuple[str, str]]:
    """Return the kind and id of the resource that a delivery is about, if there is one."""
    kind, _slash, id_ = delivery.resource.partition("/")
    return [(kind, id_)] if id_ else []


LIST = Operation(
    command="deliveries list",
    method="GET",
    path="/deliveries",
    summary="List the deliveries of each endpoint, newest first",
    run=list_,
    parameters=(
        Parameter(
            name="state", text="Only those in this state.", place="query", choices=SHOWN_STATES
        ),
        _ONLY_OF_ENDPOINT,
        ONLY_OF_TENANT,
        Parameter(
            name="limit",
            type="integer",
            text="The maximum number for each endpoint; default: 20.",
            place="query",
            minimum=1,
            maximum=1_000,
        ),
    ),
)
SHOW = Operation(
    command="deliveries show",
    method="GET",
    path="/deliveries/{event}",
    summary="Show the deliveries of an event with the response to each attempt",
    run=show,
    parameters=(
        Parameter(name="event", text="The id of the event.", place="path", required=True),
        _ONLY_OF_ENDPOINT,
    ),
)
REPLAY = Operation(
    command="deliveries replay",
    method="POST",
    path="/deliveries/replay",
    summary="Replay deliveries: by event id, of a period, or dead letters",
    run=replay,
    parameters=(
        Parameter(name="events", type="strings", text="Only deliveries of these events, by id."),
        Parameter(name="since", type="instant", text="Only those created at this time or later."),
        Parameter(name="until", type="instant", text="Only those created before this time."),
        Parameter(name="dead", type="boolean", text="Only dead letters."),
        replace(_ONLY_OF_ENDPOINT, place="body"),
        replace(ONLY_OF_TENANT, place="body"),
        Parameter(
            name="from",
            text=FROM,
        ),
    ),
    action="delivery.replay",
)
OPERATIONS = (LIST, SHOW, REPLAY)
