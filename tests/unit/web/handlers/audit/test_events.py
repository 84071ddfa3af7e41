"""Audit events over HTTP: read, searched, by pages, with scopes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from fhirpub.fhir.times import http_date
from fhirpub.runtime.clock import DAY_MS
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.audit_trail import (
    AUDITOR,
    EVENTS,
    FILLED_BY_TESTS,
    NOON,
    REPORT,
    a_record,
    actions_found,
    events_found,
    fill,
    records_of_tenant,
)
from tests.unit.web.handlers.asking import asked

RECORDS = [
    a_record("read", what=(REPORT,), at=NOON),
    a_record("search", query="_count=2", at=NOON + 1_000),
    a_record("update", status=412, what=(f"{REPORT}/_history/2",), at=NOON + 2_000),
]
ELEMENTS = ["resourceType", "id", "meta", "agent", "recorded", "source", "type"]
SUMMARY = [*ELEMENTS, "action", "outcome", "outcomeDesc", "subtype"]
ACTIONS = ["update", "search", "read"]


@pytest.fixture(scope="module")
def auditing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose trails have what the tests put into them."""
    with RunningService(tmp_path_factory.mktemp("auditing"), config=FILLED_BY_TESTS) as service:
        yield service


@pytest.fixture(scope="module")
def auditor(auditing: RunningService) -> Integrator:
    """A client that may read the trail of a tenant, which has three records."""
    auditor = auditing.integrator("Audited", scopes=AUDITOR)
    fill(auditing, auditor.tenant.id, RECORDS)
    return auditor


def links(answer: Answer) -> dict[str, str]:
    return {one["relation"]: one["url"] for one in answer.json["link"]}


def test_events_are_found_newest_first(auditor: Integrator) -> None:
    answer = auditor.get(EVENTS)

    assert actions_found(answer) == ACTIONS
    assert links(answer) == {"self": f"{auditor.service.base_url}{EVENTS}"}
    assert answer.json["type"] == "searchset"


def test_an_event_is_read_by_its_id_as_it_is_found(auditor: Integrator) -> None:
    for event in events_found(auditor.get(EVENTS)):
        answer = auditor.get(f"{EVENTS}/{event['id']}")

        assert (answer.status, answer.json) == (200, event)
        assert answer.headers["etag"] == 'W/"1"'


def test_an_event_is_known_since_the_second_in_which_it_was_recorded(auditor: Integrator) -> None:
    oldest = events_found(auditor.get(EVENTS))[-1]["id"]

    found = [
        auditor.get(f"{EVENTS}/{oldest}", If_Modified_Since=http_date(NOON + each)).status
        for each in (-1_000, 0)
    ]

    assert found == [200, 304]


def test_an_event_is_addressed_below_the_base(auditor: Integrator) -> None:
    for entry in auditor.get(EVENTS).json["entry"]:
        url = f"{auditor.service.base_url}{EVENTS}/{entry['resource']['id']}"
        assert entry["fullUrl"] == url


@pytest.mark.parametrize("made_up", ["x", "0" * 12 + "-1-1", "{}9"])
def test_an_id_that_was_made_up_leads_nowhere(auditor: Integrator, made_up: str) -> None:
    known = events_found(auditor.get(EVENTS))[0]["id"]

    answer = auditor.get(f"{EVENTS}/{made_up.format(known)}")

    assert (answer.status, answer.problems) == (404, ["resource-unknown"])


def test_an_event_of_another_tenant_is_not_found(
    auditing: RunningService, auditor: Integrator
) -> None:
    other = auditing.integrator("Other", scopes=AUDITOR)

    assert other.get(f"{EVENTS}/{events_found(auditor.get(EVENTS))[0]['id']}").status == 404
    assert actions_found(other.get(EVENTS)) == []


def test_a_form_finds_what_a_url_finds(auditor: Integrator) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = auditor.request("POST", f"{EVENTS}/_search", b"subtype=search", kind)

    by_url = actions_found(auditor.get(f"{EVENTS}?subtype=search"))
    assert actions_found(answer) == by_url == ["search"]


# Pages.


def test_pages_lead_from_one_to_the_next(auditor: Integrator) -> None:
    pages = [auditor.get(f"{EVENTS}?_count=1")]
    while "next" in links(pages[-1]):
        pages.append(auditor.get(links(pages[-1])["next"]))

    assert [action for page in pages for action in actions_found(page)] == ACTIONS
    assert "_count=1" in links(pages[0])["self"]
    assert "_cursor=" not in links(pages[0])["self"]
    assert "_cursor=" in links(pages[1])["self"]
    assert ["_count=1" in links(page)["self"] for page in pages] == [True] * len(ACTIONS)


@pytest.mark.parametrize("change", ["&subtype=read", "x"])
def test_a_link_serves_its_own_search_only(auditor: Integrator, change: str) -> None:
    following = links(auditor.get(f"{EVENTS}?_count=1"))["next"]

    answer = auditor.get(following + change)

    assert (answer.status, answer.problems) == (400, ["page-link-invalid"])
    assert answer.issue_expressions == {"_cursor"}


# Parameters.


def test_an_unknown_parameter_is_a_remark_or_refused_if_that_is_wanted(
    auditor: Integrator,
) -> None:
    lenient = auditor.get(f"{EVENTS}?pateint=1&agent=")
    strict = auditor.get(f"{EVENTS}?pateint=1", Prefer="handling=strict")

    (outcome,) = (
        one["resource"] for one in lenient.json["entry"] if one["search"]["mode"] == "outcome"
    )
    assert len(outcome["issue"]) == 2
    assert actions_found(lenient) == ACTIONS
    assert (strict.status, strict.issue_expressions) == (400, {"pateint"})


def test_all_that_is_wrong_is_refused_at_once(auditor: Integrator) -> None:
    query = "date=yesterday&_count=0&nonsense=1"

    answer = auditor.get(f"{EVENTS}?{query}", Prefer="handling=strict")

    assert answer.issue_expressions == {"date", "_count", "nonsense"}


def test_a_search_without_a_match_has_no_entries(auditor: Integrator) -> None:
    assert "entry" not in auditor.get(f"{EVENTS}?subtype=token").json


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", [*SUMMARY, "entity"]),
        ("_summary=true", SUMMARY),
        ("_elements=recorded", ELEMENTS),
    ],
    ids=["whole", "summary", "elements"],
)
def test_a_summary_has_a_part_of_each_event(
    auditor: Integrator, query: str, names: list[str]
) -> None:
    event = events_found(auditor.get(f"{EVENTS}?{query}"))[-1]

    assert sorted(event) == sorted(names)


# Scopes and records.


@pytest.mark.parametrize(
    ("scopes", "read", "searched"),
    [
        (("system/AuditEvent.r",), 404, 403),
        (("system/AuditEvent.s",), 403, 200),
        (("system/*.cruds",), 403, 403),
        ((), 403, 403),
    ],
)
def test_events_need_scopes_of_their_own_even_where_scopes_are_not_enforced(
    service: RunningService, scopes: tuple[str, ...], read: int, searched: int
) -> None:
    lab = service.integrator(scopes=scopes)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}

    assert lab.get(f"{EVENTS}/x").status == read
    assert lab.get(EVENTS).status == searched
    assert lab.request("POST", f"{EVENTS}/_search", b"", kind).status == searched


def test_reading_the_trail_is_recorded_without_the_events(service: RunningService) -> None:
    lab = service.integrator(scopes=AUDITOR)
    lab.get(EVENTS)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    lab.request("POST", f"{EVENTS}/_search", b"_count=1", kind)
    lab.get(f"{EVENTS}/x")

    records = records_of_tenant(lab)

    assert [one["action"] for one in records] == ["audit.search", "audit.search", "audit.read"]
    assert ["what" in one for one in records[:2]] == [False, False]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_search_that_finds_events_is_recorded_without_them(
    service: RunningService, method: str
) -> None:
    lab = service.integrator(scopes=AUDITOR)
    lab.get(f"{EVENTS}/x")
    assert len(records_of_tenant(lab)) == 1  # they are in the trail now

    if method == "GET":
        answer = lab.get(f"{EVENTS}?subtype=audit.read")
    else:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = lab.request("POST", f"{EVENTS}/_search", b"subtype=audit.read", kind)

    assert actions_found(answer) == ["audit.read"]
    record = records_of_tenant(lab)[-1]
    assert (record["action"], "what" in record) == ("audit.search", False)


@pytest.mark.parametrize(("moment", "count"), [("2027-01-15T08:00:01Z", 3), ("2027-02-15", 0)])
def test_what_is_about_a_time_is_measured_from_now(
    auditing: RunningService, auditor: Integrator, moment: str, count: int
) -> None:
    async def found() -> Any:
        services = auditing.services
        context = replace(services.context, clock=lambda: NOON + 10 * DAY_MS)
        services = replace(services, context=context)
        async with asked(auditor, "GET", f"{EVENTS}?date=ap{moment}", services=services) as one:
            one.handler.run()
            await one.exchange.wait_ended()
            return orjson.loads(one.exchange.body or b"")

    assert len(auditing.call(found()).get("entry", [])) == count


def test_a_page_has_as_many_events_as_were_asked_for(auditing: RunningService) -> None:
    auditor = auditing.integrator("Many", scopes=AUDITOR)
    usual = auditing.config.fhir.page_size
    fill(auditing, auditor.tenant.id, [a_record(at=NOON + number) for number in range(usual + 2)])

    found = len(actions_found(auditor.get(EVENTS)))
    more = len(actions_found(auditor.get(f"{EVENTS}?_count={usual + 1}")))

    assert (found, more) == (usual, usual + 1)
