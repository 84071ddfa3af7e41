"""Results and what else references lead to, beside the matches of a search (D-190)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.interactions.search import inclusion
from fhirpub.interactions.search.includes import Include
from fhirpub.storage.contract import Page
from fhirpub.testing.service import Integrator, RunningService
from tests.panels import addresses, panel, result, specimen

BASE = "/fhir/r4"
OF_REPORT = "DiagnosticReport?_include=DiagnosticReport"
OF_LABORATORY = {"reference": "Organization/o1"}


def by_mode(lab: Integrator, query: str, mode: str) -> list[dict[str, Any]]:
    answer = lab.get(f"{BASE}/{query}", Prefer="handling=strict")
    assert answer.status == 200, answer.body
    entries = answer.json.get("entry", ())
    names = [entry["fullUrl"] for entry in entries]
    assert len(names) == len({*names})
    return [entry["resource"] for entry in entries if entry["search"]["mode"] == mode]


def included(lab: Integrator, query: str) -> set[str]:
    found = by_mode(lab, query, "include")
    return {f"{resource['resourceType']}/{resource['id']}" for resource in found}


def remarks(lab: Integrator, query: str) -> list[str]:
    return [
        issue["diagnostics"]
        for outcome in by_mode(lab, query, "outcome")
        for issue in outcome["issue"]
    ]


@pytest.fixture
def members(lab: Integrator) -> list[str]:
    """The addresses of a panel, its two results, and their specimen."""
    body = panel(
        "R-1",
        result("panel", hasMember=[{"reference": "Observation/hb"}], valueQuantity=None),
        result("hb", specimen={"reference": "Specimen/blood"}),
        result("sum", derivedFrom=[{"reference": "Observation/hb"}]),
        specimen(),
        result=[{"reference": "Observation/panel"}, {"reference": "Observation/sum"}],
    )
    return addresses(lab.register(body))


def test_results_are_included_with_their_report(lab: Integrator, members: list[str]) -> None:
    assert included(lab, f"{OF_REPORT}:result") == {members[0], members[2]}


def test_what_is_included_is_what_is_read(lab: Integrator, members: list[str]) -> None:
    for resource in by_mode(lab, f"{OF_REPORT}:result", "include"):
        address = f"{resource['resourceType']}/{resource['id']}"
        assert lab.get(f"{BASE}/{address}").json == resource


@pytest.mark.parametrize("target", ["Observation", "Specimen"])
def test_an_include_is_limited_to_a_type(lab: Integrator, members: list[str], target: str) -> None:
    found = included(lab, f"{OF_REPORT}:result:{target}")

    assert found == ({members[0], members[2]} if target == "Observation" else set())


def test_it_goes_on_where_that_is_asked_for(lab: Integrator, members: list[str]) -> None:
    query = f"{OF_REPORT}:result&_include:iterate=Observation:has-member"

    once = included(lab, query)
    twice = included(lab, f"{query}&_include:iterate=Observation:specimen")

    assert once == {*members[:3]}
    assert twice == {*members}


def test_without_iterate_only_matches_are_followed(lab: Integrator, members: list[str]) -> None:
    query = f"{OF_REPORT}:result&_include=Observation:has-member"

    assert lab.get(f"{BASE}/{query}", Prefer="handling=strict").status == 400
    bundle = lab.get(f"{BASE}/{query}").json
    found = {entry["fullUrl"] for entry in bundle["entry"] if entry["search"]["mode"] == "include"}
    assert len(found) == 2


def test_everything_is_included(lab: Integrator, members: list[str]) -> None:
    found = included(lab, "DiagnosticReport?_include=*")
    further = included(lab, "DiagnosticReport?_include:iterate=*")

    of_parts = {one for one in found if one.partition("/")[0] in ("Patient", "Organization")}
    assert len(of_parts) == 2
    assert found == {members[0], members[2], *of_parts}
    assert further == {*members, *of_parts}


@pytest.mark.parametrize("parameter", ["patient", "subject"])
def test_the_patient_of_results_is_included_once(
    lab: Integrator, members: list[str], parameter: str
) -> None:
    patient = lab.get(f"{BASE}/{members[1]}").json["subject"]["reference"]

    assert included(lab, f"Observation?_include=Observation:{parameter}") == {patient}


def test_results_lead_to_their_specimen_and_to_each_other(
    lab: Integrator, members: list[str]
) -> None:
    a_panel, hemoglobin, total, blood = members

    def of(address: str, parameter: str) -> set[str]:
        query = f"Observation?_id={address[-36:]}&_include=Observation:{parameter}"
        return included(lab, query)

    assert of(hemoglobin, "specimen") == {blood}
    assert of(a_panel, "has-member") == {hemoglobin}
    assert of(total, "derived-from") == {hemoglobin}


def test_a_match_is_not_included_too(lab: Integrator, members: list[str]) -> None:
    assert included(lab, "Observation?_include=Observation:has-member") == set()


def test_the_report_of_a_result_is_included(lab: Integrator, members: list[str]) -> None:
    lab.register(panel("R-2", result("other")))
    query = f"Observation?_id={members[0][-36:]}&_revinclude=DiagnosticReport:result"

    (report,) = by_mode(lab, query, "include")

    assert report["identifier"][0]["value"] == "R-1"
    assert "data" not in report["presentedForm"][0]


def test_what_refers_to_results_is_included(lab: Integrator, members: list[str]) -> None:
    a_panel, hemoglobin, total, _blood = members
    query = f"Observation?_id={hemoglobin[-36:]}&_revinclude=Observation"

    assert included(lab, f"{query}:has-member") == {a_panel}
    assert included(lab, f"{query}:derived-from") == {total}
    of_specimen = included(lab, "Specimen?_revinclude=Observation:specimen")
    assert of_specimen == {hemoglobin}


def test_a_reverse_include_goes_on(lab: Integrator, members: list[str]) -> None:
    query = "Specimen?_revinclude=Observation:specimen"

    found = included(lab, f"{query}&_revinclude:iterate=Observation:has-member")

    assert found == {members[0], members[1]}


def test_the_parts_of_an_updated_report_are_included(lab: Integrator, members: list[str]) -> None:
    (report,) = by_mode(lab, "DiagnosticReport", "match")
    change = {"resourceType": "DiagnosticReport", "status": "amended"}
    lab.patch(f"{BASE}/DiagnosticReport/{report['id']}", change)

    found = included(lab, "DiagnosticReport?_include=*")

    assert {one.partition("/")[0] for one in found} == {"Patient", "Organization", "Observation"}


def test_results_of_others_are_not_included(
    service: RunningService, lab: Integrator, members: list[str]
) -> None:
    other = service.integrator()
    body = panel("R-1", result=[{"reference": members[0]}])
    other.register(body)

    assert included(other, f"{OF_REPORT}:result") == set()


# Limits.


def test_a_page_is_shorter_if_more_would_be_included(
    lab: Integrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inclusion, "MAX_INCLUDED", 5)
    for name in ("R-1", "R-2", "R-3"):
        lab.register(panel(name, result("a"), result("b")))

    first = lab.get(f"{BASE}/{OF_REPORT}:result").json
    second = lab.get(first["link"][1]["url"]).json

    modes = [[entry["search"]["mode"] for entry in page["entry"]] for page in (first, second)]
    assert modes == [["match"] * 2 + ["include"] * 4, ["match"] + ["include"] * 2]
    assert first["total"] == 3


def test_what_is_left_out_of_a_match_is_said(
    lab: Integrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inclusion, "MAX_INCLUDED", 2)
    lab.register(panel("R-1", *(result(name) for name in "abc")))

    query = f"{OF_REPORT}:result"

    assert len(included(lab, query)) == 2
    assert "some resources that were to be included are missing" in remarks(lab, query)[0]


def test_references_are_followed_to_a_limit(lab: Integrator) -> None:
    chain = [
        result(f"r{number}", hasMember=[{"reference": f"Observation/r{number + 1}"}])
        for number in range(14)
    ]
    body = panel("R-1", *chain, result("r14"), result=[{"reference": "Observation/r0"}])
    sent = addresses(lab.register(body))
    query = f"{OF_REPORT}:result&_include:iterate=Observation:has-member"

    assert included(lab, query) == {*sent[:10]}
    assert "10 references from a match" in remarks(lab, query)[0]


def test_what_there_is_no_time_for_is_said(
    service: RunningService, lab: Integrator, members: list[str]
) -> None:
    limits = replace(service.services.config.limits, search_seconds=0.0)
    config = replace(service.services.config, limits=limits)
    context = replace(service.services.context, config=config)
    report = lab.get(f"{BASE}/DiagnosticReport").json["entry"][0]["resource"]["id"]
    match = service.call(context.resources.latest(lab.tenant.id, report))
    assert match is not None
    page = Page((match,), 1, more=False)

    shown, found = service.call(
        inclusion.include(
            page, [Include()], tenant=lab.tenant, context=context, may=lambda _letter, _types: True
        )
    )

    assert (shown.versions, [*found.versions], [*found.parts]) == ((match,), [], [])
    assert len(found.issues) == 1


def test_there_are_not_many_includes(lab: Integrator) -> None:
    many = "&".join(f"_include=DiagnosticReport:result:T{chr(97 + n)}" for n in range(21))

    answer = lab.get(f"{BASE}/DiagnosticReport?{many}")

    assert (answer.status, answer.json["issue"][0]["expression"]) == (400, ["_include"])
    assert lab.get(f"{BASE}/DiagnosticReport?{many.rpartition('&')[0]}").status == 200


# Scopes.


@pytest.mark.parametrize(
    ("scopes", "query", "types"),
    [
        ("DiagnosticReport.rs", f"{OF_REPORT}:result", set()),
        ("DiagnosticReport.rs", "DiagnosticReport?_include=*", {"Patient", "Organization"}),
        ("DiagnosticReport.rs Observation.r", f"{OF_REPORT}:result", {"Observation"}),
        (
            "DiagnosticReport.rs Observation.r",
            f"{OF_REPORT}:result&_include:iterate=Observation:specimen",
            {"Observation"},
        ),
        ("Observation.rs", "Observation?_include=Observation:patient", set()),
        ("Observation.rs Patient.r", "Observation?_include=Observation:patient", {"Patient"}),
        (
            "Observation.rs DiagnosticReport.r",
            "Observation?_include=Observation:patient",
            {"Patient"},
        ),
        ("Observation.rs", "Observation?_revinclude=DiagnosticReport:result", set()),
        (
            "Observation.rs DiagnosticReport.r",
            "Observation?_revinclude=DiagnosticReport:result",
            set(),
        ),
        (
            "Observation.rs DiagnosticReport.rs",
            "Observation?_revinclude=DiagnosticReport:result",
            {"DiagnosticReport"},
        ),
    ],
)
def test_only_what_the_token_may_read_is_included(
    strict: RunningService, scopes: str, query: str, types: set[str]
) -> None:
    publisher = strict.integrator(scopes=("system/DiagnosticReport.c",))
    blood = {"reference": "Specimen/blood"}
    publisher.register(panel("R-1", result("hb", specimen=blood), specimen()))
    reader = strict.another_client(
        publisher.tenant, scopes=tuple(f"system/{name}" for name in scopes.split())
    )

    found = included(reader, query)

    assert {one.partition("/")[0] for one in found} == types


def test_what_the_token_may_not_read_is_said(strict: RunningService) -> None:
    publisher = strict.integrator(scopes=("system/DiagnosticReport.crs",))
    publisher.register(panel("R-1", result("hb")))

    (said,) = remarks(publisher, f"{OF_REPORT}:result")

    assert said == "no Observation is included: the access token has no scope for it"


def test_an_include_demands_the_right_to_read(strict: RunningService) -> None:
    lab = strict.integrator(scopes=("system/Observation.s",))

    for query in ("_include=Observation:specimen", "_revinclude=DiagnosticReport:result"):
        assert lab.get(f"{BASE}/Observation?{query}").status == 403


@pytest.mark.parametrize(
    ("parameter", "changes"),
    [
        ("performer", {"performer": [OF_LABORATORY, {"reference": "Practitioner/house"}]}),
        ("performer", {"performer": [OF_LABORATORY, {"reference": "Organization/other"}]}),
        ("specimen", {"specimen": [{"reference": "Specimen/elsewhere"}]}),
        ("based-on", {"basedOn": [{"reference": "ServiceRequest/12345-78-80000000"}]}),
        ("results-interpreter", {"resultsInterpreter": [{"reference": "Practitioner/1"}]}),
        ("result", {"result": [{"reference": "Observation/elsewhere"}]}),
        ("*", {"specimen": [{"reference": "Specimen/elsewhere"}]}),
    ],
)
def test_a_reference_to_nothing_that_is_held_includes_nothing(
    lab: Integrator, parameter: str, changes: dict[str, Any]
) -> None:
    assert lab.register(panel("R-1", **changes)).status == 201
    asked = "*" if parameter == "*" else f"DiagnosticReport:{parameter}"

    found = by_mode(lab, f"DiagnosticReport?_include={asked}", "include")

    kinds = {resource["resourceType"] for resource in found}
    assert kinds <= {"Organization", "Patient"}
    assert all(resource.get("id") != "other" for resource in found)
