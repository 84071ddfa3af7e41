from __future__ import annotations

from pathlib import Path

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import organization, patient, register_body


@pytest.fixture
def registered(lab: Integrator) -> Answer:
    return lab.register(register_body("D-1"))


@pytest.fixture
def path(lab: Integrator, registered: Answer) -> str:
    location = registered.headers["location"].removeprefix(lab.service.base_url)
    return location.removesuffix("/_history/1")


def test_a_report_reads_back_whole(lab: Integrator, path: str) -> None:
    sent = register_body("D-1")["parameter"][2]["resource"]

    read = lab.get(path).json

    for name in set(sent) - {"id", "subject", "performer"}:
        assert read[name] == sent[name]


def test_a_read_carries_its_version_as_tag_and_date(lab: Integrator, path: str) -> None:
    answer = lab.get(path)

    assert answer.headers["etag"] == 'W/"1"'
    assert answer.headers["last-modified"].endswith("GMT")
    assert answer.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize(
    "form", ["not-a-uuid", "00000000-0000-4000-8000-000000000000", "{upper}", "%2e%2e"]
)
def test_an_unknown_id_is_a_404(lab: Integrator, path: str, form: str) -> None:
    wanted = form.replace("{upper}", path[-36:].upper())

    answer = lab.get(f"/fhir/r4/DiagnosticReport/{wanted}")

    assert (answer.status, answer.issues[0]["code"]) == (404, "not-found")


@pytest.mark.parametrize("version", ["0", "2", "01", "x", "1.0", "99999999999999999999"])
def test_a_version_that_never_was_is_a_404(lab: Integrator, path: str, version: str) -> None:
    assert lab.get(f"{path}/_history/{version}").status == 404


@pytest.mark.parametrize("tag", ['W/"1"', '"1"', "*", 'W/"9", W/"1"'])
def test_a_client_that_has_the_version_gets_304(lab: Integrator, path: str, tag: str) -> None:
    answer = lab.get(path, If_None_Match=tag)

    assert (answer.status, answer.body) == (304, b"")


def test_a_client_that_has_another_version_gets_the_report(lab: Integrator, path: str) -> None:
    assert lab.get(path, If_None_Match='W/"2"').status == 200


def test_what_has_not_changed_since_its_own_date_is_304(lab: Integrator, path: str) -> None:
    since = lab.get(path).headers["last-modified"]

    assert lab.get(path, If_Modified_Since=since).status == 304
    assert lab.get(path, If_Modified_Since="Thu, 01 Jan 1998 00:00:00 GMT").status == 200
    assert lab.get(path, If_Modified_Since="nonsense").status == 200


def test_the_tag_counts_for_more_than_the_date(lab: Integrator, path: str) -> None:
    since = lab.get(path).headers["last-modified"]

    answer = lab.get(path, If_Modified_Since=since, If_None_Match='W/"2"')

    assert answer.status == 200


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("If-Match", 'W/"1"', 200),
        ("If-Match", '"2", "1"', 200),
        ("If-Match", "*", 200),
        ("If-Match", 'W/"2"', 412),
        ("If-Unmodified-Since", "Thu, 01 Jan 2099 00:00:00 GMT", 200),
        ("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT", 412),
        ("If-Unmodified-Since", "Sat Jan  1 00:00:00 2000", 412),
        ("If-Unmodified-Since", "2000-01-01T00:00:00Z", 412),
        ("If-Unmodified-Since", "2000-01-01T00:00:00", 200),
    ],
)
def test_a_client_that_wants_one_version_gets_no_other(
    lab: Integrator, path: str, name: str, value: str, status: int
) -> None:
    for address in (path, f"{path}/_history/1"):
        assert lab.request("GET", address, headers={name: value}).status == status


def test_an_escaped_hyphen_is_a_hyphen(lab: Integrator, path: str) -> None:
    assert lab.get(path.replace("-", "%2D")).status == 200


def test_the_parts_are_as_they_were_sent(lab: Integrator, path: str) -> None:
    report = lab.get(path).json

    person = lab.get(f"/fhir/r4/{report['subject']['reference']}").json
    laboratory = lab.get(f"/fhir/r4/{report['performer'][0]['reference']}").json

    assert {n: person[n] for n in patient() if n != "id"} == {
        n: v for n, v in patient().items() if n != "id"
    }
    assert laboratory["name"] == organization()["name"]


def test_a_part_has_the_version_that_it_names(lab: Integrator, path: str) -> None:
    address = f"/fhir/r4/{lab.get(path).json['subject']['reference']}"
    latest = lab.get(address)

    version = lab.get(f"{address}/_history/{latest.json['meta']['versionId']}")

    assert (version.status, version.body) == (200, latest.body)
    assert version.headers["etag"] == latest.headers["etag"]


def test_a_part_has_one_version(lab: Integrator, path: str) -> None:
    literal = lab.get(path).json["subject"]["reference"]

    answer = lab.get(f"/fhir/r4/{literal}/_history/2")

    assert (answer.status, answer.issues[0]["code"]) == (404, "not-found")
    assert answer.issues[0]["diagnostics"] == f"{literal}/_history/2 was not found"


def test_the_same_patient_in_two_reports_is_two_patients(lab: Integrator) -> None:
    locations = [lab.register(register_body(n)).headers["location"] for n in ("P-1", "P-2")]

    subjects = {lab.get(location).json["subject"]["reference"] for location in locations}

    assert len(subjects) == 2


def test_a_part_is_not_there_under_another_type(lab: Integrator, path: str) -> None:
    literal = lab.get(path).json["subject"]["reference"]

    assert lab.get(f"/fhir/r4/{literal.replace('Patient', 'Organization')}").status == 404
    assert lab.get(f"/fhir/r4/{literal.replace('Patient', 'DiagnosticReport')}").status == 404


def test_the_history_shows_documents_by_their_address(lab: Integrator, path: str) -> None:
    resource = lab.get(f"{path}/_history").json["entry"][0]["resource"]

    document = resource["presentedForm"][0]
    assert "data" not in document
    assert document["size"] == len(lab.get(document["url"]).body)
    assert resource["meta"]["tag"][0]["code"] == "SUBSETTED"


def test_a_long_history_comes_in_pages(lab: Integrator, path: str) -> None:
    for _ in range(4):
        lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})

    seen, url = [], f"{path}/_history?_count=2"
    while url:
        bundle = lab.get(url).json
        seen += [entry["resource"]["meta"]["versionId"] for entry in bundle["entry"]]
        url = next((link["url"] for link in bundle["link"] if link["relation"] == "next"), "")

    assert seen == ["5", "4", "3", "2", "1"]


def test_an_answer_is_indented_on_request(lab: Integrator, path: str) -> None:
    answer = lab.get(f"{path}?_pretty=true")

    assert answer.body.startswith(b'{\n  "resourceType"')
    assert answer.json == lab.get(path).json


@pytest.mark.parametrize(
    ("query", "there", "gone"),
    [
        (
            "_summary=true",
            {"status", "code", "subject", "issued"},
            {"conclusion", "presentedForm"},
        ),
        ("_summary=data", {"status", "conclusion", "presentedForm"}, {"text"}),
        ("_summary=text", {"status", "code"}, {"conclusion", "subject"}),
        ("_elements=conclusion", {"status", "code", "conclusion"}, {"subject", "presentedForm"}),
        ("_elements=effective", {"status", "code", "effectiveDateTime"}, {"subject", "issued"}),
        ("_elements=effective[x]", {"effectiveDateTime"}, {"subject", "issued"}),
    ],
)
def test_less_than_the_whole_is_given_and_tagged(
    lab: Integrator, path: str, query: str, there: set[str], gone: set[str]
) -> None:
    read = lab.get(f"{path}?{query}").json

    assert there - {"text"} <= set(read)
    assert not gone & set(read)
    assert read["meta"]["tag"][0]["code"] == "SUBSETTED"


BASE_PROFILE = "http://hl7.org/fhir/StructureDefinition/DiagnosticReport"
PROFILES = [f"{BASE_PROFILE}|4.0.1", "https://lab.example/full-report", f"{BASE_PROFILE}s"]


@pytest.fixture
def claiming(lab: Integrator) -> Answer:
    extended = {"extension": [{"url": "https://x.example", "valueCode": "x"}]}
    meta = {"profile": PROFILES, "_profile": [None, extended, None], "source": "urn:x"}
    return lab.register(register_body("profiles", meta=meta))


def test_a_whole_report_claims_the_profiles_that_were_sent(
    lab: Integrator, claiming: Answer
) -> None:
    assert lab.get(claiming.headers["location"]).json["meta"]["profile"] == PROFILES


@pytest.mark.parametrize("query", ["_summary=true", "_summary=data", "_elements=conclusion"])
def test_a_part_of_a_report_claims_no_profile_but_that_of_fhir(
    lab: Integrator, claiming: Answer, query: str
) -> None:
    read = lab.get(f"{claiming.headers['location']}?{query}").json

    assert read["meta"]["profile"] == PROFILES[:1]
    assert "_profile" not in read["meta"]
    assert read["meta"]["source"] == "urn:x"


def test_a_report_without_its_documents_claims_no_profile_but_that_of_fhir(
    lab: Integrator, claiming: Answer
) -> None:
    path = claiming.headers["location"].removesuffix("/1")
    found = lab.get("/fhir/r4/DiagnosticReport?identifier=profiles").json["entry"]

    for entry in (*found, *lab.get(path).json["entry"]):
        assert entry["resource"]["meta"]["profile"] == PROFILES[:1]


def test_the_answer_to_a_registration_claims_no_profile_but_that_of_fhir(
    claiming: Answer,
) -> None:
    resource = claiming.json["parameter"][0]["resource"]

    assert resource["meta"]["profile"] == PROFILES[:1]


def test_an_element_that_has_extensions_alone_is_data_too(lab: Integrator) -> None:
    absent = {"url": "http://hl7.org/fhir/StructureDefinition/data-absent-reason"}
    silent = {"extension": [{**absent, "valueCode": "masked"}]}
    location = lab.register(register_body("R-2", conclusion=None, _conclusion=silent))

    read = lab.get(f"{location.headers['location'].partition('/_history')[0]}?_summary=data").json

    assert read["_conclusion"] == silent


@pytest.mark.parametrize("query", ["_summary=count", "_summary=x", "_summary=true&_elements=code"])
def test_a_summary_that_is_none_is_a_400(lab: Integrator, path: str, query: str) -> None:
    assert lab.get(f"{path}?{query}").status == 400


def test_a_client_that_has_the_version_is_refused_like_others(lab: Integrator, path: str) -> None:
    tag = lab.get(path).headers["etag"]

    assert lab.get(f"{path}?_summary=x", If_None_Match=tag).status == 400


def test_a_patient_can_be_read_in_short(lab: Integrator, path: str) -> None:
    literal = lab.get(path).json["subject"]["reference"]

    read = lab.get(f"/fhir/r4/{literal}?_elements=gender").json

    assert set(read) == {"resourceType", "id", "meta", "gender"}


def test_a_client_that_has_the_first_of_two_versions_of_one_second_gets_the_second(
    lab: Integrator, registered: Answer, path: str
) -> None:
    since = registered.headers["last-modified"]
    lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})

    assert lab.get(path, If_Modified_Since=since).status == 200


def test_a_date_that_two_versions_share_is_no_sign_of_the_second(tmp_path: Path) -> None:
    now = 1_795_000_000_100
    with RunningService(tmp_path, clock=lambda: now) as service:
        lab = service.integrator()
        path = lab.register(register_body("S")).headers["location"].removesuffix("/_history/1")
        since = lab.get(path).headers["last-modified"]

        alone = lab.get(path, If_Modified_Since=since)
        lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})
        followed = lab.get(path, If_Modified_Since=since)

    assert (alone.status, followed.status, followed.json["status"]) == (304, 200, "amended")
