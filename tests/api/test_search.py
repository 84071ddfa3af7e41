from __future__ import annotations

import uuid
from urllib.parse import quote

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.audit_trail import read_chain
from tests.bodies import SYSTEM, register_body

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BASE = "/fhir/r4/DiagnosticReport"
OTHER = "urn:oid:1.2.3"


@pytest.fixture
def reports(lab: Integrator) -> dict[str, str]:
    """The ids of the reports by system and value."""
    ids = {}
    for system, value in [
        (SYSTEM, "A"),
        (SYSTEM, "B"),
        (OTHER, "A"),
        (OTHER, "C,D"),
        (OTHER, "E|F"),
    ]:
        location = lab.register(register_body(value, system=system)).headers["location"]
        ids[f"{system}|{value}"] = location.split("/")[-3]
    return ids


def found(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    entries = answer.json.get("entry", [])
    return [entry["resource"]["id"] for entry in entries if entry["search"]["mode"] == "match"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"identifier={SYSTEM}|A", [f"{SYSTEM}|A"]),
        ("identifier=A", [f"{SYSTEM}|A", f"{OTHER}|A"]),
        ("identifier=a", []),
        (f"identifier={SYSTEM}|", [f"{SYSTEM}|A", f"{SYSTEM}|B"]),
        ("identifier=|A", []),
        (f"identifier={SYSTEM}|A,{SYSTEM}|B", [f"{SYSTEM}|A", f"{SYSTEM}|B"]),
        (f"identifier=A,{SYSTEM}|B", [f"{SYSTEM}|A", f"{SYSTEM}|B", f"{OTHER}|A"]),
        (f"identifier=A&identifier={OTHER}|", [f"{OTHER}|A"]),
        (f"identifier={SYSTEM}|A&identifier={SYSTEM}|B", []),
        (r"identifier=C\,D", [f"{OTHER}|C,D"]),
        (rf"identifier={OTHER}|E\|F", [f"{OTHER}|E|F"]),
        ("identifier=", None),
        ("", None),
    ],
)
def test_tokens_are_read_in_all_their_forms(
    lab: Integrator, reports: dict[str, str], query: str, expected: list[str] | None
) -> None:
    answer = lab.get(f"{BASE}?{quote(query, safe='=&')}")

    wanted = reports.values() if expected is None else [reports[name] for name in expected]
    assert sorted(found(answer)) == sorted(wanted)
    assert answer.json["total"] == len(list(wanted))


@pytest.mark.parametrize("query", ["identifier=|", "identifier=%5C", "_count=-1", "_count=x"])
def test_a_value_that_cannot_be_read_is_a_400(lab: Integrator, query: str) -> None:
    answer = lab.get(f"{BASE}?{query}")

    assert (answer.status, answer.issues[0]["code"]) == (400, "invalid")


@pytest.mark.parametrize("modifier", ["missing", "text", "of-type", "exact", "above"])
def test_a_modifier_that_is_not_there_is_a_400(lab: Integrator, modifier: str) -> None:
    assert lab.get(f"{BASE}?identifier:{modifier}=x").status == 400


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("identifier", ":missing, :not, :of-type"),
        ("status", ":missing, :not"),
        ("date", ":missing"),
        ("subject", ":missing, :Patient"),
    ],
)
def test_a_refused_modifier_is_answered_with_those_that_are_there(
    lab: Integrator, name: str, known: str
) -> None:
    answer = lab.get(f"{BASE}?{name}:below=x")

    rule = f"does not support this modifier; it has {known}"
    assert (answer.issues[0]["expression"], answer.issues[0]["diagnostics"]) == ([name], rule)


def test_a_search_by_post_needs_no_form_for_what_the_url_says(
    lab: Integrator, reports: dict[str, str]
) -> None:
    answer = lab.request("POST", f"{BASE}/_search?identifier=A")

    assert (answer.status, answer.json["total"]) == (200, 2)


def test_ids_are_searched_for(lab: Integrator, reports: dict[str, str]) -> None:
    first, second, *_ = reports.values()

    answer = lab.get(f"{BASE}?_id={first},{second},nonsense&identifier=A")

    assert found(answer) == [first]


def test_the_form_finds_what_the_url_finds(lab: Integrator, reports: dict[str, str]) -> None:
    answer = lab.request("POST", f"{BASE}/_search?_count=5", b"identifier=A", FORM)

    assert sorted(found(answer)) == sorted(found(lab.get(f"{BASE}?identifier=A")))


def test_a_form_of_another_type_is_a_415(lab: Integrator) -> None:
    assert lab.request("POST", f"{BASE}/_search", {}).status == 415


def test_a_form_says_in_which_format_it_wants_its_answer(
    lab: Integrator, reports: dict[str, str]
) -> None:
    answer = lab.request("POST", f"{BASE}/_search", b"identifier=A&_format=xml", FORM)

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/fhir+xml"
    assert b"_format=xml" in answer.body


def test_a_format_in_a_form_that_is_not_spoken_is_refused(lab: Integrator) -> None:
    assert lab.request("POST", f"{BASE}/_search", b"_format=turtle", FORM).status == 406


def test_a_format_in_a_form_comes_before_what_is_accepted(lab: Integrator) -> None:
    answer = lab.request(
        "POST", f"{BASE}/_search", b"_format=json", {**FORM, "Accept": "text/html"}
    )

    assert answer.status == 200


def test_a_form_with_too_many_parameters_is_refused_as_such(lab: Integrator) -> None:
    answer = lab.request("POST", f"{BASE}/_search", b"&".join([b"status=a"] * 201), FORM)

    assert (answer.status, answer.issues[0]["code"]) == (400, "invalid")
    assert "at most 200 parameters" in answer.issues[0]["diagnostics"]


def test_the_newest_come_first(lab: Integrator, reports: dict[str, str]) -> None:
    first = next(iter(reports.values()))
    lab.patch(f"{BASE}/{first}", {"resourceType": "DiagnosticReport", "status": "amended"})

    bundle = lab.get(BASE).json

    times = [entry["resource"]["meta"]["lastUpdated"] for entry in bundle["entry"]]
    assert times == sorted(times, reverse=True)
    assert bundle["entry"][0]["resource"]["id"] == first
    assert bundle["entry"][0]["resource"]["meta"]["versionId"] == "2"


def test_the_pages_show_every_report_once(lab: Integrator, reports: dict[str, str]) -> None:
    seen: list[str] = []
    url = f"{BASE}?_count=2"
    while url:
        answer = lab.get(url)
        seen += found(answer)
        url = next((link["url"] for link in answer.json["link"] if link["relation"] == "next"), "")

    assert sorted(seen) == sorted(reports.values())


def test_a_count_of_zero_returns_the_total_alone(lab: Integrator, reports: dict[str, str]) -> None:
    bundle = lab.get(f"{BASE}?_count=0").json

    assert bundle["total"] == len(reports)
    assert "entry" not in bundle
    assert [link["relation"] for link in bundle["link"]] == ["self"]


def test_a_page_has_at_most_a_hundred_entries(lab: Integrator) -> None:
    assert lab.get(f"{BASE}?_count=100000").status == 200


def test_a_cursor_is_of_no_use_to_another_tenant(
    service: RunningService, lab: Integrator, reports: dict[str, str]
) -> None:
    url = lab.get(f"{BASE}?_count=1").json["link"][1]["url"]
    other = service.integrator()

    assert other.get(url).status == 400


def test_the_link_self_lists_only_what_was_used(lab: Integrator, reports: dict[str, str]) -> None:
    query = "_count=1&identifier=A&_count=2&identifier=A&_elements=code&_elements=status"

    (link,) = lab.get(f"{BASE}?{query}").json["link"]

    assert link["url"].partition("?")[2] == "identifier=A&_count=2&identifier=A&_elements=status"


def test_the_record_of_a_search_by_post_has_the_query_of_its_url_and_the_form(
    lab: Integrator,
) -> None:
    lab.request("POST", f"{BASE}/_search?_count=5", b"identifier=A", FORM)

    (record,) = (one for one in read_chain(lab, lab.tenant.id) if one["action"] == "search")
    assert record["query"] == "_count=5&identifier=A"


def test_the_next_page_of_a_long_search_is_had_by_a_form(
    lab: Integrator, reports: dict[str, str]
) -> None:
    values = ",".join(["A", "B", *("x" * 100 for _ in range(200))])
    first = lab.request("POST", f"{BASE}/_search", f"_count=2&identifier={values}".encode(), FORM)
    following = first.json["link"][-1]["url"]

    assert lab.get(following).status == 414
    rest = lab.request("POST", f"{BASE}/_search", following.partition("?")[2].encode(), FORM)
    assert len(found(first)) == 2
    assert {*found(first), *found(rest)} == {
        reports[f"{SYSTEM}|A"],
        reports[f"{SYSTEM}|B"],
        reports[f"{OTHER}|A"],
    }


def test_a_cursor_is_of_no_use_to_another_search(lab: Integrator, reports: dict[str, str]) -> None:
    url = lab.get(f"{BASE}?_count=1").json["link"][1]["url"]

    assert lab.get(f"{url}&identifier=A").status == 400
    assert lab.get(f"{url[:-4]}AAAA").status == 400


def test_an_unknown_parameter_is_named_and_not_used(
    lab: Integrator, reports: dict[str, str]
) -> None:
    bundle = lab.get(f"{BASE}?identifer=A&_count=2").json

    outcome = bundle["entry"][-1]
    assert outcome["search"]["mode"] == "outcome"
    assert "identifer" in outcome["resource"]["issue"][0]["diagnostics"]
    assert bundle["link"][0]["url"].endswith("?_count=2")
    assert bundle["total"] == len(reports)


def test_the_entry_with_the_outcome_has_a_full_url_as_every_entry_must(
    lab: Integrator, reports: dict[str, str]
) -> None:
    urls = [lab.get(f"{BASE}?{name}=A").json["entry"][-1]["fullUrl"] for name in "xxy"]

    assert all(uuid.UUID(item.removeprefix("urn:uuid:")).urn == item for item in urls)
    assert urls[0] == urls[1] != urls[2]


def test_strict_handling_returns_a_400_for_an_unknown_parameter(lab: Integrator) -> None:
    answer = lab.get(f"{BASE}?identifer=A", Prefer="handling=strict")

    assert (answer.status, answer.issues[0]["code"]) == (400, "not-supported")


def test_strict_handling_reports_all_that_is_wrong_at_once(lab: Integrator) -> None:
    answer = lab.get(f"{BASE}?nonsense=1&_count=x", Prefer="handling=strict")

    assert (answer.status, answer.issue_expressions) == (400, {"nonsense", "_count"})


def test_a_value_that_is_not_utf_8_is_a_400(lab: Integrator) -> None:
    answer = lab.get(f"{BASE}?identifier=Jos%E9")

    assert (answer.status, answer.issues[0]["code"]) == (400, "invalid")


def test_entries_show_documents_by_their_address(lab: Integrator, reports: dict[str, str]) -> None:
    entry = lab.get(f"{BASE}?identifier={SYSTEM}|A").json["entry"][0]

    document = entry["resource"]["presentedForm"][0]
    assert "data" not in document
    assert {"url", "size", "hash", "title", "contentType"} <= set(document)
    assert entry["fullUrl"] == f"{lab.service.base_url}{BASE}/{entry['resource']['id']}"


def test_a_new_report_is_found_at_once(lab: Integrator) -> None:
    for number in range(20):
        lab.register(register_body(f"now-{number}"))

        assert lab.get(f"{BASE}?identifier=now-{number}").json["total"] == 1
