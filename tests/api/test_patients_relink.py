"""Reports moved to another Patient (ADR 26)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.app.stores import open_store
from fhirpub.config.settings import PluginsConfig
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.interactions import reindex
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.interactions.patients.parts import PROVENANCE
from fhirpub.interactions.relinking import targets
from fhirpub.interactions.relinking.corrections import Target
from fhirpub.interactions.relinking.relink import Note, NotMovable, Relink, plan_relink, relink
from fhirpub.interactions.relinking.stranded import left_behind, refuse_stranded
from fhirpub.storage import transfer as copying
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import Hold
from fhirpub.testing.service import Integrator, RunningService
from tests.api.test_patients import (
    BASE,
    CONFIG,
    HOSPITAL,
    NATIONAL,
    identified,
    ids_in,
    named,
    of,
    subject_of,
)
from tests.api.test_patients_held import referring
from tests.bodies import patient
from tests.erasing import Operator
from tests.panels import result, specimen

NOTE = Note(operator="jmeier", reason="mistyped, ticket 812")
REPORTS = f"{BASE}/DiagnosticReport"


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("relink")
    with RunningService(folder, config=CONFIG, store_url=store_url("relink")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@dataclass
class Console:
    """What an operator does to the reports of one tenant."""

    service: RunningService
    lab: Integrator

    @property
    def _named(self) -> dict[str, Any]:
        return {"tenant": self.lab.tenant, "context": self.service.services.context}

    def person(self, system: str, value: str) -> Target:
        return targets.person_with(system, value, **self._named)

    def patient(self, patient_id: str) -> Target:
        return self.service.call(targets.known_patient(patient_id, **self._named))

    def apart(self, report_id: str) -> Target:
        return targets.apart(report_id, **self._named)

    def relink(self, report_id: str, target: Target, note: Note = NOTE) -> Relink:
        store = self.service.services.store
        return self.service.call(relink(report_id, target, note, store=store, **self._named))

    def plan(self, *report_ids: str, target: Target) -> list[Relink]:
        """Check the reports as the command does before it moves the first one."""

        async def plan() -> list[Relink]:
            planned = [await plan_relink(one, target, **self._named) for one in report_ids]
            await refuse_stranded(planned, **self._named)
            return planned

        return self.service.call(plan())

    def left_behind(self, moved: list[Relink]) -> list[tuple[str, list[str]]]:
        """Look once more, as the command does after it has moved the last one."""

        async def look() -> list[tuple[str, list[str]]]:
            return [one async for one in left_behind(moved, **self._named)]

        return self.service.call(look())

    def version(self, resource_id: str, number: int) -> Version:
        store, tenant = self.service.services.store, self.lab.tenant.id
        found = self.service.call(store.version(tenant, resource_id, number))
        assert found is not None
        return found


@pytest.fixture
def console(service: RunningService, lab: Integrator) -> Console:
    return Console(service, lab)


def id_of_report(lab: Integrator, value: str) -> str:
    (found,) = ids_in(lab.get(f"{REPORTS}?identifier={value}"))
    return found


def patient_of(lab: Integrator, report_id: str) -> str:
    """Return the id of the Patient that a report refers to."""
    reference: str = lab.get(f"{REPORTS}/{report_id}").json["subject"]["reference"]
    return reference.partition("/")[2]


@dataclass
class Mixed:
    """Two reports under one number; the second one is of another person."""

    first: str
    second: str
    patient: str


def second_body() -> dict[str, Any]:
    """Return the body of the second of the reports below."""
    bea = identified(
        (NATIONAL, "1"), (HOSPITAL, "b"), name=named("Birch", "Bea"), birthDate="1991-01-01"
    )
    bea["identifier"][0]["type"] = {"text": "national number"}
    return of("R-2", bea, result("hb"), result("wbc"), specimen())


@pytest.fixture
def mixed(lab: Integrator) -> Mixed:
    ada = identified((NATIONAL, "1"), name=named("Ashdown", "Ada"))
    subject_of(lab.register(of("R-1", ada, result("hb"))))
    subject = subject_of(lab.register(second_body()))
    return Mixed(id_of_report(lab, "R-1"), id_of_report(lab, "R-2"), subject.partition("/")[2])


def test_a_hold_on_the_former_patient_protects_a_report_that_was_moved(
    lab: Integrator, console: Console, mixed: Mixed
) -> None:
    console.relink(mixed.second, console.apart(mixed.second))
    assert patient_of(lab, mixed.second) != mixed.patient
    hold = Hold(
        tenant=lab.tenant.id,
        type="Patient",
        id=mixed.patient,
        since=1,
        operator="eve",
        reason="case 3",
    )
    operator = Operator(console.service, lab)
    console.service.call(operator.store.put_hold(hold))

    with pytest.raises(NotErasable, match="case 3"):
        operator.erase(f"DiagnosticReport/{mixed.second}")


class TestToAnIdentifier:
    """A mistyped identifier: the report moves to the person with the right one."""

    @pytest.fixture
    def right(self, console: Console, mixed: Mixed) -> str:
        moved = console.relink(mixed.second, console.person(NATIONAL, "2"))
        assert moved.is_needed
        return moved.after

    def test_the_report_refers_to_the_person_with_the_identifier(
        self, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        moved = lab.get(f"{REPORTS}/{mixed.second}").json

        assert right == subject_of(lab.register(of("R-3", identified((NATIONAL, "2")))))[8:]
        assert moved["meta"]["versionId"] == "2"
        assert moved["subject"] == {
            "reference": f"Patient/{right}",
            "identifier": {"system": NATIONAL, "value": "2"},
            "display": "Bea Birch",
        }

    def test_all_that_refers_to_the_patient_moves(
        self, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        for query, here, there in (
            ("DiagnosticReport?patient={}", 1, 1),
            ("DiagnosticReport?subject=Patient/{}", 1, 1),
            ("Observation?patient={}", 1, 2),
            ("Specimen?subject=Patient/{}", 0, 1),
        ):
            assert len(ids_in(lab.get(f"{BASE}/{query.format(mixed.patient)}"))) == here
            assert len(ids_in(lab.get(f"{BASE}/{query.format(right)}"))) == there

    def test_searches_by_identifier_move(self, lab: Integrator, mixed: Mixed, right: str) -> None:
        for kind, number in (("DiagnosticReport", 1), ("Observation", 2)):
            query = f"{BASE}/{kind}?patient.identifier={NATIONAL}|"
            assert len(ids_in(lab.get(f"{query}1"))) == 1
            assert len(ids_in(lab.get(f"{query}2"))) == number
        assert ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|1")) == [mixed.patient]
        assert ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|2")) == [right]

    def test_the_statement_keeps_what_was_published_but_the_identifier(
        self, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        now = lab.get(f"{BASE}/Patient/{right}").json

        assert now["name"] == named("Birch", "Bea")
        assert now["identifier"] == [
            {"type": {"text": "national number"}, "system": NATIONAL, "value": "2"},
            {"system": HOSPITAL, "value": "b"},
        ]
        assert now["meta"]["versionId"] == f"{mixed.second}.2"

    def test_the_old_patient_no_longer_shows_the_statement(
        self, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        address = f"{BASE}/Patient/{mixed.patient}"

        assert lab.get(address).json["name"] == named("Ashdown", "Ada")
        (entry,) = lab.get(f"{address}/_history").json["entry"]
        assert entry["resource"]["name"] == named("Ashdown", "Ada")
        assert ids_in(lab.get(f"{BASE}/Patient?birthdate=1991-01-01")) == [right]
        assert ids_in(lab.get(f"{BASE}/Patient?birthdate=1980-02-29")) == [mixed.patient]

    def test_what_was_published_stays_readable(
        self, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        stated = lab.get(f"{BASE}/Patient/{mixed.patient}/_history/{mixed.second}.1").json
        published = lab.get(f"{REPORTS}/{mixed.second}/_history/1").json

        assert stated["name"] == named("Birch", "Bea")
        assert stated["identifier"][0]["value"] == "1"
        assert published["subject"]["reference"] == f"Patient/{mixed.patient}"
        corrected = lab.get(f"{BASE}/Patient/{right}/_history/{mixed.second}.2")
        assert corrected.json == lab.get(f"{BASE}/Patient/{right}").json

    def test_the_new_patient_has_one_statement(self, lab: Integrator, right: str) -> None:
        (entry,) = lab.get(f"{BASE}/Patient/{right}/_history").json["entry"]

        assert entry["resource"]["id"] == right

    def test_includes_lead_to_the_new_patient(
        self, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        for included in ("DiagnosticReport:patient", "*"):
            answer = lab.get(f"{REPORTS}?_id={mixed.second}&_include={included}")
            kinds = [entry["resource"] for entry in answer.json["entry"]]
            patients = [one["id"] for one in kinds if one["resourceType"] == "Patient"]
            assert patients == [right]
        query = "_revinclude=DiagnosticReport:patient&_revinclude=Observation:patient"
        for patient_id, number in ((right, 4), (mixed.patient, 3)):
            answer = lab.get(f"{BASE}/Patient?_id={patient_id}&{query}")
            assert len(answer.json["entry"]) == number

    def test_the_organization_stays(self, lab: Integrator, mixed: Mixed, right: str) -> None:
        assert right
        reference = lab.get(f"{REPORTS}/{mixed.second}").json["performer"][0]["reference"]

        assert lab.get(f"{BASE}/{reference}").status == 200
        found = lab.get(f"{REPORTS}?_id={mixed.second}&_include=DiagnosticReport:performer")
        assert len(found.json["entry"]) == 2

    def test_an_update_keeps_the_new_patient(
        self, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        body = {"resourceType": "DiagnosticReport", "status": "amended"}
        assert lab.patch(f"{REPORTS}/{mixed.second}", body).status == 204

        assert patient_of(lab, mixed.second) == right
        assert ids_in(lab.get(f"{REPORTS}?patient={right}")) == [mixed.second]
        assert ids_in(lab.get(f"{REPORTS}?patient.identifier={NATIONAL}|1")) == [mixed.first]
        assert ids_in(lab.get(f"{REPORTS}?patient.identifier={NATIONAL}|2")) == [mixed.second]
        assert lab.get(f"{BASE}/Patient/{right}").json["name"] == named("Birch", "Bea")

    def test_a_repeated_registration_is_answered_as_before(
        self, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        assert subject_of(lab.register(second_body())) == f"Patient/{mixed.patient}"
        assert patient_of(lab, mixed.second) == right

    def test_relinking_again_stores_nothing(
        self, console: Console, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        again = console.relink(mixed.second, console.person(NATIONAL, "2"))

        assert (again.is_needed, again.version, again.before) == (False, 2, right)
        assert lab.get(f"{REPORTS}/{mixed.second}").json["meta"]["versionId"] == "2"

    def test_a_second_relink_starts_from_what_was_published(
        self, console: Console, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        assert right
        console.relink(mixed.second, console.apart(mixed.second))
        moved = console.relink(mixed.second, console.person(NATIONAL, "3"))

        now = lab.get(f"{BASE}/Patient/{moved.after}").json
        assert [one["value"] for one in now["identifier"]] == ["3", "b"]
        assert moved.version == 4
        assert lab.get(f"{BASE}/Patient/{right}").status == 404
        assert lab.get(f"{BASE}/Patient/{right}/_history/{mixed.second}.2").status == 200

    def test_it_can_be_moved_back(
        self, console: Console, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        console.relink(mixed.second, console.person(NATIONAL, "1"))

        assert patient_of(lab, mixed.second) == mixed.patient
        assert lab.get(f"{BASE}/Patient/{mixed.patient}").json["name"] == named("Birch", "Bea")
        assert len(lab.get(f"{BASE}/Patient/{mixed.patient}/_history").json["entry"]) == 2
        assert lab.get(f"{BASE}/Patient/{right}").status == 404

    def test_who_moved_it_and_why_is_stored_and_not_served(
        self, console: Console, lab: Integrator, mixed: Mixed, right: str
    ) -> None:
        version = console.version(mixed.second, 2)
        provenance = loads_stored(version.parts)[PROVENANCE]

        assert provenance["reason"] == [{"text": NOTE.reason}]
        assert provenance["agent"] == [{"who": {"display": NOTE.operator}}]
        assert provenance["target"] == [
            {"reference": f"DiagnosticReport/{mixed.second}/_history/2"},
            {"reference": f"Patient/{right}/_history/{mixed.second}.2"},
        ]
        assert provenance["entity"][0]["what"]["reference"] == f"Patient/{mixed.patient}"
        for path in (f"Patient/{right}", f"DiagnosticReport/{mixed.second}/_history"):
            assert NOTE.operator not in lab.get(f"{BASE}/{path}").body.decode()

    def test_an_event_names_what_changed(self, console: Console, mixed: Mixed, right: str) -> None:
        assert right
        version = console.version(mixed.second, 2)
        (event,) = loads_stored(version.events)

        assert event["type"] == "diagnostic_report.updated"
        assert event["id"] == f"{mixed.second}.2.1"
        assert len(event["data"]["changed"]) == 3
        assert "_provenance" not in version.events.decode()


def test_an_identifier_that_decides_before_the_new_one_goes(
    console: Console, lab: Integrator, mixed: Mixed
) -> None:
    moved = console.relink(mixed.second, console.person(HOSPITAL, "c"))

    now = lab.get(f"{BASE}/Patient/{moved.after}").json
    assert now["identifier"] == [{"system": HOSPITAL, "value": "c"}]


def test_a_system_that_is_not_declared_is_refused(console: Console) -> None:
    with pytest.raises(NotMovable, match=f"no system of .* which has {NATIONAL}, {HOSPITAL}"):
        console.person("https://other.example", "1")


class TestApart:
    """Two persons under one identifier: the reports of one move apart, to share a Patient."""

    def test_a_report_gets_a_patient_without_identifiers_of_persons(
        self, console: Console, lab: Integrator, mixed: Mixed
    ) -> None:
        moved = console.relink(mixed.second, console.apart(mixed.second))

        apart = lab.get(f"{BASE}/Patient/{moved.after}")
        assert apart.json["name"] == named("Birch", "Bea")
        assert "identifier" not in apart.json
        assert apart.json["meta"]["versionId"] == f"{mixed.second}.2"
        assert len(lab.get(f"{BASE}/Patient/{moved.after}/_history").json["entry"]) == 1
        assert lab.get(f"{BASE}/Patient/{moved.after}/_history/{mixed.second}.2").status == 200
        assert ids_in(lab.get(f"{BASE}/Patient?birthdate=1991-01-01")) == [moved.after]
        assert ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|1")) == [mixed.patient]
        assert ids_in(lab.get(f"{REPORTS}?patient={moved.after}")) == [mixed.second]

    def test_further_reports_can_share_it(
        self, console: Console, lab: Integrator, mixed: Mixed
    ) -> None:
        bea = identified((NATIONAL, "1"), name=named("Birch", "Beatrice"))
        lab.register(of("R-3", bea))
        third = id_of_report(lab, "R-3")
        apart = console.relink(mixed.second, console.apart(mixed.second)).after
        console.relink(third, console.patient(apart))

        assert sorted(ids_in(lab.get(f"{REPORTS}?patient={apart}"))) == sorted(
            [mixed.second, third]
        )
        assert lab.get(f"{BASE}/Patient/{apart}").json["name"] == named("Birch", "Beatrice")
        assert len(lab.get(f"{BASE}/Patient/{apart}/_history").json["entry"]) == 2
        assert lab.get(f"{BASE}/Patient/{mixed.patient}").json["name"] == named("Ashdown", "Ada")

    def test_a_report_with_a_patient_of_its_own_gets_one_that_can_be_shared(
        self, console: Console, lab: Integrator
    ) -> None:
        for value in ("R-1", "R-2"):
            lab.register(of(value, patient()))
        first, second = (id_of_report(lab, value) for value in ("R-1", "R-2"))
        own = patient_of(lab, first)
        with pytest.raises(NotMovable, match="--apart"):
            console.patient(own)
        apart = console.relink(first, console.apart(first)).after
        console.relink(second, console.patient(apart))

        assert len(ids_in(lab.get(f"{REPORTS}?patient={apart}"))) == 2
        assert lab.get(f"{BASE}/Patient/{apart}").json["identifier"] == patient()["identifier"]
        assert lab.get(f"{BASE}/Patient/{own}").status == 404
        assert lab.get(f"{BASE}/Patient/{own}/_history").status == 404
        assert lab.get(f"{BASE}/Patient/{own}/_history/1").json["id"] == own
        assert ids_in(lab.get(f"{BASE}/Patient?_id={own}")) == []
        assert ids_in(lab.get(f"{REPORTS}?patient={own}")) == []
        assert ids_in(lab.get(f"{BASE}/Patient?birthdate=1980-02-29")) == [apart]

    def test_an_updated_report_still_has_its_own_patient(self, lab: Integrator) -> None:
        lab.register(of("R-1", patient()))
        first = id_of_report(lab, "R-1")
        body = {"resourceType": "DiagnosticReport", "status": "amended"}
        assert lab.patch(f"{REPORTS}/{first}", body).status == 204

        assert lab.get(f"{BASE}/Patient/{patient_of(lab, first)}").status == 200


class TestToAPatient:
    """A report moves to a Patient that exists, and takes its identifiers."""

    def test_the_statement_has_the_identifiers_of_that_person(
        self, console: Console, lab: Integrator, mixed: Mixed
    ) -> None:
        right = subject_of(lab.register(of("R-3", identified((NATIONAL, "2"), (HOSPITAL, "h")))))
        moved = console.relink(mixed.second, console.patient(right[8:]))

        assert f"Patient/{moved.after}" == right
        now = lab.get(f"{BASE}/{right}").json
        assert now["name"] == named("Birch", "Bea")
        assert [one["value"] for one in now["identifier"]] == ["2", "h"]
        assert now["identifier"][0]["type"] == {"text": "national number"}

    def test_a_patient_that_nothing_is_known_of_is_refused(
        self, console: Console, mixed: Mixed
    ) -> None:
        console.relink(mixed.second, console.person(NATIONAL, "2"))
        emptied = console.relink(mixed.second, console.person(NATIONAL, "1")).before

        with pytest.raises(Exception, match="was not found"):
            console.patient(emptied)


def test_a_report_that_came_during_a_move_is_named_and_can_be_moved(
    console: Console, lab: Integrator
) -> None:
    subject = subject_of(lab.register(of("R-1", identified((NATIONAL, "1")))))
    target = console.person(NATIONAL, "2")
    first = id_of_report(lab, "R-1")
    planned = console.plan(first, target=target)
    assert subject_of(lab.register(referring("R-2", subject, result("hb")))) == subject
    console.relink(first, target)
    second = id_of_report(lab, "R-2")

    assert console.left_behind(planned) == [(subject[8:], [f"DiagnosticReport/{second}"])]
    assert lab.get(f"{BASE}/{subject}").status == 404
    console.relink(second, target)
    assert patient_of(lab, second) == target.id
    assert len(ids_in(lab.get(f"{BASE}/Observation?subject=Patient/{target.id}"))) == 1
    assert console.left_behind(planned) == []


class TestRefusals:
    """What cannot be moved is named before anything is moved."""

    def test_a_report_of_another_tenant_is_unknown(
        self, service: RunningService, mixed: Mixed
    ) -> None:
        other = Console(service, service.integrator())
        with pytest.raises(NotMovable, match="has no report"):
            other.relink(mixed.second, other.person(NATIONAL, "2"))

    def test_a_result_moves_only_with_its_report(
        self, console: Console, lab: Integrator, mixed: Mixed
    ) -> None:
        (observation, *_) = ids_in(lab.get(f"{BASE}/Observation?patient={mixed.patient}"))

        with pytest.raises(NotMovable, match="together with that one"):
            console.relink(observation, console.person(NATIONAL, "2"))

    def test_what_refers_to_a_patient_is_not_left_without_it(
        self, console: Console, lab: Integrator
    ) -> None:
        subject = subject_of(lab.register(of("R-1", identified((NATIONAL, "1")))))
        assert subject_of(lab.register(referring("R-2", subject))) == subject
        first, second = (id_of_report(lab, value) for value in ("R-1", "R-2"))
        target = console.person(NATIONAL, "2")

        with pytest.raises(NotMovable, match=f"DiagnosticReport/{second} would stay"):
            console.plan(first, target=target)
        assert [one.states for one in console.plan(first, second, target=target)] == [True, False]
        console.relink(second, target)
        console.plan(first, target=target)
        assert lab.get(f"{BASE}/Patient/{target.id}").json["identifier"][0]["value"] == "2"


class TestMembers:
    """Only results that refer to the patient get a next version."""

    def test_what_refers_to_nobody_stays_as_it_is(self, console: Console, lab: Integrator) -> None:
        ofnobody = result("wbc", subject=None)
        lab.register(of("R-1", identified((NATIONAL, "1")), result("hb"), ofnobody))
        moved = console.relink(id_of_report(lab, "R-1"), console.person(NATIONAL, "2"))

        addresses = [one["reference"] for one in lab.get(f"{REPORTS}/{moved.id}").json["result"]]
        read = [lab.get(f"{BASE}/{address}").json for address in addresses]
        assert [one["meta"]["versionId"] for one in read] == ["2", "1"]
        assert read[0]["subject"] == {"reference": f"Patient/{moved.after}"}
        for value in ("1", "2"):
            query = f"Observation?patient.identifier={NATIONAL}|{value}"
            assert ids_in(lab.get(f"{BASE}/{query}")) == [read[0]["id"]][: int(value) - 1]

    def test_a_generated_narrative_does_not_go_on_showing_the_old_patient(
        self, console: Console, lab: Integrator
    ) -> None:
        div = '<div xmlns="http://www.w3.org/1999/xhtml">Number 1</div>'
        text = {"status": "generated", "div": div}
        body = of("R-1", identified((NATIONAL, "1"), text=text), result("hb", text=text))
        body["parameter"][2]["resource"]["text"] = text
        lab.register(body)
        moved = console.relink(id_of_report(lab, "R-1"), console.person(NATIONAL, "2"))

        changed = lab.get(f"{REPORTS}/{moved.id}").json
        for address in (
            f"DiagnosticReport/{moved.id}",
            f"Patient/{moved.after}",
            changed["result"][0]["reference"],
        ):
            assert "text" not in lab.get(f"{BASE}/{address}").json
        kept = lab.get(f"{REPORTS}/{moved.id}/_history/1").json
        assert kept["text"]["status"] == "generated"


def test_a_relink_that_races_with_updates_loses_nothing(
    console: Console, lab: Integrator, mixed: Mixed
) -> None:
    begin = threading.Barrier(5)
    address = f"{REPORTS}/{mixed.second}"

    def update(_number: int) -> int:
        begin.wait()
        return lab.patch(address, {"resourceType": "DiagnosticReport", "status": "amended"}).status

    def move() -> Relink:
        begin.wait()
        return console.relink(mixed.second, console.person(NATIONAL, "2"))

    with ThreadPoolExecutor(5) as pool:
        moving = pool.submit(move)
        statuses = list(pool.map(update, range(4)))

    now = lab.get(address).json
    assert statuses == [204] * 4
    assert now["subject"]["reference"] == f"Patient/{moving.result().after}"
    assert (now["status"], now["meta"]["versionId"]) == ("amended", "6")
    history = lab.get(f"{address}/_history?_count=100").json["entry"]
    assert len(history) == 6
    assert ids_in(lab.get(f"{REPORTS}?patient={moving.result().after}")) == [mixed.second]


def test_reindexing_yields_the_same_values(
    service: RunningService, console: Console, lab: Integrator, mixed: Mixed
) -> None:
    console.relink(mixed.second, console.person(NATIONAL, "2"))
    body = {"resourceType": "DiagnosticReport", "status": "amended"}
    assert lab.patch(f"{REPORTS}/{mixed.second}", body).status == 204
    console.relink(mixed.second, console.apart(mixed.second))
    services = service.services

    async def values() -> dict[tuple[str, int], bytes]:
        found: dict[tuple[str, int], bytes] = {}
        for owner in (mixed.first, mixed.second):
            for _tenant, one in await services.store.scan(after=(owner, 0), limit=4):
                if one.id == owner:
                    every = (one, *one.members)
                    found |= {(each.id, each.version): sorted_values(each) for each in every}
        return found

    async def reindexed() -> None:
        await services.store.put_search_rules("")
        await reindex.reindex_if_needed(services.store, services.context.searched)

    before = service.call(values())
    spoiled = services.store.replace_search
    service.call(spoiled(lab.tenant.id, mixed.second, 2, b"[]"))
    assert service.call(values()) != before
    service.call(reindexed())

    assert service.call(values()) == before
    assert len(before) == 15


def sorted_values(version: Version) -> bytes:
    return b"\n".join(sorted(repr(one).encode() for one in loads_stored(version.search)))


def test_a_transfer_copies_moved_reports(
    service: RunningService, console: Console, lab: Integrator, mixed: Mixed, tmp_path: Path
) -> None:
    moved = console.relink(mixed.second, console.person(NATIONAL, "2"))
    file = replace(CONFIG.storage, url=f"sqlite:///{tmp_path}/copy.db")

    async def copied() -> Version | None:
        async with open_store(replace(CONFIG, storage=file)) as target:
            await copying.transfer(
                service.services.store, target, on_progress=lambda _progress: None
            )
            return await target.version(lab.tenant.id, mixed.second, 2)

    assert service.call(copied()) == console.version(mixed.second, 2)
    other = RunningService(tmp_path, config=CONFIG, store_url=file.url)
    with other:
        reader = other.another_client(lab.tenant)
        address = f"{BASE}/Patient/{moved.after}"
        assert reader.get(address).json == lab.get(address).json
        assert ids_in(reader.get(f"{REPORTS}?patient={moved.after}")) == [mixed.second]


def test_a_report_that_nobody_published_is_named(console: Console) -> None:
    with pytest.raises(NotMovable, match="has no report"):
        console.relink("00000000-0000-4000-8000-000000000000", console.person(NATIONAL, "2"))


def test_a_revision_keeps_the_new_patient(console: Console, lab: Integrator, mixed: Mixed) -> None:
    moved = console.relink(mixed.second, console.person(NATIONAL, "2"))
    body = second_body()
    body["parameter"][3]["resource"]["valueQuantity"]["value"] = 9.9
    revised = lab.request("POST", f"{REPORTS}/{mixed.second}/$revise", body, {"If-Match": "*"})

    assert revised.status == 200, revised.body
    assert patient_of(lab, mixed.second) == moved.after
    assert len(ids_in(lab.get(f"{BASE}/Observation?patient={moved.after}"))) == 2
    assert ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|2")) == [moved.after]
    again = console.relink(mixed.second, console.person(NATIONAL, "3"))
    assert len(ids_in(lab.get(f"{BASE}/Observation?patient={again.after}"))) == 2


def test_another_type_moves_and_its_events_keep_their_author(
    tmp_path: Path, store_url: Callable[[str], str]
) -> None:
    config = replace(CONFIG, plugins=PluginsConfig(enabled=["servicerequest"]))
    with RunningService(tmp_path, config=config, store_url=store_url("relinkehr")) as running:
        lab = running.integrator()
        console = Console(running, lab)
        declared = running.services.context.types["ServiceRequest"]
        sent = [(declared.entry_name, declared.example)]
        sent += [(part.name, part.example) for part in declared.parts]
        entries = [{"name": name, "resource": resource} for name, resource in sent]
        body = {"resourceType": "Parameters", "parameter": entries}
        answer = lab.register(body, type_name="ServiceRequest")
        assert answer.status == 201, answer.body
        request = answer.json["parameter"][0]["resource"]["id"]
        moved = console.relink(request, console.person(NATIONAL, "2"))
        change = {"resourceType": "ServiceRequest", "status": "completed"}
        patched = lab.patch(f"{BASE}/ServiceRequest/{request}", change)
        assert patched.status == 204, patched.body
        authors = [
            loads_stored(console.version(request, number).events)[0]["data"]["author"]
            for number in (1, 2, 3)
        ]

        assert authors[0]
        assert authors == authors[:1] * 3
        assert ids_in(lab.get(f"{BASE}/ServiceRequest?patient={moved.after}")) == [request]
