"""Search values of a resource, and declarations that are refused."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from fhirpub.errors import ConfigurationError, TooLarge
from fhirpub.interactions.indexing.limits import MAX_SEARCH_VALUES
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.plugin_api import ResourceType, SearchParameter, organization, patient
from fhirpub.storage.criteria import EARLIEST, LATEST, SearchValue, decode, encode
from fhirpub.tenant import Tenant
from tests.indexers import indexer

TENANT = Tenant.new("Lab", created=1)
ID = "34926f96-0f76-4bf8-8d32-a6b9ec2f8936"
HOUR = 3_600_000
DAY = 86_400_000

Kind = Literal["token", "date", "reference", "quantity", "string"]


def parameter(name: str, kind: Kind, *paths: str) -> SearchParameter:
    return SearchParameter(name=name, type=kind, paths=paths)


def searched(type_name: str, *search: SearchParameter) -> SearchIndexer:
    declared = ResourceType(
        name=type_name,
        parts=(patient(referred_by="subject"), organization(referred_by="performer")),
        create_statuses=frozenset({"final"}),
        update_statuses=frozenset({"final"}),
        search=search,
    )
    return indexer(declared)


def values_of(
    searched: SearchIndexer, *, parts: dict[str, Any] | None = None, **elements: Any
) -> set[SearchValue]:
    first = {"meta": {"versionId": "1"}}
    resource = {"resourceType": searched.type.name, "id": ID, **first, **elements}
    brought = {name: part | first for name, part in (parts or {}).items()}
    return set(decode(searched.values(resource, brought)))


def test_tokens_are_taken_of_every_type_of_element() -> None:
    it = searched(
        "Encounter",
        parameter("class", "token", "class"),
        parameter("type", "token", "type"),
        parameter("special", "token", "hospitalization.specialArrangement"),
        parameter("episode", "token", "hospitalization.preAdmissionIdentifier"),
    )

    values = values_of(
        it,
        status="finished",
        **{"class": {"system": "urn:c", "code": "AMB"}},
        type=[{"coding": [{"code": "1"}, {"system": "urn:t", "code": "2"}]}, {"text": "3"}],
        hospitalization={
            "specialArrangement": [{"coding": [{"system": "urn:s", "code": "4"}]}],
            "preAdmissionIdentifier": {"system": "urn:i", "value": "5"},
        },
    )

    assert values == {
        ("status", "finished", "http://hl7.org/fhir/encounter-status"),
        ("class", "AMB", "urn:c"),
        ("type", "1", ""),
        ("type", "2", "urn:t"),
        ("hospitalization.specialArrangement", "4", "urn:s"),
        ("hospitalization.preAdmissionIdentifier", "5", "urn:i"),
    }


@pytest.mark.parametrize(("value", "code"), [(True, "true"), (False, "false")])
def test_a_boolean_is_a_token_of_its_word(*, value: bool, code: str) -> None:
    it = searched("MedicationRequest", parameter("unwanted", "token", "doNotPerform"))

    assert ("doNotPerform", code, "") in values_of(it, doNotPerform=value)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ({"effectiveDateTime": "1970-01-02"}, (DAY, 2 * DAY)),
        ({"effectivePeriod": {"start": "1970-01-02", "end": "1970-01-03"}}, (DAY, 3 * DAY)),
        ({"effectivePeriod": {"start": "1970-01-02"}}, (DAY, LATEST)),
        ({"effectivePeriod": {"end": "1970-01-02"}}, (EARLIEST, 2 * DAY)),
        (
            {"effectivePeriod": {"start": "1970-01-02T23:00:00-01:00", "end": "1970-01-02"}},
            (2 * DAY, 2 * DAY + HOUR),
        ),
        (
            {"effectivePeriod": {"start": "1970-01-02", "end": "1970-01-02T00:00:00+01:00"}},
            (DAY - HOUR, DAY - HOUR + 1_000),
        ),
        ({"effectiveTiming": {"event": ["1970-01-03", "1970-01-02"]}}, (DAY, 3 * DAY)),
        (
            {
                "effectiveTiming": {
                    "event": ["1970-01-03"],
                    "repeat": {"boundsPeriod": {"start": "1970-01-02", "end": "1970-01-04"}},
                }
            },
            (DAY, 4 * DAY),
        ),
        ({"effectiveTiming": {"repeat": {"frequency": 1}}}, (None, None)),
        ({"effectiveInstant": "1970-01-01T00:00:00.005Z"}, (5, 6)),
        ({"effectivePeriod": {"extension": [{"url": "urn:x"}]}}, (None, None)),
        ({"_effectiveDateTime": {"extension": [{"url": "urn:x"}]}}, None),
    ],
)
def test_times_are_taken_from_their_beginning_to_their_end(
    elements: dict[str, Any], expected: tuple[int | None, int | None] | None
) -> None:
    paths = [f"effective{name}" for name in ("DateTime", "Period", "Timing", "Instant")]

    values = values_of(searched("Observation", parameter("date", "date", *paths)), **elements)

    assert values == ({("|".join(paths), *expected)} if expected else set())


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("Encounter/7", ("7", "Encounter")),
        ("Encounter/7/_history/3", ("7", "Encounter")),
        ("https://here.example/fhir/r4/Encounter/7", ("7", "Encounter")),
        ("http://here.example/fhir/r4/Encounter/7", ("7", "Encounter")),
        ("https://there.example/Encounter/7", ("https://there.example/Encounter/7", "")),
        ("urn:uuid:1", ("urn:uuid:1", "")),
        ("#contained", (None, None)),
    ],
)
def test_references_are_taken_by_type_and_id(
    literal: str, expected: tuple[str | None, str | None]
) -> None:
    it = searched("Observation", parameter("encounter", "reference", "encounter"))

    values = values_of(it, encounter={"reference": literal, "display": "x"})

    assert values == {("encounter", *expected)}


@pytest.mark.parametrize(
    "kinds",
    [[{"text": "blood"}], [{"coding": [{"display": "blood"}]}, {"extension": [{"url": "urn:x"}]}]],
)
def test_an_element_without_anything_to_search_by_is_marked_once(
    kinds: list[dict[str, Any]],
) -> None:
    it = searched("Observation", parameter("category", "token", "category"))

    assert values_of(it, category=kinds) == {("category", None, None)}
    coded = [*kinds, {"coding": [{"code": "1"}]}]
    assert values_of(it, category=coded) == {("category", "1", "")}


def test_an_element_below_an_element_is_marked_only_if_it_is_there() -> None:
    it = searched("Encounter", parameter("special", "token", "hospitalization.specialCourtesy"))

    assert values_of(it, hospitalization={"preAdmissionIdentifier": {"value": "1"}}) == set()
    marked = values_of(it, hospitalization={"specialCourtesy": [{"text": "quiet"}]})
    assert marked == {("hospitalization.specialCourtesy", None, None)}


def test_a_reference_to_a_part_of_ones_own_is_marked_by_its_type_alone() -> None:
    it = searched("Observation", parameter("performer", "reference", "performer"))
    parts: dict[str, Any] = {
        "patient": {
            "id": TENANT.part_id(ID, "patient"),
            "identifier": [{"system": "urn:p", "value": "1"}, {"value": "2"}, {"use": "old"}],
        },
        "organization": {"id": TENANT.part_id(ID, "organization")},
    }
    elements = {
        "subject": {"reference": f"Patient/{parts['patient']['id']}"},
        "performer": [
            {"reference": f"Organization/{parts['organization']['id']}"},
            {"reference": "Practitioner/8"},
        ],
    }

    first = values_of(it, parts=parts, **elements)

    assert first == {
        ("subject:Patient", "", parts["patient"]["id"]),
        ("subject", "", "Patient"),
        ("performer", "", "Organization"),
        ("performer", "8", "Practitioner"),
        ("subject:Patient.identifier", "1", "urn:p"),
        ("subject:Patient.identifier", "2", ""),
    }
    resource = {"resourceType": "Observation", "id": ID, **elements}
    statement = ("subject:Patient", "", parts["patient"]["id"])
    later = it.next_values(resource, encode(first), TENANT)
    assert set(decode(later)) == first - {statement}


@pytest.mark.parametrize(
    ("kind", "path", "words"),
    [
        ("token", "codee", "search parameter x: codee is no element of it"),
        ("token", "code.codingg", "code.codingg is no element of it"),
        ("token", "subject", "subject is an element of type Reference; a token is one of type"),
        ("date", "status", "status is an element of type code; a date is one of type"),
        ("string", "status", "a string is one of type HumanName, markdown, string"),
        ("reference", "code", "code is an element of type CodeableConcept"),
        ("date", "effective", "effective is no element of it"),
    ],
)
def test_an_element_that_cannot_be_searched_so_is_refused(
    kind: Kind, path: str, words: str
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        searched("DiagnosticReport", parameter("x", kind, path))

    assert str(refusal.value).startswith("DiagnosticReport: search parameter x: ")
    assert words in str(refusal.value)


def test_the_rules_change_with_what_is_taken_and_with_nothing_else() -> None:
    code, date = parameter("code", "token", "code"), parameter("date", "date", "issued")
    renamed = parameter("kind", "token", "code")

    rules = searched("DiagnosticReport", code).rules

    assert rules == searched("DiagnosticReport", code).rules
    assert rules == searched("DiagnosticReport", renamed).rules
    assert rules != searched("DiagnosticReport", code, date).rules


# The limit


CODED = searched("Observation", parameter("code", "token", "code"))


def with_codings(count: int) -> dict[str, Any]:
    """Return an observation with so many search values."""
    codings = [{"code": str(number)} for number in range(count)]
    of_first = {"meta": {"versionId": "1"}}
    return {"resourceType": "Observation", "id": ID, **of_first, "code": {"coding": codings}}


def test_a_resource_with_as_many_search_values_as_the_limit_is_accepted() -> None:
    values = decode(CODED.values(with_codings(MAX_SEARCH_VALUES), {}))

    assert len(values) == MAX_SEARCH_VALUES


def test_a_resource_with_more_search_values_than_the_limit_is_too_large() -> None:
    with pytest.raises(TooLarge):
        CODED.values(with_codings(MAX_SEARCH_VALUES + 1), {})


def test_search_values_of_more_bytes_than_the_limit_are_too_large() -> None:
    concept = {"coding": [{"code": f"{number}{'x' * 1_000}"} for number in range(270)]}

    with pytest.raises(TooLarge, match="more than 256 KiB of search values"):
        CODED.values({**with_codings(0), "code": concept}, {})


def test_identifiers_of_parts_count_as_search_values() -> None:
    of_another = {"versionId": "34926f96-0f76-4bf8-8d32-a6b9ec2f8937.1"}
    identified = {"id": "p1", "identifier": [{"value": "1"}, {"value": "2"}], "meta": of_another}
    parts = {CODED.type.parts[0].name: identified}
    CODED.values(with_codings(MAX_SEARCH_VALUES - 2), parts)

    with pytest.raises(TooLarge):
        CODED.values(with_codings(MAX_SEARCH_VALUES - 1), parts)


def test_the_refusal_names_the_limit_and_what_to_do() -> None:
    with pytest.raises(TooLarge, match=r"more than 2000 search values.*: send fewer of them"):
        CODED.values(with_codings(MAX_SEARCH_VALUES + 1), {})


def test_a_later_version_with_more_search_values_than_the_limit_is_too_large() -> None:
    before = CODED.values(with_codings(1), {})

    with pytest.raises(TooLarge):
        CODED.next_values(with_codings(MAX_SEARCH_VALUES + 1), before, TENANT)


def test_a_resource_that_was_beyond_the_limit_before_may_stay_so() -> None:
    before = CODED.values(with_codings(MAX_SEARCH_VALUES + 2), {}, limited=False)

    CODED.next_values(with_codings(MAX_SEARCH_VALUES + 2), before, TENANT)


def test_a_resource_that_was_beyond_the_limit_before_may_not_grow() -> None:
    before = CODED.values(with_codings(MAX_SEARCH_VALUES + 2), {}, limited=False)

    with pytest.raises(TooLarge):
        CODED.next_values(with_codings(MAX_SEARCH_VALUES + 3), before, TENANT)


def test_the_values_of_a_stored_first_version_have_no_limit() -> None:
    values = CODED.values(with_codings(MAX_SEARCH_VALUES + 1), {}, limited=False)

    assert len(decode(values)) == MAX_SEARCH_VALUES + 1


def test_the_values_of_a_stored_later_version_have_no_limit() -> None:
    resource = with_codings(MAX_SEARCH_VALUES + 1)

    values = CODED.next_values(resource, b"[]", TENANT, limited=False)

    assert len(decode(values)) == MAX_SEARCH_VALUES + 1


def test_a_quantity_is_found_by_its_number_and_each_way_to_write_its_unit() -> None:
    it = searched("Observation", parameter("value-quantity", "quantity", "valueQuantity"))
    unit = {"unit": "gram", "system": "urn:u", "code": "g"}

    whole = values_of(it, valueQuantity={"value": 5, **unit})
    plain = values_of(it, valueQuantity={"value": 5})
    without = values_of(it, valueQuantity={"unit": "gram"})

    units = {rest for name, key, rest in whole if (name, key) == ("valueQuantity:unit", "")}
    assert units == {"|g", "|gram", "urn:u|g"}
    assert len([name for name, *_rest in whole if name == "valueQuantity"]) == 1
    assert {name for name, *_rest in plain} == {"valueQuantity"}
    assert without == {("valueQuantity", None, None)}


def test_a_long_unit_is_found_like_a_short_one() -> None:
    it = searched("Observation", parameter("value-quantity", "quantity", "valueQuantity"))
    unit = {"unit": "u" * 300, "system": "urn:u", "code": "c" * 300}

    found = values_of(it, valueQuantity={"value": 5, **unit})

    units = {rest for name, _key, rest in found if name == "valueQuantity:unit"}
    assert units == {f"|{unit['unit']}", f"|{unit['code']}", f"urn:u|{unit['code']}"}
