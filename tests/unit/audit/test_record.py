"""Records are lines of JSON that name resources and patients, and nothing else of them."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.audit.record import (
    MAX_NAMED,
    Access,
    Agent,
    complete,
    encode,
    encode_request,
    form_query,
    key_of,
    keys_of,
    name_of,
    patients_in,
    shared_members,
    unversioned,
)

AGENT = Agent(client="c", environment="sandbox", address="192.0.2.1", request="r")


def test_a_record_has_the_members_that_are_known_and_the_time_first() -> None:
    access = Access(action="read", what=("DiagnosticReport/a",), patients=("Patient/p",))

    assert encode(access, AGENT, at=5) == (
        b'{"at":5,"action":"read","status":200,"client":"c","environment":"sandbox",'
        b'"address":"192.0.2.1","request":"r","what":["DiagnosticReport/a"],'
        b'"patients":["Patient/p"]}'
    )


NAMES = st.lists(st.text(max_size=20), max_size=3).map(tuple)


@given(
    client=st.tuples(st.text(), st.text(), st.text()),
    request=st.text(min_size=1),
    status=st.one_of(st.integers(100, 599), st.sampled_from(HTTPStatus)),
    at=st.sampled_from([0, 5, 1_800_000_000_000]),
    named=st.fixed_dictionaries({"what": NAMES, "patients": NAMES, "query": st.text()}),
)
def test_the_record_of_a_request_is_what_json_has_of_its_members(
    client: tuple[str, str, str], request: str, status: int, at: int, named: dict[str, Any]
) -> None:
    agent = dict(
        zip(("client", "environment", "address", "request"), (*client, request), strict=True)
    )
    members = {"at": at, "action": "read", "status": int(status), **agent}
    members |= {name: named[name] for name in ("what", "patients", "query")}
    expected = orjson.dumps({name: value for name, value in members.items() if value})

    shared = shared_members("read", status, *client)
    assert encode_request(shared, request, at=at, **named) == expected
    access = Access(action="read", status=status, **named)
    assert encode(access, Agent(**agent), at=at) == expected


@pytest.mark.parametrize("agent", [Agent(), Agent(user="root", host="ward-1"), Agent(client="c")])
@pytest.mark.parametrize("access", [Access(action="transfer"), Access(action="token", count=3)])
@pytest.mark.parametrize("at", [0, 7])
def test_records_of_commands_and_of_refusals_have_the_same_form(
    agent: Agent, access: Access, at: int
) -> None:
    members = {"at": at, "action": access.action, "status": 200, **asdict(agent)}
    members["count"] = access.count

    assert encode(access, agent, at=at) == orjson.dumps(
        {name: value for name, value in members.items() if value}
    )


def test_the_record_of_a_request_names_no_more_than_a_page_has() -> None:
    names = tuple(f"Patient/{number}" for number in range(MAX_NAMED + 1))
    named: dict[str, Any] = {"what": names, "patients": names, "query": "q" * 9_000}
    shared = shared_members("search", 200, "c", "sandbox", "192.0.2.1")

    record = encode_request(shared, "r", at=5, **named)

    assert record == encode(Access(action="search", **named), AGENT, at=5)
    assert len(orjson.loads(record)["what"]) == MAX_NAMED


def test_a_record_is_one_line_whatever_it_says() -> None:
    access = Access(action="search", query="a=\n\x00\u2028")

    assert len(encode(access, Agent(client="a\nb"), at=1).splitlines()) == 1


def test_a_record_names_no_more_than_a_page_has() -> None:
    names = tuple(f"DiagnosticReport/{number}" for number in range(MAX_NAMED + 1))

    record = orjson.loads(encode(Access(action="search", what=names), AGENT, at=1))

    assert len(record["what"]) == MAX_NAMED


def test_the_record_of_a_write_is_completed_when_it_is_sealed() -> None:
    audit = encode(Access(action="register", status=201), AGENT, at=0)

    record = complete(audit, at=7, what="DiagnosticReport/a/_history/1")

    assert record["at"] == 7
    assert record["what"] == ["DiagnosticReport/a/_history/1"]
    assert record["status"] == 201


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"subject":{"reference":"Patient/a-1"}}', ("Patient/a-1",)),
        (
            b'{"a":{"reference":"Patient/a"},"b":{"reference":"Patient/b"}}',
            ("Patient/a", "Patient/b"),
        ),
        (b'{"a":{"reference":"Patient/a"},"b":{"reference":"Patient/a"}}', ("Patient/a",)),
        (b'{"text":"\\"reference\\":\\"Patient/x\\""}', ()),
        (b'{"reference":"https://other.example/Patient/a"}', ()),
        (b'{"reference":"Patient/"}', ()),
        (b"", ()),
    ],
)
def test_patients_are_found_in_stored_json(body: bytes, found: tuple[str, ...]) -> None:
    assert patients_in([body]) == found


def test_a_block_is_found_by_agents_patients_and_resources_of_its_tenant() -> None:
    access = Access(
        action="read", what=("DiagnosticReport/a/_history/3",), patients=("Patient/p",)
    )

    record = orjson.loads(encode(access, AGENT, at=1))
    keys = keys_of("t", [record])

    assert keys == {
        key_of("t", "agent", "c"),
        key_of("t", "patient", "Patient/p"),
        key_of("t", "entity", "DiagnosticReport/a"),
    }
    assert keys.isdisjoint(keys_of("other", [record]))


def test_keys_fit_into_64_bits() -> None:
    assert all(-(2**63) <= key_of("t", "agent", str(n)) < 2**63 for n in range(1_000))


def test_names_of_versions_lead_to_their_resource() -> None:
    assert unversioned(name_of("A", "b", 2)) == name_of("A", "b") == "A/b"


def test_patients_are_found_wherever_a_long_resource_is_cut() -> None:
    for size in range(65_400, 65_560, 7):
        body = b'{"a":"%b","b":{"reference":"Patient/p-1"}}' % (b"x" * size)
        assert patients_in([body]) == ("Patient/p-1",)


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=3_000))))
def test_a_form_is_recorded_as_it_would_be_sent_as_far_as_a_record_goes(
    form: list[tuple[str, str]],
) -> None:
    shared = shared_members("search", HTTPStatus.OK, "c", "sandbox", "192.0.2.1")

    short, whole = (
        encode_request(shared, "r", query=query) for query in (form_query(form), urlencode(form))
    )

    assert short == whole


def test_the_values_of_a_long_form_are_not_all_encoded() -> None:
    assert len(form_query([("code", "," * 60_000), ("code", "a")])) < 25_000


@pytest.mark.parametrize("length", [7_999, 8_000, 8_001])
def test_a_record_has_the_first_characters_of_a_long_query(length: int) -> None:
    record = orjson.loads(encode(Access(action="search", query="q" * length), AGENT, at=1))

    assert len(record["query"]) == min(length, 8_000)


def test_a_record_names_a_thousand_patients() -> None:
    names = tuple(f"Patient/{number}" for number in range(1_001))

    record = orjson.loads(encode(Access(action="search", patients=names), AGENT, at=1))

    assert record["patients"] == [*names[:1_000]]


def test_patients_of_several_resources_come_in_their_order_each_once() -> None:
    bodies = [b'{"reference":"Patient/%b"}' % name for name in (b"b", b"a", b"b")]

    assert patients_in([b"{}", *bodies]) == ("Patient/b", "Patient/a")


@pytest.mark.parametrize(("length", "found"), [(1, 1), (64, 1), (65, 0)])
def test_the_id_of_a_patient_has_up_to_64_characters(length: int, found: int) -> None:
    assert len(patients_in([b'{"reference":"Patient/%b"}' % (b"x" * length)])) == found


def test_a_patient_behind_what_only_looks_like_one_is_found() -> None:
    body = b'{"a":{"reference":"Patient/x/_history/1"},"b":{"reference":"Patient/y"}}'

    assert patients_in([body]) == ("Patient/y",)


def test_what_was_named_already_stays_behind_the_version_that_was_written() -> None:
    audit = encode(Access(action="update", what=("Binary/b",)), AGENT, at=0)

    assert complete(audit, at=7, what="A/a/_history/2")["what"] == ["A/a/_history/2", "Binary/b"]


def test_the_time_of_a_record_is_its_first_member() -> None:
    audit = encode(Access(action="update"), AGENT, at=0)

    assert next(iter(complete(audit, at=7, what="A/a"))) == "at"


def test_a_block_is_found_by_the_user_of_a_command() -> None:
    record = orjson.loads(encode(Access(action="erase"), Agent(user="root", host="h"), at=1))

    assert keys_of("t", [record]) == {key_of("t", "agent", "root")}


def test_a_block_is_found_by_what_each_of_its_records_names() -> None:
    records: list[dict[str, Any]] = [
        {"client": "c"},
        {"client": "d", "patients": ["Patient/p"]},
        {},
    ]

    assert keys_of("t", records) == {
        key_of("t", "agent", "c"),
        key_of("t", "agent", "d"),
        key_of("t", "patient", "Patient/p"),
    }


def test_the_key_of_a_value_stays_what_stored_blocks_have() -> None:
    assert key_of("t", "agent", "c") == -4_958_682_285_273_999_861
    assert len({key_of("t", kind, "c") for kind in ("agent", "patient", "entity")}) == 3


def test_a_first_version_has_a_name_of_its_own() -> None:
    assert name_of("A", "b", 1) == "A/b/_history/1"


def test_a_form_of_no_fields_is_no_query() -> None:
    assert form_query([]) == ""


def test_the_names_of_a_long_form_are_not_all_encoded() -> None:
    assert len(form_query([("," * 100, "") for _ in range(500)])) < 25_000
