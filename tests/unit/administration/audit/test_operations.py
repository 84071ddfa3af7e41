"""Chains are listed in pages, exported with their hashes, and verified."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fhirpub.administration import tenants
from fhirpub.administration.audit import operations
from fhirpub.administration.naming import id_of_key
from fhirpub.audit.chain import beginning, hashes_after
from fhirpub.audit.record import Agent
from fhirpub.auth.tenants import add_tenant
from fhirpub.errors import InvalidContent, NoSuchRecord
from fhirpub.fhir.times import instant
from tests.audit_trail import CLIENT, NOON, a_record, seal
from tests.unit.administration.declared import declared
from tests.unit.administration.office import Office

HOUR = 3_600_000


@pytest.fixture
async def lab(office: Office) -> str:
    """A tenant with two blocks of two records each, an hour apart."""
    id_ = id_of_key("tenant", "lab")
    await add_tenant(office.store, "Lab", clock=office.clock, tenant_id=id_)
    times = [NOON, NOON + 1, NOON + HOUR, NOON + HOUR + 1]
    await seal(office.store, id_, [a_record("read", at=time) for time in times])
    return id_


def times_of(page: Any) -> list[int]:
    return [one["at"] for one in page["records"] if one["at"] in range(NOON, NOON + 2 * HOUR)]


async def listed(office: Office, **given: Any) -> list[int]:
    """Return the times of the records that one page has."""
    return times_of(await office.run(operations.LIST, chain="lab", **given))


async def test_records_are_listed_from_the_newest_on_with_their_chain(
    office: Office, lab: str
) -> None:
    page = await office.run(operations.LIST, chain="Lab", action="read")

    assert times_of(page) == [NOON + HOUR + 1, NOON + HOUR, NOON + 1, NOON]
    assert {one["tenant"] for one in page["records"]} == {lab}
    assert page["following"] is None


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
async def test_pages_of_a_list_follow_each_other(office: Office, lab: str, limit: int) -> None:
    found: list[int] = []
    following: str | None = ""
    while following is not None:
        given = {"from": following} if following else {}
        page = await office.run(operations.LIST, chain="lab", action="read", limit=limit, **given)
        assert len(page["records"]) <= limit
        found += times_of(page)
        following = page["following"]

    assert found == [NOON + HOUR + 1, NOON + HOUR, NOON + 1, NOON]


async def test_a_page_that_is_exactly_full_is_the_last(office: Office, lab: str) -> None:
    page = await office.run(operations.LIST, chain="lab", action="read", limit=4)

    assert (len(page["records"]), page["following"]) == (4, None)


async def test_a_period_begins_with_its_first_moment_and_ends_before_its_last(
    office: Office, lab: str
) -> None:
    since, until = instant(NOON + 1), instant(NOON + HOUR)

    assert await listed(office, since=since, until=until) == [NOON + 1]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"patient": "Patient/1"}, {"both"}),
        ({"patient": "Patient/2"}, set()),
        ({"entity": "DiagnosticReport/a"}, {"both", "report"}),
        ({"entity": "DiagnosticReport/a/_history/9"}, {"both", "report"}),
        ({"entity": "Patient/1"}, set()),
        ({"agent": "ana"}, {"both"}),
        ({"agent": CLIENT.client}, {"report"}),
        ({"agent": "ana", "patient": "Patient/1"}, {"both"}),
        ({"agent": CLIENT.client, "patient": "Patient/1"}, set()),
        ({"action": "report"}, {"report"}),
        ({"action": "rep"}, set()),
    ],
)
async def test_only_what_is_asked_for_is_listed(
    office: Office, lab: str, given: dict[str, str], found: set[str]
) -> None:
    report = "DiagnosticReport/a/_history/2"
    both = a_record(
        "both", agent=Agent(user="ana", host="h"), what=(report,), patients=("Patient/1",)
    )
    await seal(office.store, lab, [both, a_record("report", what=(report,))])

    page = await office.run(operations.LIST, chain=lab, **given)

    assert {one["action"] for one in page["records"]} & {"both", "report"} == found


async def test_the_chain_of_another_tenant_is_not_listed(office: Office, lab: str) -> None:
    other = (await office.run(tenants.ADD, name="Other"))["id"]

    page = await office.run(operations.LIST, chain=other)

    assert {one["tenant"] for one in page["records"]} == {other}
    assert times_of(page) == []


async def test_what_waits_is_sealed_before_the_first_page(office: Office, lab: str) -> None:
    await office.store.add_audit_records({lab: a_record("late", at=office.clock()) + b"\n"})

    page = await office.run(operations.LIST, chain=lab, action="late")

    assert len(page["records"]) == 1


async def test_a_look_at_a_chain_is_recorded_in_it(office: Office, lab: str) -> None:
    for operation, action in (
        (operations.LIST, "audit.search"),
        (operations.EXPORT, "audit.export"),
        (operations.VERIFY, "audit.verify"),
    ):
        await office.run(operation, chain=lab)
        assert await office.records() == [(lab, action, 200, [])]


@pytest.mark.parametrize("place", ["x", "1.2", "1.2.3.4", "1.2.x", "-1.2.3"])
async def test_a_place_that_no_response_had_is_refused(
    office: Office, lab: str, place: str
) -> None:
    with pytest.raises(InvalidContent, match="from: "):
        await office.run(operations.LIST, chain=lab, **{"from": place})


@pytest.mark.parametrize("limit", [0, 1_001])
async def test_a_page_has_one_to_a_thousand_records(office: Office, lab: str, limit: int) -> None:
    await office.run(operations.LIST, chain=lab, limit=1_000)

    with pytest.raises(InvalidContent, match="limit"):
        await office.run(operations.LIST, chain=lab, limit=limit)


async def test_the_usual_page_has_fifty_records(office: Office, lab: str) -> None:
    await seal(office.store, lab, [a_record("many", at=NOON + step) for step in range(51)])

    page = await office.run(operations.LIST, chain=lab, action="many")

    assert len(page["records"]) == 50
    assert page["following"] is not None


async def test_chains_are_named_by_their_tenants_and_that_of_the_service(
    office: Office, lab: str
) -> None:
    await seal(office.store, "", [a_record()])

    assert await office.run(operations.CHAINS) == ["service", lab]


async def test_the_chain_of_the_service_is_meant_by_its_name(office: Office, lab: str) -> None:
    await seal(office.store, "", [a_record()])

    page = await office.run(operations.LIST, chain="service")

    assert {one["tenant"] for one in page["records"]} == {"service"}


async def test_a_chain_that_does_not_exist_is_named(office: Office, lab: str) -> None:
    with pytest.raises(NoSuchRecord, match="there is no tenant guess"):
        await office.run(operations.LIST, chain="guess")


async def test_a_chain_is_exported_from_the_oldest_on_with_each_hash(
    office: Office, lab: str
) -> None:
    exported = await office.run(operations.EXPORT, chain="lab")

    lines = exported["records"]
    records = [one["record"].encode() for one in lines]
    hashes = [each.hex() for each in hashes_after(beginning(lab), records)]
    assert [one["hash"] for one in lines] == hashes
    assert {one["tenant"] for one in lines} == {lab}
    places = [(one["block"], one["place"]) for one in lines if b"read" in one["record"].encode()]
    assert places == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert orjson.loads(records[0])["at"] == NOON
    assert exported["following"] is None


async def test_an_export_goes_on_behind_a_block(office: Office, lab: str) -> None:
    exported = await office.run(operations.EXPORT, chain=lab, after=1)

    assert exported["records"][0]["block"] == 2


async def test_an_export_pauses_after_so_many_bytes(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_PAGE_BYTES", 10)

    exported = await office.run(operations.EXPORT, chain=lab)

    assert {one["block"] for one in exported["records"]} == {1}
    assert exported["following"] == 1


async def test_a_chain_that_is_right_is_stated_with_its_period(office: Office, lab: str) -> None:
    verdict = await office.run(operations.VERIFY, chain="Lab")

    assert verdict == {
        "tenant": lab,
        "records": 4,
        "blocks": 2,
        "checkpoints": 1,
        "from": instant(NOON),
        "to": instant(NOON + HOUR + 1),
        "verdict": "right",
    }


async def test_checkpoints_from_outside_are_verified_as_well(office: Office, lab: str) -> None:
    verdict = await office.run(operations.VERIFY, chain=lab, checkpoints=["forged"])

    assert "a checkpoint is not right" in verdict["verdict"]


async def test_each_of_several_checkpoints_is_verified(office: Office, lab: str) -> None:
    await office.run(operations.VERIFY, chain=lab)
    ((_number, right),) = await office.store.audit_checkpoints(lab)

    for checkpoints in ([right, "forged"], ["forged", right]):
        verdict = await office.run(operations.VERIFY, chain=lab, checkpoints=checkpoints)
        assert "a checkpoint is not right" in verdict["verdict"]


async def test_an_export_pauses_exactly_at_its_size(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block, *_) = await office.store.audit_chain(lab)
    for size, following in ((len(block.records), 1), (len(block.records) + 1, 2)):
        monkeypatch.setattr(operations, "_PAGE_BYTES", size)
        assert (await office.run(operations.EXPORT, chain=lab))["following"] == following


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(operations.OPERATIONS) == {
        "audit list": [
            "GET /audit 200",
        ],
        "audit list --tenant": [
            "GET /audit/{chain}/records 200",
            "path chain! string",
            "query patient string",
            "query entity string",
            "query agent string",
            "query action string",
            "query since instant",
            "query until instant",
            "query limit integer >=1 <=1000",
            "query from string",
        ],
        "audit export": [
            "GET /audit/{chain}/export 200",
            "path chain! string",
            "query after integer >=0",
        ],
        "audit verify": [
            "POST /audit/{chain}/verify 200",
            "path chain! string",
            "body checkpoints strings 8192 characters",
        ],
    }
