"""Searches by the contents of a report, and the form of their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from fhirpub.interactions.versions import MAX_COUNTED
from fhirpub.testing.samples import a_version
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.testing.store_contract import add_all
from tests.bodies import organization, parameters, patient, register_body, report

BASE = "/fhir/r4/DiagnosticReport"
LOINC = "http://loinc.org"
ROLL = "https://roll.example/people"


def coded(code: str, system: str = LOINC) -> dict[str, Any]:
    return {"text": code, "coding": [{"system": system, "code": code}]}


ELSEWHERE = "https://elsewhere.example/fhir/Practitioner/7"

REPORTS: dict[str, dict[str, Any]] = {
    "ana-blood": {
        "status": "final",
        "code": coded("58410-2"),
        "effectiveDateTime": "2026-11-20T10:00:00Z",
        "issued": "2026-11-20T12:00:00.500Z",
    },
    "ana-month": {
        "status": "preliminary",
        "code": coded("24627-2"),
        "effectiveDateTime": "2026-10",
        "issued": "2026-11-02T08:00:00Z",
    },
    "bea-stay": {
        "status": "final",
        "code": {
            "text": "several",
            "coding": [{"system": LOINC, "code": "58410-2"}, {"system": "urn:x", "code": "X"}],
        },
        "effectiveDateTime": None,
        "effectivePeriod": {"start": "2026-11-10T00:00:00Z"},
        "issued": "2026-11-21T00:00:00Z",
    },
    "bea-undated": {
        "status": "registered",
        "performer": [{"reference": "Organization/o1"}, {"reference": ELSEWHERE}],
        "code": {"text": "in words alone"},
        "effectiveDateTime": None,
        "issued": None,
    },
}


@pytest.fixture(scope="module")
def lab(service: RunningService) -> Integrator:
    return service.integrator()


@pytest.fixture(scope="module")
def ids(lab: Integrator) -> dict[str, str]:
    """The ids of the reports by their names; no test here changes them."""
    found = {}
    for name, changes in REPORTS.items():
        person = name.partition("-")[0]
        body = parameters(
            patient=patient(identifier=[{"system": ROLL, "value": person}]),
            organization=organization(),
            diagnosticReport=report(name, **changes),
        )
        answer = lab.register(body)
        assert answer.status == 201, answer.body
        found[name] = answer.headers["location"].split("/")[-3]
    return found


def names_in(answer: Answer, ids: dict[str, str]) -> set[str]:
    assert answer.status == 200, answer.body
    entries = answer.json.get("entry", [])
    assert not [entry for entry in entries if entry["search"]["mode"] == "outcome"], answer.body
    matches = [entry["resource"]["id"] for entry in entries if entry["search"]["mode"] == "match"]
    return {name for name, id_ in ids.items() if id_ in matches}


ALL = frozenset(REPORTS)
ANA, BEA = frozenset({"ana-blood", "ana-month"}), frozenset({"bea-stay", "bea-undated"})


def test_tokens_dates_and_references_find_what_they_say(
    lab: Integrator, ids: dict[str, str]
) -> None:
    expected = {
        "status=final": {"ana-blood", "bea-stay"},
        "status=final,registered": {"ana-blood", "bea-stay", "bea-undated"},
        "status:not=final": {"ana-month", "bea-undated"},
        "status:not=final,registered": {"ana-month"},
        "status:missing=true": set(),
        "status=Final": set(),
        "status=http://hl7.org/fhir/diagnostic-report-status|final": {"ana-blood", "bea-stay"},
        "status=http://hl7.org/fhir/observation-status|final": set(),
        "code=58410-2": {"ana-blood", "bea-stay"},
        f"code={LOINC}|58410-2": {"ana-blood", "bea-stay"},
        "code=urn:x|58410-2": set(),
        "code=urn:x|": {"bea-stay"},
        f"code={LOINC}|": {"ana-blood", "ana-month", "bea-stay"},
        "code=|58410-2": set(),
        "code:missing=true": set(),
        "code:missing=false": ALL,
        "code:not=58410-2": {"ana-month", "bea-undated"},
        "code=58410-2&code=X": {"bea-stay"},
        "category=HM": ALL,
        "patient.identifier=ana": ANA,
        f"patient.identifier={ROLL}|bea": BEA,
        f"subject:Patient.identifier={ROLL}|bea": BEA,
        f"subject.identifier={ROLL}|": ALL,
        "patient:Patient.identifier=ana,bea&status=final": {"ana-blood", "bea-stay"},
        "date=2026-11-20": {"ana-blood"},
        "date=2026-11-20T10:00Z": {"ana-blood"},
        "date=2026-11-20T10:00:00Z": {"ana-blood"},
        "date=2026-11-20T12:00:00+02:00": {"ana-blood"},
        "date=2026-11-20T12:00:00%2B02:00": {"ana-blood"},
        "date=2026-10": {"ana-month"},
        "date=2026-10-15": set(),
        "date=2026": {"ana-blood", "ana-month"},
        "date=ne2026-11-20": {"ana-month", "bea-stay"},
        "date=gt2026-10-15": {"ana-blood", "ana-month", "bea-stay"},
        "date=sa2026-10-31": {"ana-blood", "bea-stay"},
        "date=ge2026-11-20": {"ana-blood", "bea-stay"},
        "date=lt2026-11-01": {"ana-month"},
        "date=le2026-11-15": {"ana-month", "bea-stay"},
        "date=eb2026-11-01": {"ana-month"},
        "date=ge2026-10-01&date=lt2026-11-01": {"ana-month"},
        "date=2026-10,2026-11-20": {"ana-blood", "ana-month"},
        "date:missing=true": {"bea-undated"},
        "issued=2026-11-20T12:00:00.500Z": {"ana-blood"},
        "issued=2026-11-20T12:00:00Z": {"ana-blood"},
        "issued=gt2026-11-20T12:00:00Z": {"bea-stay"},
        "_lastUpdated=gt2020": ALL,
        "_lastUpdated=lt2020": set(),
        "_lastUpdated:missing=true": set(),
        "identifier:not=ana-blood": ALL - {"ana-blood"},
        "identifier:missing=false": ALL,
        "identifier:missing=true": set(),
        f"_id:not={ids['ana-blood']}": ALL - {"ana-blood"},
        "status=final&date=ge2026-11-20&patient.identifier=ana": {"ana-blood"},
        "status=final&_count=0": set(),
    }
    for query, names in expected.items():
        answer = lab.get(f"{BASE}?{quote(query, safe='=&%+')}")

        assert names_in(answer, ids) == names, query


def test_missing_is_about_the_element_and_not_about_its_values(service: RunningService) -> None:
    other = service.integrator()
    without_time = {"effectiveDateTime": None, "issued": None}
    said = {"extension": [{"url": "https://x.example/said", "valueString": "last week"}]}
    logical = [{"reference": "Organization/o1"}, {"display": "Dr. Tillery"}]
    forms: dict[str, dict[str, Any]] = {
        "words": {"code": {"text": "in words"}, **without_time, "effectivePeriod": said},
        "nothing": {**without_time, "performer": logical},
        "extended": {**without_time, "_issued": said, "_effectiveDateTime": said},
    }
    ids = {}
    for name, changes in forms.items():
        body = parameters(
            patient=patient(),
            organization=organization(),
            diagnosticReport=report(name, **changes),
        )
        ids[name] = other.register(body).headers["location"].split("/")[-3]

    for query, names in {
        "code:missing=false": {*forms},
        "code:missing=true": set(),
        "date:missing=false": {"words"},
        "date:missing=true": {"nothing", "extended"},
        "issued:missing=true": {*forms},
        "performer:missing=false": {*forms},
        "date=lt2100": set(),
        "date=ge1900": set(),
        "date=ne2026": set(),
        "code:not=1": {*forms},
    }.items():
        assert names_in(other.get(f"{BASE}?{query}"), ids) == names, query
    in_order = other.get(f"{BASE}?_sort=-date").json["entry"]
    assert len(in_order) == len(forms)


def test_references_are_compared_in_all_their_forms(lab: Integrator, ids: dict[str, str]) -> None:
    own = lab.get(f"{BASE}/{ids['ana-blood']}").json
    literal, performer = own["subject"]["reference"], own["performer"][0]["reference"]
    bare = literal.partition("/")[2]

    for query, names in {
        f"patient={bare}": {"ana-blood"},
        f"patient={literal}": {"ana-blood"},
        f"patient={lab.service.base_url}/fhir/r4/{literal}": {"ana-blood"},
        f"patient:Patient={bare}": {"ana-blood"},
        f"subject={bare}": {"ana-blood"},
        f"subject={literal},Patient/nobody": {"ana-blood"},
        f"subject:Patient={bare}": {"ana-blood"},
        f"subject:Group={bare}": set(),
        f"patient=Group/{bare}": set(),
        "patient:missing=false": ALL,
        "subject:missing=true": set(),
        f"performer={performer}": {"ana-blood"},
        f"performer:Organization={performer.partition('/')[2]}": {"ana-blood"},
        f"performer={literal}": set(),
        f"performer={ELSEWHERE}": {"bea-undated"},
        f"performer:Practitioner={ELSEWHERE}": {"bea-undated"},
        f"patient={literal}&status=preliminary": set(),
    }.items():
        assert names_in(lab.get(f"{BASE}?{query}"), ids) == names, query


def test_a_changed_status_is_found_at_once_and_the_old_one_no_more(
    service: RunningService,
) -> None:
    other = service.integrator()
    answer = other.register(register_body("x"))
    path = answer.headers["location"].partition("/_history")[0]

    other.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})

    assert other.get(f"{BASE}?status=final").json["total"] == 0
    assert other.get(f"{BASE}?status=amended").json["total"] == 1
    assert other.get(f"{BASE}?patient.identifier=AAB123456&status=amended").json["total"] == 1
    literal = other.get(path).json["subject"]["reference"]
    assert other.get(f"{BASE}?patient={literal}").json["total"] == 1


def test_identifiers_are_found_by_their_type(service: RunningService) -> None:
    lab = service.integrator()
    kind = "http://terminology.hl7.org/CodeSystem/v2-0203"
    identifier = {
        "type": {"coding": [{"system": kind, "code": "ACSN"}, {"system": "urn:t", "code": "a|b"}]},
        "system": "urn:s",
        "value": "v|1",
    }
    lab.register(register_body("typed", identifier=[identifier]))
    lab.register(register_body("v|1"))

    for query, total in {
        rf"{kind}|ACSN|v\|1": 1,
        r"urn:t|a\|b|v\|1": 1,
        r"urn:t|a|b\|v\|1": 0,
        r"urn:t|ACSN|v\|1": 0,
        rf"{kind}|ACSN|other,{kind}|ACSN|v\|1": 1,
    }.items():
        answer = lab.get(f"{BASE}?identifier:of-type={quote(query)}")
        assert (answer.status, answer.json["total"]) == (200, total), query
    for query in ("ACSN|v", f"{kind}|ACSN|", "||v", "a|b|c|d", "status:of-type=a|b|c"):
        name, _, value = query.rpartition("=")
        answer = lab.get(f"{BASE}?{name or 'identifier:of-type'}={quote(value)}")
        assert answer.status == 400, query


def test_another_tenants_reports_are_found_by_nothing(
    service: RunningService, lab: Integrator, ids: dict[str, str]
) -> None:
    other = service.integrator()
    literal = lab.get(f"{BASE}/{ids['ana-blood']}").json["subject"]["reference"]

    for query in ("status=final", "patient.identifier=ana", f"patient={literal}", "_sort=date"):
        assert other.get(f"{BASE}?{query}").json["total"] == 0


@pytest.mark.parametrize(
    "query",
    [
        "date=yesterday",
        "date=2026-13",
        "date=2026-11-31",
        "date=2026-11-20T10",
        "date=xx2026",
        "issued=2026-11-20T10:00:61Z",
        "_lastUpdated=ge",
        "date:not=2026",
        "status:text=final",
        "code:in=http://x",
        "code:above=x",
        "code=|",
        r"code=a\b",
        "status:missing=perhaps",
        "patient:missing=2",
        "patient:identifier=x",
        "patient=Patient/",
        r"patient=a\b",
        "_total=some",
        "_summary=all",
        "_count:x=1",
        "_summary=true&_elements=status",
    ],
)
def test_what_cannot_be_honoured_is_a_400_that_names_the_parameter(
    lab: Integrator, query: str
) -> None:
    answer = lab.get(f"{BASE}?{query}")

    name = query.partition("=")[0].partition(":")[0]
    assert (answer.status, answer.issues[0]["code"]) == (400, "invalid")
    assert answer.issue_expressions == {name}


@pytest.mark.parametrize("modifier", ["not", "missing", "of-type"])
def test_a_modifier_behind_a_chain_is_a_400(lab: Integrator, modifier: str) -> None:
    answer = lab.get(f"{BASE}?subject:Patient.identifier:{modifier}=true")

    assert (answer.status, answer.issue_expressions) == (400, {"subject"})


def test_everything_that_is_wrong_is_reported_at_once(lab: Integrator) -> None:
    answer = lab.get(f"{BASE}?date=x&status:text=y&_count=z&_total=w")

    assert answer.issue_expressions == {"date", "status", "_count", "_total"}


@pytest.mark.parametrize(
    "query",
    [
        "encounter=x",
        "Status=final",
        "patient.name=ana",
        "performer.identifier=77",
        "subject:Group.identifier=x",
        "status.identifier=x",
        "date.x=2026",
        "_include=Observation:patient",
        "_include=DiagnosticReport:code",
        "_revinclude=Provenance:target",
        "_sort=-date,nothing",
        "_sort=patient",
        "_has:Observation:patient:code=x",
        "_security=x",
    ],
)
def test_what_is_not_known_is_named_and_left_out(
    lab: Integrator, ids: dict[str, str], query: str
) -> None:
    bundle = lab.get(f"{BASE}?{query}&status=final").json

    outcome = bundle["entry"][-1]
    assert outcome["search"]["mode"] == "outcome"
    assert query.partition("=")[0] in outcome["resource"]["issue"][0]["diagnostics"]
    assert bundle["link"][0]["url"].endswith("?status=final")
    assert bundle["total"] == 2
    assert lab.get(f"{BASE}?{query}", Prefer="handling=strict").status == 400


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("_include", "DiagnosticReport:encounter", "what can be included: DiagnosticReport:"),
        ("_sort", "-date,nothing", "what can be sorted by: _id, identifier, _lastUpdated, "),
    ],
)
def test_an_unknown_name_in_a_parameter_is_distinguished_from_the_parameter(
    lab: Integrator, ids: dict[str, str], name: str, value: str, hint: str
) -> None:
    issues = lab.get(f"{BASE}?{name}={value}").json["entry"][-1]["resource"]["issue"]
    strictly = lab.get(f"{BASE}?{name}={value}", Prefer="handling=strict")

    [said], [refused] = (
        [one["diagnostics"] for one in each] for each in (issues, strictly.issues)
    )
    assert said.startswith(
        f"what the search parameter {name} names is not supported and was not used; {hint}"
    )
    assert refused.startswith(f"names what is not supported; {hint}")
    assert strictly.issue_expressions == {name}


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("date", ["ana-month", "bea-stay", "ana-blood", "bea-undated"]),
        ("-date", ["ana-blood", "bea-stay", "ana-month", "bea-undated"]),
        ("-issued", ["bea-stay", "ana-blood", "ana-month", "bea-undated"]),
        ("status,-date", ["ana-blood", "bea-stay", "ana-month", "bea-undated"]),
        ("-status,date", ["bea-undated", "ana-month", "bea-stay", "ana-blood"]),
        ("_lastUpdated", ["ana-blood", "ana-month", "bea-stay", "bea-undated"]),
        ("-_lastUpdated", ["bea-undated", "bea-stay", "ana-month", "ana-blood"]),
        ("identifier", ["ana-blood", "ana-month", "bea-stay", "bea-undated"]),
    ],
)
def test_pages_follow_the_order_that_is_asked_for(
    lab: Integrator, ids: dict[str, str], sort: str, expected: list[str]
) -> None:
    names = {id_: name for name, id_ in ids.items()}
    seen = []
    url = f"{BASE}?_sort={sort}&_count=1&status:missing=false"
    while url:
        bundle = lab.get(url).json
        seen += [names[entry["resource"]["id"]] for entry in bundle["entry"]]
        links = {link["relation"]: link["url"] for link in bundle["link"]}
        assert f"_sort={quote(sort)}" in links["self"]
        url = links.get("next", "")

    assert seen == expected


def test_of_a_name_that_comes_twice_in_a_sort_the_first_counts(
    lab: Integrator, ids: dict[str, str]
) -> None:
    twice, once, otherwise = [
        lab.get(f"{BASE}?_sort={sort}").json["entry"] for sort in ("-date,date", "-date", "date")
    ]

    assert twice == once != otherwise


def test_a_sort_that_is_repeated_sorts_within(lab: Integrator, ids: dict[str, str]) -> None:
    within = lab.get(f"{BASE}?_sort=-status&_sort=date").json["entry"]
    listed = lab.get(f"{BASE}?_sort=-status,date").json["entry"]
    alone = lab.get(f"{BASE}?_sort=date").json["entry"]

    assert within == listed != alone


@pytest.mark.parametrize(
    "query",
    [
        "&".join(["status=final"] * 51),
        "date=" + ",".join(["2026"] * 51),
        "date=2026&" * 51,
        "identifier=x," + ",".join(f"s{number}|v" for number in range(51)),
        "code=" + ",".join(f"s{number}|v" for number in range(51)),
    ],
)
def test_more_conditions_than_a_search_may_have_are_a_422(lab: Integrator, query: str) -> None:
    answer = lab.get(f"{BASE}?{query}")

    assert (answer.status, answer.issues[0]["code"]) == (422, "too-costly")
    assert answer.issue_expressions == {query.partition("=")[0]}
    assert "at most 50 conditions" in answer.issues[0]["diagnostics"]


@pytest.mark.parametrize(
    "query",
    [
        "&".join(["date=ne2026"] * 50),
        "date=" + ",".join(["ne2026"] * 50),
        "status=" + ",".join(map(str, range(1_000))),
        "_count=1&_sort=" + ",".join(["status", "-date"] * 500),
    ],
)
def test_as_many_conditions_as_are_allowed_can_be_asked(
    lab: Integrator, ids: dict[str, str], query: str
) -> None:
    answer = lab.get(f"{BASE}?{query}")

    assert answer.status == 200
    assert all(lab.get(link["url"]).status == 200 for link in answer.json["link"])


def test_a_cursor_serves_no_other_order_and_no_other_filter(
    lab: Integrator, ids: dict[str, str]
) -> None:
    url = lab.get(f"{BASE}?_sort=date&status=final&_count=1").json["link"][1]["url"]

    assert lab.get(url).status == 200
    assert lab.get(url.replace("_sort=date", "_sort=-date")).status == 400
    assert lab.get(url.replace("status=final", "status=registered")).status == 400

    url = lab.get(f"{BASE}?_sort=date&_sort=status&_count=1").json["link"][1]["url"]
    assert lab.get(url).status == 200
    assert lab.get(url.replace("_sort=date&_sort=status", "_sort=status&_sort=date")).status == 400


def test_the_total_can_be_done_without(lab: Integrator, ids: dict[str, str]) -> None:
    for total, given in (("none", False), ("estimate", True), ("accurate", True)):
        bundle = lab.get(f"{BASE}?status=final&_total={total}").json

        assert len(bundle["entry"]) == 2
        assert bundle.get("total") == (2 if given else None)
    assert lab.get(f"{BASE}?_total=none&_summary=count").json["total"] == 4


def test_a_filter_that_is_left_empty_is_reported(lab: Integrator, ids: dict[str, str]) -> None:
    bundle = lab.get(f"{BASE}?patient=&status=final").json

    (outcome,) = (
        entry["resource"] for entry in bundle["entry"] if entry["search"]["mode"] == "outcome"
    )
    assert [issue["diagnostics"] for issue in outcome["issue"]] == [
        "the search parameter patient has no value and was not used"
    ]
    assert bundle["total"] == 2


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("_include:recurse=DiagnosticReport:patient", "_include"),
        ("_include=DiagnosticReport:patient&_summary=text", "_summary"),
    ],
)
def test_what_cannot_be_included_so_is_refused(lab: Integrator, query: str, place: str) -> None:
    answer = lab.get(f"{BASE}?{query}")

    assert answer.status == 400
    assert answer.json["issue"][0]["expression"] == [place]


def test_a_long_list_has_a_total_only_on_request(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        body = b'{"resourceType":"DiagnosticReport","status":"final","code":{"text":"x"}}'
        versions = [a_version(body=body) for _ in range(MAX_COUNTED + 1)]
        service.call(add_all(service.services.store, versions, lab.tenant.id))

        def total(query: str) -> Any:
            bundle = lab.get(f"{BASE}{query}").json
            assert len(bundle.get("entry", ())) in (0, 5)
            return bundle.get("total")

        assert total("?_count=5") is None
        assert total("/_history?_count=5") is None
        assert total("?_count=5&_total=accurate") == MAX_COUNTED + 1
        assert total("?_summary=count") == MAX_COUNTED + 1


def test_entries_can_be_shown_in_part(lab: Integrator, ids: dict[str, str]) -> None:
    def shown(query: str) -> dict[str, Any]:
        bundle = lab.get(f"{BASE}?_id={ids['ana-blood']}&{query}").json
        resource: dict[str, Any] = bundle["entry"][0]["resource"]
        assert bundle["total"] == 1
        assert query in bundle["link"][0]["url"]
        assert "SUBSETTED" in {item["code"] for item in resource["meta"]["tag"]}
        return resource

    assert {*shown("_elements=status")} == {"resourceType", "id", "meta", "status", "code"}
    assert "conclusion" in shown("_summary=data")
    assert "presentedForm" not in shown("_summary=true")
    assert "status" in shown("_summary=text")
    counted = lab.get(f"{BASE}?status=final&_summary=count").json
    assert (counted["total"], "entry" in counted) == (2, False)


@pytest.mark.parametrize(
    ("include", "types"),
    [
        ("DiagnosticReport:patient", {"Patient"}),
        ("DiagnosticReport:subject", {"Patient"}),
        ("DiagnosticReport:subject:Patient", {"Patient"}),
        ("DiagnosticReport:subject:Group", set()),
        ("DiagnosticReport:performer", {"Organization"}),
        ("*", {"Patient", "Organization"}),
        ("DiagnosticReport:*", {"Patient", "Organization"}),
    ],
)
def test_what_came_with_a_report_is_included(
    lab: Integrator, ids: dict[str, str], include: str, types: set[str]
) -> None:
    bundle = lab.get(f"{BASE}?patient.identifier=ana&_include={include}").json

    included = [entry for entry in bundle["entry"] if entry["search"]["mode"] == "include"]
    assert {item["resource"]["resourceType"] for item in included} == types
    assert len({item["fullUrl"] for item in included}) == 2 * len(types)
    assert bundle["total"] == 2
    for item in included:
        assert lab.get(item["fullUrl"]).json == item["resource"]


def test_parts_of_an_updated_report_are_included_too(service: RunningService) -> None:
    lab = service.integrator()
    path = lab.register(register_body("updated")).headers["location"].partition("/_history")[0]
    lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})

    entries = lab.get(f"{BASE}?_include=DiagnosticReport:patient").json["entry"]

    assert [entry["search"]["mode"] for entry in entries] == ["match", "include"]
    assert entries[0]["resource"]["subject"]["reference"] == entries[1]["fullUrl"][-44:]


def test_a_page_with_large_parts_is_shorter(service: RunningService) -> None:
    lab = service.integrator()
    notes = [{"url": "https://lab.example/note", "valueString": "x" * 900_000}] * 8
    for value in "abcdef":
        body = parameters(
            patient=patient(extension=notes),
            organization=organization(),
            diagnosticReport=report(value),
        )
        answer = lab.register(body)
        path = answer.headers["location"].partition("/_history")[0]
        lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})

    first = lab.get(f"{BASE}?_include=DiagnosticReport:patient").json
    second = lab.get(first["link"][1]["url"]).json

    modes = [[entry["search"]["mode"] for entry in page["entry"]] for page in (first, second)]
    assert modes == [["match"] * 4 + ["include"] * 4, ["match"] * 2 + ["include"] * 2]


def test_what_the_statement_declares_is_understood(lab: Integrator, ids: dict[str, str]) -> None:
    statement = lab.get("/metadata").json
    declared = next(
        resource_entry
        for resource_entry in statement["rest"][0]["resource"]
        if resource_entry["type"] == "DiagnosticReport"
    )
    values = {"token": "x", "date": "2026", "reference": "Patient/x", "quantity": "5"}

    names = {parameter["name"]: parameter["type"] for parameter in declared["searchParam"]}
    assert names == {
        "_id": "token",
        "_lastUpdated": "date",
        "identifier": "token",
        "status": "token",
        "patient": "reference",
        "category": "token",
        "code": "token",
        "date": "date",
        "issued": "date",
        "subject": "reference",
        "performer": "reference",
        "results-interpreter": "reference",
        "result": "reference",
        "specimen": "reference",
        "based-on": "reference",
    }
    for name, kind in names.items():
        answer = lab.get(f"{BASE}?{name}={values[kind]}", Prefer="handling=strict")
        assert answer.status == 200, name
    for include in declared["searchInclude"]:
        assert lab.get(f"{BASE}?_include={include}", Prefer="handling=strict").status == 200


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("identifer", "did you mean identifier?"),
        ("Status", "did you mean status?"),
        ("_lastupdated", "did you mean _lastUpdated?"),
        ("_sortBy", "did you mean _sort?"),
        ("patient.name", "the identifier can be searched: patient.identifier"),
        ("status.code", "status is known, but not with what follows it"),
        ("favourite", "the CapabilityStatement lists those of DiagnosticReport"),
    ],
)
def test_the_name_that_was_meant_is_suggested(
    lab: Integrator, ids: dict[str, str], name: str, hint: str
) -> None:
    issues = lab.get(f"{BASE}?{name}=x").json["entry"][-1]["resource"]["issue"]
    strictly = lab.get(f"{BASE}?{name}=x", Prefer="handling=strict")

    assert issues[0]["diagnostics"].endswith(hint)
    assert strictly.issues[0]["diagnostics"].endswith(hint)


def test_few_unknown_names_get_a_suggestion(lab: Integrator, ids: dict[str, str]) -> None:
    query = "&".join(f"statu{letter}=x" for letter in "abcdefghijklmno")

    issues = lab.get(f"{BASE}?{query}").json["entry"][-1]["resource"]["issue"]

    assert sum("did you mean status?" in issue["diagnostics"] for issue in issues) == 10
