"""Erased resources over HTTP: reads, searches, registrations and events (ADR 36)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from fhirpub.app.erasures import InterruptedErasures
from fhirpub.app.stores import open_store
from fhirpub.config.patients import PatientsConfig
from fhirpub.config.settings import Config
from fhirpub.config.storage import StorageConfig
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.interactions.erasure.patients import patients_by_identifier, resources_of
from fhirpub.runtime.clock import now_ms
from fhirpub.storage import transfer as copying
from fhirpub.storage.erasure.contract import ErasedDeliveries, Erasure, Hold
from fhirpub.storage.erasure.tombstones import Tombstone, husk_of
from fhirpub.storage.sqlite.parameters import json_pairs
from fhirpub.storage.sqlite.tables import webhooks
from fhirpub.storage.sqlite.webhook_rows import delivery_of, outcome_row
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import AttemptResult, Delivery, DeliveryKey
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.webhooks.transport.envelope import without_details
from tests.api.test_patients import HOSPITAL, NATIONAL, identified, of, subject_of
from tests.api.test_patients_held import referring
from tests.api.test_webhooks_at_work import ENDPOINTS, SETTINGS, act, states
from tests.bodies import SYSTEM, document, patient, register_body
from tests.erasing import Operator
from tests.panels import panel, result, specimen
from tests.waiting import wait_until

BASE = "/fhir/r4"
REPORTS = f"{BASE}/DiagnosticReport"


@pytest.fixture
def operator(service: RunningService, lab: Integrator) -> Operator:
    return Operator(service, lab)


@dataclass(frozen=True)
class Published:
    """A report with a result and a specimen."""

    report: str
    members: tuple[str, ...]
    patient: str
    organization: str


def address_of(answer: Answer) -> str:
    """Return the type and id of what was registered."""
    assert answer.status == 201, answer.body
    return "/".join(answer.headers["location"].split("/")[-4:-2])


def publish(lab: Integrator, value: str = "R-1", **changes: Any) -> Published:
    answer = lab.register(panel(value, result("hb"), specimen(), **changes))
    report = address_of(answer)
    read = lab.get(f"{BASE}/{report}").json
    return Published(
        report,
        tuple(
            one["valueReference"]["reference"]
            for one in answer.json["parameter"]
            if "valueReference" in one
        ),
        read["subject"]["reference"],
        read["performer"][0]["reference"],
    )


@pytest.fixture
def published(lab: Integrator) -> Published:
    return publish(lab)


def test_a_read_of_it_and_of_all_that_came_with_it_is_a_410(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report)

    for address in (
        published.report,
        *published.members,
        published.patient,
        published.organization,
    ):
        answer = lab.get(f"{BASE}/{address}")
        assert (answer.status, answer.problems) == (410, ["resource-erased"]), address
        assert answer.issues[0]["code"] == "deleted"


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_vread_of_each_version_is_a_410(
    lab: Integrator, operator: Operator, published: Published, version: str
) -> None:
    lab.patch(
        f"{BASE}/{published.report}",
        {"resourceType": "DiagnosticReport", "conclusion": "changed"},
        If_Match='W/"1"',
    )
    operator.erase(published.report)

    for address in (published.report, *published.members):
        if address == published.report or version != "2":
            answer = lab.get(f"{BASE}/{address}/_history/{version}")
            assert answer.status == 410, address
    assert lab.get(f"{BASE}/{published.report}/_history/4").status == 404


def test_its_history_is_a_410(lab: Integrator, operator: Operator, published: Published) -> None:
    operator.erase(published.report)

    assert lab.get(f"{BASE}/{published.report}/_history").status == 410


def test_no_search_returns_it(lab: Integrator, operator: Operator, published: Published) -> None:
    kept = publish(lab, "R-2")
    operator.erase(published.report)

    for query in (
        "",
        f"_id={published.report.partition('/')[2]},{kept.report.partition('/')[2]}",
        f"identifier={SYSTEM}|R-1,{SYSTEM}|R-2",
        "status=final&_sort=date",
        "patient.identifier=AAB123456",
        "_summary=count",
    ):
        found = lab.get(f"{REPORTS}?{query}").json
        addresses = [entry["resource"]["id"] for entry in found.get("entry", [])]
        assert found["total"] == 1, query
        assert published.report.partition("/")[2] not in addresses
    for type_name in ("Observation", "Specimen", "Patient"):
        assert lab.get(f"{BASE}/{type_name}").json["total"] == 1
    assert lab.get(f"{REPORTS}/_history").json["total"] == 1


@pytest.mark.parametrize("size", [500, 100_000])
def test_its_document_is_gone_and_one_that_another_report_has_stays(
    lab: Integrator, operator: Operator, size: int
) -> None:
    own, shared = os.urandom(size), os.urandom(size)
    first = publish(lab, "R-1", presentedForm=[document(own), document(shared)])
    other = publish(lab, "R-2", presentedForm=[document(shared)])

    erased = operator.erase(first.report)

    binary = f"{BASE}/Binary/{first.report.partition('/')[2]}.1.1"
    read = lab.get(f"{BASE}/{other.report}").json
    assert lab.get(binary).status == 410
    assert base64.b64decode(read["presentedForm"][0]["data"]) == shared
    assert erased.documents_kept == 1


def test_what_belongs_to_another_report_stays_byte_for_byte(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    kept = publish(lab, "R-2")
    addresses = (kept.report, *kept.members, kept.patient, kept.organization)
    before = [lab.get(f"{BASE}/{address}").body for address in addresses]

    operator.erase(published.report)

    assert [lab.get(f"{BASE}/{address}").body for address in addresses] == before


def test_its_identifier_cannot_be_registered_again(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report)

    for body in (panel("R-1", result("hb"), specimen()), register_body("R-1", status="amended")):
        answer = lab.register(body)
        assert (answer.status, answer.problems) == (409, ["identifier-erased"])
        assert answer.issues[0]["code"] == "deleted"
    validated = lab.request("POST", f"{REPORTS}/$validate", register_body("R-1"))
    assert "identifier-erased" in validated.problems


def test_neither_can_it_be_changed(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report)

    for condition in ('W/"1"', 'W/"2"', "*"):
        changed = lab.patch(
            f"{BASE}/{published.report}",
            {"resourceType": "DiagnosticReport", "conclusion": "x"},
            If_Match=condition,
        )
        assert changed.status == 410
    revised = lab.request(
        "POST", f"{BASE}/{published.report}/$revise", register_body("R-1"), {"If-Match": "*"}
    )
    assert revised.status == 410


def test_another_tenant_sees_nothing_of_it(
    service: RunningService, operator: Operator, published: Published
) -> None:
    operator.erase(published.report)

    other = service.integrator("Other")
    assert other.get(f"{BASE}/{published.report}").status == 404
    assert other.register(register_body("R-1")).status == 201


@pytest.mark.parametrize("size", [500, 300_000])
def test_with_reuse_its_identifier_is_registered_as_the_next_version(
    lab: Integrator, operator: Operator, size: int
) -> None:
    published = publish(lab)
    operator.erase(published.report, allows_reuse=True)
    body = panel("R-1", result("hb", 7.5), presentedForm=[document(os.urandom(size))])

    again = lab.register(body)
    repeated = lab.register(body)
    other = lab.register(register_body("R-1"))

    assert again.headers["location"].endswith(f"{published.report}/_history/3")
    assert (repeated.status, repeated.body) == (201, again.body)
    assert other.headers["location"] == again.headers["location"]
    read = lab.get(f"{BASE}/{published.report}")
    assert (read.headers["etag"], read.json["meta"]["versionId"]) == ('W/"3"', "3")
    observation = lab.get(f"{BASE}/{published.members[0]}")
    assert observation.json["valueQuantity"]["value"] == 7.5
    assert lab.get(f"{BASE}/{published.patient}").status == 200
    for number in (1, 2):
        assert lab.get(f"{BASE}/{published.report}/_history/{number}").status == 410


def test_what_is_registered_again_is_updated_revised_and_listed(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report, allows_reuse=True)
    address = f"{BASE}/{published.report}"
    lab.register(panel("R-1", result("hb", 7.5)))

    changed = lab.patch(
        address, {"resourceType": "DiagnosticReport", "conclusion": "changed"}, If_Match='W/"3"'
    )
    revised = lab.request(
        "POST",
        f"{address}/$revise",
        panel("R-1", result("hb", 8.5), specimen(), conclusion="changed"),
        {"If-Match": 'W/"4"'},
    )
    history = lab.get(f"{address}/_history").json

    assert (changed.status, revised.status) == (204, 200), revised.body
    assert history["total"] == 3
    assert [entry["response"]["etag"] for entry in history["entry"]] == [
        'W/"5"',
        'W/"4"',
        'W/"3"',
    ]
    assert [entry["request"]["method"] for entry in history["entry"]] == ["POST", "PATCH", "POST"]
    for member in published.members:
        assert lab.get(f"{BASE}/{member}").status == 200
    included = lab.get(f"{REPORTS}?_include=DiagnosticReport:patient").json
    assert [entry["search"]["mode"] for entry in included["entry"]] == ["match", "include"]


def test_what_is_registered_again_is_erased_again(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report, allows_reuse=True)
    lab.register(panel("R-1", result("hb", 7.5)))

    operator.erase(published.report)

    assert lab.get(f"{BASE}/{published.report}").status == 410
    assert lab.register(register_body("R-1")).status == 409
    for number in (1, 2, 3, 4):
        assert lab.get(f"{BASE}/{published.report}/_history/{number}").status == 410


def test_a_batch_has_the_refusals_of_single_requests(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report)
    bundle = {
        "resourceType": "Bundle",
        "type": "batch",
        "entry": [
            {"request": {"method": "GET", "url": published.report}},
            {
                "resource": register_body("R-1"),
                "request": {"method": "POST", "url": "DiagnosticReport/$register"},
            },
        ],
    }

    answer = lab.request("POST", BASE, bundle)

    statuses = [entry["response"]["status"][:3] for entry in answer.json["entry"]]
    assert statuses == ["410", "409"]


def test_an_order_is_repeated_without_effect(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    first = operator.erase(published.report)
    again = operator.erase(published.report)

    assert (first.versions, first.members, first.version) == (1, 2, 2)
    assert (again.versions, again.members, again.version) == (0, 0, 2)
    assert lab.get(f"{BASE}/{published.report}/_history/3").status == 404


def test_a_plan_counts_and_erases_nothing(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    lab.patch(
        f"{BASE}/{published.report}",
        {"resourceType": "DiagnosticReport", "conclusion": "changed"},
        If_Match='W/"1"',
    )

    planned = operator.plan(published.report)

    assert (planned.versions, planned.members, planned.documents) == (2, 2, 1)
    assert planned.bytes > 1_000
    assert lab.get(f"{BASE}/{published.report}").status == 200


def test_what_is_unknown_or_came_with_another_resource_is_refused(
    operator: Operator, published: Published
) -> None:
    for address in (published.members[0], published.patient, "DiagnosticReport/" + "0" * 36):
        with pytest.raises(NotErasable):
            operator.erase(address)


def test_a_resource_of_another_tenant_is_refused(
    service: RunningService, published: Published
) -> None:
    other = Operator(service, service.integrator("Other"))

    with pytest.raises(NotErasable):
        other.erase(published.report)


@pytest.mark.parametrize("which", ["report", "member", "patient"])
def test_what_is_on_hold_is_not_erased(
    lab: Integrator, operator: Operator, published: Published, which: str
) -> None:
    on_hold = {
        "report": published.report,
        "member": published.members[0],
        "patient": published.patient,
    }[which]
    type_name, _, id_ = on_hold.partition("/")
    hold = Hold(
        tenant=lab.tenant.id, type=type_name, id=id_, since=1, operator="eve", reason="case 3"
    )
    operator.service.call(operator.store.put_hold(hold))

    with pytest.raises(NotErasable, match="case 3"):
        operator.erase(published.report)
    assert lab.get(f"{BASE}/{published.report}").status == 200

    operator.service.call(operator.store.delete_hold(lab.tenant.id, (type_name, id_)))
    operator.erase(published.report)
    assert lab.get(f"{BASE}/{published.report}").status == 410


def test_the_first_order_is_the_one_that_stays(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report, operator="alice", reason="order A")
    operator.erase(published.report, operator="bob", reason="order B", allows_reuse=True)

    (order,) = operator.orders()
    assert (order.operator, order.reason, order.allows_reuse) == ("alice", "order A", False)
    assert lab.register(register_body("R-1")).status == 409


def test_an_order_by_a_clock_that_is_behind_erases_what_was_registered_again(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report, allows_reuse=True)
    lab.register(panel("R-1", result("hb", 7.5)))

    erased = operator.erase(published.report, ordered=1)

    assert erased.version == 4
    assert lab.get(f"{BASE}/{published.report}").status == 410


def test_an_interrupted_order_is_completed_by_the_service(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    store = operator.store
    order = operator.order(published.report)
    operator.service.call(store.put_erasure(order))
    _bury(lab, operator, order)
    assert operator.orders(unfinished=True) != []

    async def complete() -> int:
        return await InterruptedErasures(operator.service.services).complete(young_ms=0)

    assert operator.service.call(complete()) >= 1
    assert operator.orders(unfinished=True) == []
    assert lab.get(f"{BASE}/{published.report}/_history/1").status == 410


def test_no_version_below_a_tombstone_is_read_before_it_is_emptied(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    _bury(lab, operator, operator.order(published.report))

    answer = lab.get(f"{BASE}/{published.report}/_history/1")

    assert answer.status == 410


def _bury(lab: Integrator, operator: Operator, order: Erasure) -> None:
    """Add a tombstone as version 2, and leave version 1 as it is."""
    store = operator.store
    tombstone = Tombstone(version=2, at=now_ms(), operator="eve", reason="order 7")
    first = operator.service.call(store.version(lab.tenant.id, order.id, 1))
    assert first is not None
    husk = husk_of(replace(first, version=2, audit=b""), tombstone)
    assert operator.service.call(store.add(lab.tenant.id, husk))


def test_an_order_that_is_put_on_hold_meanwhile_is_refused_and_not_resumed(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    order = operator.order(published.report)
    operator.service.call(operator.store.put_erasure(order))
    hold = Hold(
        tenant=lab.tenant.id,
        type=order.type,
        id=order.id,
        since=1,
        operator="eve",
        reason="case 3",
    )
    operator.service.call(operator.store.put_hold(hold))

    with pytest.raises(NotErasable):
        operator.service.call(operator.eraser.resume(order))

    assert operator.orders(unfinished=True) == []
    assert lab.get(f"{BASE}/{published.report}").status == 200


def test_a_body_that_refers_to_a_held_patient_is_registered_again(
    lab: Integrator, operator: Operator
) -> None:
    person = subject_of(lab.register(of("held", patient())))
    address = address_of(lab.register(referring("R-1", person)))
    operator.erase(address, allows_reuse=True)

    again = lab.register(referring("R-1", person))

    assert again.status == 201
    assert again.headers["location"].endswith(f"{address}/_history/3")


def test_reports_that_only_refer_to_a_patient_are_found_by_its_identifier(
    lab: Integrator, operator: Operator
) -> None:
    stating = lab.register(of("A", identified((NATIONAL, "1"))))
    held = address_of(lab.register(referring("B", subject_of(stating))))
    operator.erase(address_of(stating))

    found = resources_by_identifier(operator.service, lab, (NATIONAL, "1"))

    assert {f"{type_name}/{id_}" for id_, type_name in found.items()} == {held}


def test_a_reference_to_an_erased_patient_is_a_problem_of_the_body(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    kept = publish(lab, "R-2")
    operator.erase(published.report)

    registered = lab.register(referring("R-3", published.patient))
    revised = lab.request(
        "POST",
        f"{BASE}/{kept.report}/$revise",
        referring("R-2", published.patient),
        {"If-Match": "*"},
    )

    assert (registered.status, revised.status) == (400, 400)


def test_the_history_of_a_result_that_is_new_after_an_erasure_has_no_wrong_total(
    lab: Integrator, operator: Operator, published: Published
) -> None:
    operator.erase(published.report, allows_reuse=True)
    again = lab.register(panel("R-1", result("new", 7.5)))
    new = next(
        one["valueReference"]["reference"]
        for one in again.json["parameter"]
        if "valueReference" in one
    )
    body = panel("R-1", result("new", 8.5))
    revised = lab.request("POST", f"{BASE}/{published.report}/$revise", body, {"If-Match": "*"})
    assert revised.status == 200

    history = lab.get(f"{BASE}/{new}/_history").json

    assert len(history["entry"]) == 2
    assert history.get("total") in (None, 2)


def test_a_reader_of_the_file_stops_no_writer_and_keeps_the_order_open(tmp_path: Path) -> None:
    config = Config(storage=StorageConfig(deadline_seconds=4))
    with RunningService(tmp_path, config=config) as service:
        lab = service.integrator()
        operator, published = Operator(service, lab), publish(lab)
        with closing(sqlite3.connect(tmp_path / "fhirpub.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM version").fetchall()
            with ThreadPoolExecutor(1) as thread:
                erasing = thread.submit(operator.erase, published.report)
                slowest, meanwhile = 0.0, 0
                for number in range(20):
                    slowest = max(slowest, _time_of_registration(lab, number))
                    meanwhile += not erasing.done()
                erased = erasing.result()

        assert not erased.is_complete
        # And not until the deadline, whatever else makes a busy machine slow.
        assert slowest < 3 or meanwhile > 5
        assert len(operator.orders(unfinished=True)) == 1
        operator.erase(published.report)
        assert operator.orders(unfinished=True) == []


def _time_of_registration(lab: Integrator, number: int) -> float:
    begun = time.monotonic()
    assert lab.register(register_body(f"other-{number}")).status == 201
    return time.monotonic() - begun


def test_a_delivery_on_its_way_keeps_no_response(tmp_path: Path) -> None:
    config = Config(webhooks=SETTINGS)
    with Receiver() as receiver, RunningService(tmp_path, config=config) as service:
        lab = service.integrator()
        endpoint = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
        receiver.answer(Reply(status=200, echo=True))
        assert act(lab, endpoint, "verify").json["state"] == "active"
        receiver.answer(Reply(status=200, body=b"R-1 taken", delay=1.5))
        receiver.received.clear()
        published = publish(lab)
        receiver.wait(1)

        Operator(service, lab).erase(published.report)

        stored = service.call(service.services.store.scan_deliveries(limit=100))
        first = next(one for one in stored if one.event_type == "diagnostic_report.created")
        assert first.state == "delivered"
        assert first.attempts[-1].answer == b""


def test_a_delivery_that_was_sent_between_a_look_at_it_and_its_change_keeps_nothing(
    tmp_path: Path,
) -> None:
    with RunningService(tmp_path, config=Config(webhooks=SETTINGS)) as service:
        lab = service.integrator()
        published, delivery = publish_to_paused(service, lab)
        store = service.services.store

        def strip(body: bytes) -> bytes:
            """Let another process send the delivery, and store an echo of it, the first time."""
            if b"R-1" in body and not sent:
                sent.append(body)
                send_and_echo(tmp_path / "fhirpub.db", delivery)
            return without_details(body)

        sent: list[bytes] = []
        operator = Operator(service, lab)
        eraser = replace(operator.eraser, strip=strip)
        service.call(eraser.erase(operator.order(published.report)))

        kept, *_ = service.call(store.scan_deliveries())
        assert sent
        assert kept.event_id == delivery.event_id
        assert b"R-1" not in kept.body
        assert [attempt.answer for attempt in kept.attempts] == [b""]


def publish_to_paused(service: RunningService, lab: Integrator) -> tuple[Published, Delivery]:
    """Publish a report; return it, and its delivery, which the service does not send."""
    url = "http://127.0.0.1:1/"
    added = service.call(service.services.endpoints.add(lab.tenant.id, {"url": url}, trusted=True))
    assert act(lab, {"id": added.endpoint.id}, "pause").json["state"] == "paused"
    published, store = publish(lab), service.services.store
    assert wait_until(lambda: bool(service.call(store.scan_deliveries())))
    return published, service.call(store.scan_deliveries())[0]


def send_and_echo(file: Path, delivery: Delivery) -> None:
    """Do to a delivery what an attempt does that gets its body back."""
    now = now_ms() + 3_600_000  # later than whatever the service began before the pause
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        keys = json_pairs([delivery.key])
        (row,) = connection.execute(webhooks.BEGIN, (now, now + 60_000, keys)).fetchall()
        begun = delivery_of(row)
        attempt = replace(begun.attempts[-1], ended=now, status=500, answer=begun.body)
        outcome = AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=now)
        connection.execute(webhooks.FINISH, (json.dumps([outcome_row(outcome)]),))


class BegunBefore:
    """A store where an attempt begins after a look at its delivery, and ends after its change."""

    def __init__(self, store: Store, key: DeliveryKey) -> None:
        self._store = store
        self._key = key
        self.is_over = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def erase_deliveries(self, *arguments: Any) -> ErasedDeliveries:
        if self.is_over:
            return await self._store.erase_deliveries(*arguments)
        # Later than whatever the service began before it noticed that the endpoint is paused.
        self.is_over, now = True, now_ms() + 3_600_000
        (begun,) = await self._store.begin([self._key], now=now, until=now + 60_000)
        erased = await self._store.erase_deliveries(*arguments)
        attempt = replace(begun.attempts[-1], ended=now, status=500, answer=begun.body)
        outcome = AttemptResult(key=self._key, attempt=attempt, state="retrying", due=now)
        assert await self._store.finish([outcome]) == [True]
        return replace(erased, leased=0)


def test_a_response_that_comes_after_the_change_of_a_delivery_is_removed_too(
    tmp_path: Path, store_url: Callable[[str], str]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(base64.b64encode(os.urandom(32)).decode())
    config = Config(webhooks=replace(SETTINGS, keys_file=str(keys)))
    with RunningService(tmp_path, config=config, store_url=store_url("begun")) as service:
        lab = service.integrator()
        published, delivery = publish_to_paused(service, lab)
        store = service.services.store
        operator = Operator(service, lab)
        racing = BegunBefore(store, delivery.key)

        eraser = replace(operator.eraser, store=cast(Store, racing))
        service.call(eraser.erase(operator.order(published.report)))

        kept, *_ = service.call(store.scan_deliveries())
        assert racing.is_over
        assert {attempt.answer for attempt in kept.attempts} == {b""}


@pytest.fixture(scope="module")
def with_persons(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("persons")
    config = Config(patients=PatientsConfig(person_systems=[NATIONAL, HOSPITAL]))
    with RunningService(folder, config=config, store_url=store_url("persons")) as running:
        yield running


def resources_by_identifier(
    service: RunningService, lab: Integrator, identifier: tuple[str, str]
) -> dict[str, str]:
    """Return the types by the ids of what belongs to the Patients with an identifier."""
    tenant, context = lab.tenant, service.services.context

    async def find() -> dict[str, str]:
        patients = await patients_by_identifier(identifier, tenant=tenant, context=context)
        return (await resources_of(patients, tenant=tenant, context=context)).resources

    return service.call(find())


def test_all_reports_of_a_person_are_found_by_an_identifier(
    with_persons: RunningService,
) -> None:
    lab = with_persons.integrator()
    one, other = identified((NATIONAL, "1")), identified((NATIONAL, "2"))
    ours = [address_of(lab.register(of(value, one, result("hb")))) for value in ("A", "B")]
    theirs = address_of(lab.register(of("C", other)))
    found = resources_by_identifier(with_persons, lab, (NATIONAL, "1"))

    assert {f"{type_name}/{id_}" for id_, type_name in found.items()} == {*ours}
    operator = Operator(with_persons, lab)
    person = lab.get(f"{BASE}/{ours[0]}").json["subject"]["reference"]
    for address in ours:
        operator.erase(address)
    assert lab.get(f"{BASE}/{person}").status == 404
    assert lab.get(f"{BASE}/Patient?identifier={NATIONAL}|1").json["total"] == 0
    assert lab.get(f"{BASE}/{theirs}").status == 200


def test_patients_of_their_own_are_found_by_an_identifier_too(
    lab: Integrator, operator: Operator
) -> None:
    ours = [address_of(lab.register(of(v, identified((NATIONAL, "1"))))) for v in ("A", "B")]
    lab.register(of("C", identified((NATIONAL, "2"))))
    found = resources_by_identifier(operator.service, lab, (NATIONAL, "1"))

    assert {f"DiagnosticReport/{id_}" for id_ in found} == {*ours}


def test_the_statement_of_what_is_registered_again_is_that_of_the_person(
    with_persons: RunningService,
) -> None:
    lab = with_persons.integrator()
    one = identified((NATIONAL, "9"))
    address = address_of(lab.register(of("A", one)))
    Operator(with_persons, lab).erase(address, allows_reuse=True)

    assert lab.register(of("A", one)).status == 201

    person = lab.get(f"{BASE}/{address}").json["subject"]["reference"]
    read = lab.get(f"{BASE}/{person}")
    assert read.status == 200
    version = read.json["meta"]["versionId"]
    assert lab.get(f"{BASE}/{person}/_history/{version}").status == 200
    assert len(lab.get(f"{BASE}/{person}/_history").json["entry"]) == 1


def test_endpoints_get_an_event_and_earlier_ones_lose_their_details(tmp_path: Path) -> None:
    with (
        Receiver() as receiver,
        RunningService(tmp_path, config=Config(webhooks=SETTINGS)) as service,
    ):
        lab = service.integrator()
        endpoint = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
        receiver.answer(Reply(status=200, echo=True))
        assert act(lab, endpoint, "verify").json["state"] == "active"
        receiver.answer(Reply(status=200, body=b"R-1 taken"))
        receiver.received.clear()
        published = publish(lab)
        assert wait_until(lambda: "delivered" in states(lab, endpoint))

        Operator(service, lab).erase(published.report)

        event = receiver.wait(2)[-1].json
        assert event["event_type"] == "diagnostic_report.erased"
        assert event["data"].keys() == {"resource_type", "id", "version_id", "self"}
        assert event["data"]["id"] == published.report.partition("/")[2]
        stored = service.call(service.services.store.scan_deliveries(limit=100))
        ours = [delivery for delivery in stored if delivery.resource == published.report]
        assert len(ours) == 2
        assert not any(attempt.answer for attempt in ours[0].attempts)
        for delivery in ours:
            assert b"R-1" not in delivery.body


def test_an_erasure_reaches_a_copy_that_was_made_before(
    tmp_path: Path, service: RunningService, lab: Integrator, operator: Operator
) -> None:
    published = publish(lab)
    copy_to(tmp_path, service)
    operator.erase(published.report)

    copy_to(tmp_path, service)

    with RunningService(tmp_path) as copy:
        there = replace(lab, service=copy)
        there.log_in()
        assert there.get(f"{BASE}/{published.report}").status == 410
        assert there.get(f"{BASE}/{published.report}/_history/1").status == 410
        assert there.get(f"{BASE}/{published.members[0]}").status == 410
        assert there.register(register_body("R-1")).status == 409


def copy_to(folder: Path, service: RunningService) -> None:
    """Transfer the store of a service into a file in a folder."""

    async def copy() -> None:
        storage = replace(service.config.storage, url=f"sqlite:///{folder}/fhirpub.db")
        other = replace(service.config, storage=storage)
        async with open_store(service.config) as source, open_store(other) as target:
            await copying.transfer(source, target)

    asyncio.run(copy())
