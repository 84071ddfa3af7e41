"""One Patient for one person: read, found, and what refers to it (ADR 26)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.patients import PatientsConfig
from fhirpub.config.settings import Config
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import patient, register_body
from tests.panels import panel, result, specimen

BASE = "/fhir/r4"
NATIONAL, HOSPITAL = "https://registry.example/persons", "https://hospital.example/mrn"
CONFIG = Config(patients=PatientsConfig(person_systems=[NATIONAL, HOSPITAL]))
UNKNOWN = "00000000-0000-8000-8000-000000000000"


def identified(*identifiers: tuple[str, str], **changes: Any) -> dict[str, Any]:
    """Return a patient with these identifiers, each a system and a value."""
    every = [{"system": system, "value": value} for system, value in identifiers]
    return patient(identifier=every, **changes)


def named(family: str, *given: str) -> list[dict[str, Any]]:
    return [{"family": family, "given": [*given]}]


def subject_of(answer: Answer) -> str:
    """Return the address of the patient of a registered report."""
    assert answer.status == 201, answer.body
    reference: str = answer.json["parameter"][0]["resource"]["subject"]["reference"]
    return reference


def of(value: str, one: dict[str, Any], *entries: dict[str, Any]) -> dict[str, Any]:
    """Return a body of ``$register`` with this patient."""
    body = panel(value, *entries)
    body["parameter"][0]["resource"] = one
    return body


def issues_of(answer: Answer) -> list[dict[str, Any]]:
    issues: list[dict[str, Any]] = answer.json["parameter"][-1]["resource"]["issue"]
    return issues


def code_of(issue: dict[str, Any]) -> str:
    code: str = issue["details"]["coding"][0]["code"]
    return code


def ids_in(answer: Answer) -> list[str]:
    """Return the ids of the matches of a search."""
    assert answer.status == 200, answer.body
    entries = answer.json.get("entry", [])
    return [entry["resource"]["id"] for entry in entries if entry["search"]["mode"] == "match"]


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("patients")
    with RunningService(folder, config=CONFIG, store_url=store_url("patients")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator()


def test_reports_with_the_same_identifier_share_a_patient(lab: Integrator) -> None:
    first = subject_of(lab.register(of("R-1", identified((NATIONAL, "1")))))
    second = subject_of(lab.register(of("R-2", identified((NATIONAL, "1"), (HOSPITAL, "x")))))
    other = subject_of(lab.register(of("R-3", identified((NATIONAL, "2")))))

    assert first == second != other


def test_the_systems_decide_in_the_order_of_preference(lab: Integrator) -> None:
    both = subject_of(lab.register(of("R-1", identified((HOSPITAL, "x"), (NATIONAL, "1")))))
    hospital = subject_of(lab.register(of("R-2", identified((HOSPITAL, "x")))))
    national = subject_of(lab.register(of("R-3", identified((NATIONAL, "1")))))

    assert both == national != hospital


@pytest.mark.parametrize(
    "identifiers",
    [[], [("https://other.example", "1")], [(NATIONAL, "1"), (NATIONAL, "2")]],
    ids=["none", "of another system", "two in one system"],
)
def test_a_patient_that_no_identifier_stands_for_belongs_to_its_report(
    lab: Integrator, identifiers: list[tuple[str, str]]
) -> None:
    one = identified(*identifiers) if identifiers else patient(identifier=None)
    first = subject_of(lab.register(of("R-1", one)))
    second = subject_of(lab.register(of("R-2", one)))

    assert first != second
    assert lab.get(f"{BASE}/{first}").json["meta"]["versionId"] == "1"


def test_an_identifier_of_former_times_does_not_count(lab: Integrator) -> None:
    former = {"use": "old", "system": NATIONAL, "value": "1"}
    current = {"system": NATIONAL, "value": "2"}
    renumbered = subject_of(lab.register(of("R-1", patient(identifier=[former, current]))))

    assert renumbered == subject_of(lab.register(of("R-2", identified((NATIONAL, "2")))))
    assert renumbered != subject_of(lab.register(of("R-3", identified((NATIONAL, "1")))))


def test_tenants_share_no_patient(service: RunningService) -> None:
    one, other = service.integrator(), service.integrator()
    mine = subject_of(one.register(of("R-1", identified((NATIONAL, "1")))))

    assert mine != subject_of(other.register(of("R-1", identified((NATIONAL, "1")))))
    assert other.get(f"{BASE}/{mine}").status == 404
    assert other.get(f"{BASE}/{mine}/_history").status == 404
    assert ids_in(other.get(f"{BASE}/Patient?_id={mine.partition('/')[2]}")) == []


class TestDoubts:
    """What does not say which person a patient is causes a warning, and merges nothing."""

    def test_two_identifiers_in_a_system_are_named(self, lab: Integrator) -> None:
        answer = lab.register(of("R-1", identified((NATIONAL, "1"), (NATIONAL, "2"))))

        (issue,) = [one for one in issues_of(answer) if code_of(one) == "person-ambiguous"]
        assert issue["severity"] == "warning"
        assert issue["expression"] == ["Parameters.parameter[0].resource.identifier"]
        assert NATIONAL in issue["diagnostics"]

    def test_an_identifier_of_another_patient_is_named(self, lab: Integrator) -> None:
        first = subject_of(lab.register(of("R-1", identified((NATIONAL, "1"), (HOSPITAL, "x")))))
        answer = lab.register(of("R-2", identified((NATIONAL, "2"), (HOSPITAL, "x"))))

        (issue,) = [one for one in issues_of(answer) if code_of(one) == "person-conflict"]
        assert subject_of(answer) != first
        assert first in issue["diagnostics"]
        assert "x" not in issue["diagnostics"].replace("example", "").split()

    def test_a_patient_known_by_a_further_system_alone_is_named(self, lab: Integrator) -> None:
        first = subject_of(lab.register(of("R-1", identified((NATIONAL, "1"), (HOSPITAL, "x")))))
        answer = lab.register(of("R-2", identified((HOSPITAL, "x"))))

        (issue,) = [one for one in issues_of(answer) if code_of(one) == "person-conflict"]
        assert first in issue["diagnostics"]

    def test_the_same_person_again_is_no_conflict(self, lab: Integrator) -> None:
        for value in ("R-1", "R-2"):
            answer = lab.register(of(value, identified((NATIONAL, "1"), (HOSPITAL, "x"))))

            assert "person-conflict" not in [code_of(one) for one in issues_of(answer)]

    def test_of_very_many_identifiers_few_are_looked_up(self, lab: Integrator) -> None:
        many = [(HOSPITAL, str(number)) for number in range(40)]
        lab.register(of("R-1", identified((NATIONAL, "1"), *many)))
        answer = lab.register(of("R-2", identified((NATIONAL, "2"), *many)))

        codes = [code_of(one) for one in issues_of(answer)]
        assert 0 < codes.count("person-conflict") < 20

    def test_a_repetition_returns_the_same_warning(self, lab: Integrator) -> None:
        lab.register(of("R-1", identified((NATIONAL, "1"), (HOSPITAL, "x"))))
        body = of("R-2", identified((NATIONAL, "2"), (HOSPITAL, "x")))

        assert lab.register(body).body == lab.register(body).body


class TestReading:
    """A patient is what was last published about it; its history is all that was."""

    @pytest.fixture
    def subject(self, lab: Integrator) -> str:
        """The address of a person who married between two reports."""
        maiden = identified((NATIONAL, "1"), name=named("Ashdown", "Juniper"))
        married = identified((NATIONAL, "1"), name=named("Tillery", "Juniper"))
        lab.register(of("R-1", maiden))
        return subject_of(lab.register(of("R-2", married)))

    def test_the_last_statement_is_read(self, lab: Integrator, subject: str) -> None:
        read = lab.get(f"{BASE}/{subject}")

        assert read.json["name"][0]["family"] == "Tillery"
        assert f"Patient/{read.json['id']}" == subject
        assert read.headers["etag"] == f'W/"{read.json["meta"]["versionId"]}"'

    def test_a_version_is_named_by_the_report_that_stated_it(
        self, lab: Integrator, subject: str
    ) -> None:
        report = ids_in(lab.get(f"{BASE}/DiagnosticReport?identifier=R-1"))[0]
        stated = lab.get(f"{BASE}/{subject}/_history/{report}.1")

        assert stated.json["name"][0]["family"] == "Ashdown"
        assert stated.json["meta"]["versionId"] == f"{report}.1"
        assert f"Patient/{stated.json['id']}" == subject

    @pytest.mark.parametrize(
        "version", ["1", f"{UNKNOWN}.1", "x.1", "{report}.2", "{report}", "{report}.01"]
    )
    def test_another_version_is_not_found(
        self, lab: Integrator, subject: str, version: str
    ) -> None:
        report = ids_in(lab.get(f"{BASE}/DiagnosticReport?identifier=R-1"))[0]
        address = f"{BASE}/{subject}/_history/{version.format(report=report)}"

        assert lab.get(address).status == 404

    def test_a_statement_about_another_person_is_no_version(
        self, lab: Integrator, subject: str
    ) -> None:
        lab.register(of("R-3", identified((NATIONAL, "3"))))
        other = ids_in(lab.get(f"{BASE}/DiagnosticReport?identifier=R-3"))[0]

        assert lab.get(f"{BASE}/{subject}/_history/{other}.1").status == 404

    def test_the_history_has_every_statement_newest_first(
        self, lab: Integrator, subject: str
    ) -> None:
        entries = lab.get(f"{BASE}/{subject}/_history").json["entry"]

        families = [entry["resource"]["name"][0]["family"] for entry in entries]
        assert families == ["Tillery", "Ashdown"]
        versions = [entry["response"]["etag"] for entry in entries]
        assert versions == [f'W/"{one["resource"]["meta"]["versionId"]}"' for one in entries]

    def test_the_history_is_read_in_pages(self, lab: Integrator, subject: str) -> None:
        first = lab.get(f"{BASE}/{subject}/_history?_count=1").json
        following = next(link["url"] for link in first["link"] if link["relation"] == "next")
        second = lab.get(following[following.index("/fhir") :]).json

        families = [one["entry"][0]["resource"]["name"][0]["family"] for one in (first, second)]
        assert families == ["Tillery", "Ashdown"]
        assert [link["relation"] for link in second["link"]] == ["self"]

    def test_an_update_of_an_older_report_is_no_statement(
        self, lab: Integrator, subject: str
    ) -> None:
        report = ids_in(lab.get(f"{BASE}/DiagnosticReport?identifier=R-1"))[0]
        patched = lab.patch(
            f"{BASE}/DiagnosticReport/{report}",
            {"resourceType": "DiagnosticReport", "status": "amended"},
        )

        assert patched.status == 204
        assert lab.get(f"{BASE}/{subject}").json["name"][0]["family"] == "Tillery"
        assert len(lab.get(f"{BASE}/{subject}/_history").json["entry"]) == 2

    def test_a_repeated_registration_is_no_statement(self, lab: Integrator, subject: str) -> None:
        maiden = identified((NATIONAL, "1"), name=named("Ashdown", "Juniper"))
        lab.register(of("R-1", maiden))

        assert lab.get(f"{BASE}/{subject}").json["name"][0]["family"] == "Tillery"

    def test_a_client_that_has_the_version_gets_304(self, lab: Integrator, subject: str) -> None:
        tag = lab.get(f"{BASE}/{subject}").headers["etag"]

        assert lab.get(f"{BASE}/{subject}", **{"If-None-Match": tag}).status == 304
        lab.register(of("R-4", identified((NATIONAL, "1"))))
        assert lab.get(f"{BASE}/{subject}", **{"If-None-Match": tag}).status == 200

    def test_a_person_that_nobody_published_is_not_found(self, lab: Integrator) -> None:
        assert lab.get(f"{BASE}/Patient/{UNKNOWN}").status == 404
        assert lab.get(f"{BASE}/Patient/{UNKNOWN}/_history").status == 404
        assert lab.get(f"{BASE}/Patient/nobody").status == 404


class TestEverythingOfAPerson:
    """What refers to a person is found by the id that the identifier leads to."""

    @pytest.fixture
    def person(self, lab: Integrator) -> str:
        """The id of a person with two reports, one of them with results."""
        one = identified((NATIONAL, "1"))
        lab.register(of("R-1", one, result("hb"), result("wbc", 6.1), specimen()))
        lab.register(of("R-2", one))
        lab.register(of("R-3", identified((NATIONAL, "2")), result("hb")))
        (found,) = ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|1"))
        return found

    @pytest.mark.parametrize(
        ("query", "number"),
        [
            ("DiagnosticReport?patient={}", 2),
            ("DiagnosticReport?subject=Patient/{}", 2),
            ("Observation?patient={}", 2),
            ("Observation?subject=Patient/{}", 2),
            ("Specimen?patient={}", 1),
        ],
    )
    def test_all_types_are_found(
        self, lab: Integrator, person: str, query: str, number: int
    ) -> None:
        assert len(ids_in(lab.get(f"{BASE}/{query.format(person)}"))) == number

    def test_a_search_includes_the_patient_once(self, lab: Integrator, person: str) -> None:
        found = lab.get(f"{BASE}/DiagnosticReport?patient={person}&_include=*").json["entry"]

        patients = [
            entry["resource"]["id"]
            for entry in found
            if entry["resource"]["resourceType"] == "Patient"
        ]
        assert patients == [person]

    def test_a_search_for_the_patient_includes_what_refers_to_it(
        self, lab: Integrator, person: str
    ) -> None:
        found = lab.get(
            f"{BASE}/Patient?_id={person}&_revinclude=DiagnosticReport:patient"
            "&_revinclude=Observation:subject"
        ).json["entry"]

        kinds = [entry["resource"]["resourceType"] for entry in found]
        assert sorted(kinds) == ["DiagnosticReport"] * 2 + ["Observation"] * 2 + ["Patient"]

    def test_an_update_keeps_a_report_with_its_person(self, lab: Integrator, person: str) -> None:
        for report in ids_in(lab.get(f"{BASE}/DiagnosticReport?patient={person}")):
            body = {"resourceType": "DiagnosticReport", "status": "amended"}
            assert lab.patch(f"{BASE}/DiagnosticReport/{report}", body).status == 204

        assert len(ids_in(lab.get(f"{BASE}/DiagnosticReport?patient={person}"))) == 2


class TestSearch:
    """Patients are found by identifier, name and birth date, each once."""

    @pytest.fixture
    def people(self, lab: Integrator) -> dict[str, str]:
        """The addresses of three patients: a person, a namesake, and one without a number."""
        ada = {"name": named("Ashdown", "Ada"), "birthDate": "1980-02-29"}
        lab.register(of("R-1", identified((NATIONAL, "1"), **ada)))
        return {
            "ada": subject_of(lab.register(of("R-2", identified((NATIONAL, "1"), **ada)))),
            "namesake": subject_of(
                lab.register(
                    of("R-3", identified((NATIONAL, "2"), **ada | {"birthDate": "1991-01-01"}))
                )
            ),
            "stray": subject_of(
                lab.register(of("R-4", identified(("https://other.example", "1"), **ada)))
            ),
        }

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            (f"identifier={NATIONAL}|1", {"ada"}),
            ("identifier=1", {"ada", "stray"}),
            (f"identifier={NATIONAL}|", {"ada", "namesake"}),
            (f"identifier={NATIONAL}|1,{NATIONAL}|2", {"ada", "namesake"}),
            (f"identifier:not={NATIONAL}|1", {"namesake", "stray"}),
            (f"identifier={NATIONAL}|3", set()),
            ("name=ashdown", {"ada", "namesake", "stray"}),
            ("name=ash", {"ada", "namesake", "stray"}),
            ("name=ada", {"ada", "namesake", "stray"}),
            ("name=shdown", set()),
            ("family=ashdown", {"ada", "namesake", "stray"}),
            ("family=ada", set()),
            ("given=ada&birthdate=gt1990", {"namesake"}),
            ("name=ashdown,tillery", {"ada", "namesake", "stray"}),
            ("name:contains=shdow", {"ada", "namesake", "stray"}),
            ("family:contains=ad", set()),
            ("family:exact=Ashdown", {"ada", "namesake", "stray"}),
            ("name:exact=Ashdown&birthdate=1991-01-01", {"namesake"}),
            ("given:exact=Ashdown", set()),
            ("name:exact=ashdown", set()),
            ("name:missing=true", set()),
            ("birthdate=1980-02-29", {"ada", "stray"}),
            ("birthdate=1980", {"ada", "stray"}),
            ("birthdate=gt1990", {"namesake"}),
            ("name=ashdown&birthdate=1991-01-01", {"namesake"}),
            ("", {"ada", "namesake", "stray"}),
        ],
    )
    def test_a_parameter_finds_those_that_match(
        self, lab: Integrator, people: dict[str, str], query: str, names: set[str]
    ) -> None:
        answer = lab.get(f"{BASE}/Patient?{query}")

        found = [f"Patient/{one}" for one in ids_in(answer)]
        assert sorted(found) == sorted(people[name] for name in names)
        assert answer.json["total"] == len(names)

    def test_ids_find_patients_of_both_kinds(
        self, lab: Integrator, people: dict[str, str]
    ) -> None:
        ids = [people[name].partition("/")[2] for name in ("ada", "stray")]

        assert sorted(ids_in(lab.get(f"{BASE}/Patient?_id={','.join(ids)}"))) == sorted(ids)
        assert ids_in(lab.get(f"{BASE}/Patient?_id={ids[0]}&birthdate=gt1990")) == []

    def test_ids_can_be_left_out(self, lab: Integrator, people: dict[str, str]) -> None:
        for name in ("ada", "stray"):
            left_out = people[name].partition("/")[2]
            found = ids_in(lab.get(f"{BASE}/Patient?_id:not={left_out}"))

            assert sorted(f"Patient/{one}" for one in found) == sorted(
                address for other, address in people.items() if other != name
            )

    def test_a_form_finds_the_same(self, lab: Integrator, people: dict[str, str]) -> None:
        answer = lab.request(
            "POST",
            f"{BASE}/Patient/_search",
            f"identifier={NATIONAL}|1".encode(),
            {"Content-Type": "application/x-www-form-urlencoded"},
        )

        assert [f"Patient/{one}" for one in ids_in(answer)] == [people["ada"]]

    def test_a_former_name_does_not_find(self, lab: Integrator, people: dict[str, str]) -> None:
        married = identified((NATIONAL, "1"), name=named("Tillery", "Ada"), birthDate="1980-02-29")
        lab.register(of("R-5", married))

        names = [f"Patient/{one}" for one in ids_in(lab.get(f"{BASE}/Patient?name=ashdown"))]
        assert people["ada"] not in names
        found = ids_in(lab.get(f"{BASE}/Patient?name=tillery"))
        assert [f"Patient/{one}" for one in found] == [people["ada"]]

    def test_pages_have_each_patient_once(self, lab: Integrator, people: dict[str, str]) -> None:
        address: str | None = f"{BASE}/Patient?_count=1"
        found: list[str] = []
        while address:
            page = lab.get(address)
            found += ids_in(page)
            links = {link["relation"]: link["url"] for link in page.json["link"]}
            address = links.get("next")
            address = address and address[address.index("/fhir") :]

        assert sorted(f"Patient/{one}" for one in found) == sorted(people.values())

    def test_a_count_counts_patients(self, lab: Integrator, people: dict[str, str]) -> None:
        assert lab.get(f"{BASE}/Patient?name=ashdown&_summary=count").json["total"] == len(people)

    def test_another_order_is_refused(self, lab: Integrator) -> None:
        refused = lab.get(f"{BASE}/Patient?_sort=birthdate")

        assert refused.status == 400
        assert refused.issue_expressions == {"_sort"}


def test_many_reports_of_one_person_hide_no_other(lab: Integrator) -> None:
    rare = subject_of(lab.register(of("R-0", identified((NATIONAL, "2")))))
    frequent = {
        subject_of(lab.register(of(f"R-{number}", identified((NATIONAL, "1")))))
        for number in range(1, 60)
    }

    found = ids_in(lab.get(f"{BASE}/Patient?name=lopez"))
    assert [f"Patient/{one}" for one in found] == [*frequent, rare]


@pytest.fixture(scope="module")
def plain(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    """A service without declared systems."""
    folder = tmp_path_factory.mktemp("plain")
    with RunningService(folder, store_url=store_url("plain")) as running:
        yield running


class TestWithoutDeclaredSystems:
    """Patients are found, one for each report, as before."""

    def test_an_identifier_finds_the_patient_of_each_report(self, plain: RunningService) -> None:
        lab = plain.integrator()
        one = identified((NATIONAL, "1"))
        subjects = [subject_of(lab.register(of(value, one))) for value in ("R-1", "R-2")]
        found = ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|1"))

        assert [f"Patient/{item}" for item in found] == subjects[::-1]

    def test_each_has_a_history_of_one(self, plain: RunningService) -> None:
        lab = plain.integrator()
        subject = subject_of(lab.register(of("R-1", identified((NATIONAL, "1")))))
        (entry,) = lab.get(f"{BASE}/{subject}/_history").json["entry"]

        assert entry["resource"] == lab.get(f"{BASE}/{subject}").json

    def test_what_refers_to_it_is_included(self, plain: RunningService) -> None:
        lab = plain.integrator()
        lab.register(of("R-1", identified((NATIONAL, "1"))))
        query = f"Patient?identifier={NATIONAL}|1&_revinclude=DiagnosticReport:patient"
        found = lab.get(f"{BASE}/{query}").json["entry"]

        assert [one["resource"]["resourceType"] for one in found] == [
            "Patient",
            "DiagnosticReport",
        ]


class TestDeclaringSystemsLater:
    """Reports from before are found under the person, and keep their own Patients."""

    @pytest.fixture
    def restarted(
        self, tmp_path: Path, store_url: Callable[[str], str]
    ) -> Iterator[tuple[Integrator, str]]:
        """A service after its systems were declared, and a Patient from before."""
        url, one = store_url("later"), identified((NATIONAL, "1"))
        with RunningService(tmp_path, store_url=url) as service:
            lab = service.integrator()
            old = subject_of(lab.register(of("R-1", one, result("hb"))))
            report = ids_in(lab.get(f"{BASE}/DiagnosticReport?identifier=R-1"))[0]
            body = {"resourceType": "DiagnosticReport", "status": "amended"}
            assert lab.patch(f"{BASE}/DiagnosticReport/{report}", body).status == 204
        with RunningService(tmp_path, config=CONFIG, store_url=url) as service:
            again = service.another_client(lab.tenant)
            yield again, old

    def test_the_person_has_them_all(self, restarted: tuple[Integrator, str]) -> None:
        lab, _old = restarted
        new = subject_of(lab.register(of("R-2", identified((NATIONAL, "1")), result("hb"))))
        person = new.partition("/")[2]

        assert ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|1")) == [person]
        assert len(ids_in(lab.get(f"{BASE}/DiagnosticReport?patient={person}"))) == 2
        assert len(ids_in(lab.get(f"{BASE}/Observation?patient={person}"))) == 2
        history = lab.get(f"{BASE}/{new}/_history").json["entry"]
        assert {entry["resource"]["id"] for entry in history} == {person}
        assert len(history) == 2

    def test_the_person_is_found_before_a_new_report(
        self, restarted: tuple[Integrator, str]
    ) -> None:
        lab, old = restarted
        (person,) = ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|1"))

        assert f"Patient/{person}" != old
        assert lab.get(f"{BASE}/Patient/{person}").json["id"] == person

    def test_the_old_patient_goes_on_resolving(self, restarted: tuple[Integrator, str]) -> None:
        lab, old = restarted

        assert f"Patient/{lab.get(f'{BASE}/{old}').json['id']}" == old
        assert len(ids_in(lab.get(f"{BASE}/DiagnosticReport?patient={old}"))) == 1
        assert len(ids_in(lab.get(f"{BASE}/Observation?patient={old}"))) == 1


def test_scopes_of_the_reports_are_enough(strict: RunningService) -> None:
    lab = strict.integrator(scopes=("system/DiagnosticReport.crs",))
    blind = strict.another_client(lab.tenant, scopes=("system/Observation.crs",))
    subject = subject_of(lab.register(register_body("R-1")))

    assert len(ids_in(lab.get(f"{BASE}/Patient?identifier=AAB123456"))) == 1
    assert lab.get(f"{BASE}/{subject}/_history").status == 200
    assert blind.get(f"{BASE}/Patient?identifier=AAB123456").status == 403
    assert blind.get(f"{BASE}/{subject}/_history").status == 403
