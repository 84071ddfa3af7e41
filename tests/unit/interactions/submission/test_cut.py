"""A body whose documents are cut out of its bytes is prepared as the whole body is."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config
from fhirpub.errors import Refused
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.register import Candidate, prepare_registration
from fhirpub.interactions.submission import cut as cutting
from fhirpub.interactions.submission.cut import (
    MAX_CUTS,
    MIN_CUT,
    MisplacedCut,
    cut_documents,
    read_cut,
)
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import run_to_completion
from fhirpub.tenant import Tenant
from tests.bodies import document, patient, register_body

TENANT = Tenant("00000000-0000-4000-8000-000000000001", "Lab", b"s" * 32, 0, disabled=False)
CONTEXT = create_context(Config(), clock=lambda: 1_800_000_000_000)
LARGE = bytes(range(256)) * 100
BASE64 = base64.b64encode(LARGE).decode()


def large_body(**changes: Any) -> dict[str, Any]:
    return register_body("A-1", presentedForm=[document(LARGE, **changes)])


def prepared(raw: bytes, read_body: Any = from_parameters) -> Any:
    """Return what would be stored, or the issues of the refusal."""
    work = prepare_registration(
        CONTEXT,
        raw,
        is_xml=False,
        read_body=read_body,
        type_name="DiagnosticReport",
        tenant=TENANT,
    )
    try:
        return run_to_completion(work)
    except Refused as refusal:
        return refusal.issues


def cut(raw: bytes) -> tuple[bytes, Mapping[str, bytes]]:
    """Return what is left, and the documents; the whole body and none if nothing is cut out."""
    return cut_documents(raw, max_rest=len(raw)) or (raw, {})


def prepared_without_documents(raw: bytes) -> Any:
    rest, documents = cut(raw)
    return prepared(rest, partial(read_cut, read=from_parameters, documents=documents))


def test_a_large_document_is_cut_out_and_stored_alike() -> None:
    raw = dumps(large_body())

    rest, documents = cut(raw)

    assert len(rest) < len(raw) - len(BASE64) + 100
    assert [*documents.values()] == [LARGE]
    found = prepared_without_documents(raw)
    assert isinstance(found, Candidate)
    assert found == prepared(raw)


def test_several_documents_are_cut_out_and_stored_alike() -> None:
    forms = [document(LARGE + bytes([number])) for number in range(3)]
    raw = json.dumps(register_body("A-1", presentedForm=forms), indent=3).encode()

    assert len(cut(raw)[1]) == 3
    assert prepared_without_documents(raw) == prepared(raw)


def test_a_name_with_an_escape_is_left_to_the_parser() -> None:
    raw = dumps(large_body()).replace(b'"data":', b'"da\\u0074a":')

    assert cut(raw) == (raw, {})
    assert isinstance(prepared(raw), Candidate)


@pytest.mark.parametrize(("blanks", "documents"), [(64, 1), (65, 0)])
def test_few_blanks_may_stand_around_the_colon(blanks: int, documents: int) -> None:
    space = b" " * blanks
    raw = dumps(large_body()).replace(b'"data":', b'"data"' + space + b":" + space)

    assert len(cut(raw)[1]) == documents


def test_nothing_is_cut_out_if_too_much_is_left() -> None:
    raw = dumps(large_body())
    left = len(cut(raw)[0])

    assert cut_documents(raw, max_rest=left) is not None
    assert cut_documents(raw, max_rest=left - 1) is None


def test_a_short_document_stays() -> None:
    raw = dumps(register_body("A-1"))

    assert cut(raw) == (raw, {})


@pytest.mark.parametrize(("length", "documents"), [(MIN_CUT - 4, 0), (MIN_CUT, 1)])
def test_the_shortest_document_that_is_cut_out(length: int, documents: int) -> None:
    raw = b'{"data":"' + b"A" * length + b'"}'

    found = cut_documents(raw, max_rest=len(raw))

    assert len(found[1] if found else {}) == documents


@pytest.mark.parametrize(
    "text",
    [
        BASE64[:-1],
        BASE64[:-4] + "A===",
        BASE64[:-4] + "AAB=",
        BASE64.replace("A", "-", 1),
        BASE64.replace("A", "é", 1),
        f"{BASE64[:76]} {BASE64[76:]}",
        f"{BASE64[:76]}\\n{BASE64[76:]}",
        f"{BASE64[:76]}\n{BASE64[76:]}",
        f"{BASE64[:76]}\x00{BASE64[76:]}",
        f"\\u0041{BASE64}",
    ],
)
def test_what_is_not_exactly_base64_stays(text: str) -> None:
    raw = dumps(large_body()).replace(BASE64.encode(), text.encode())

    assert cut(raw) == (raw, {})


@pytest.mark.parametrize(
    "body",
    [
        large_body(extension=[{"url": "urn:x", "valueAttachment": {"data": BASE64}}]),
        register_body("A-1", extension=[{"url": "urn:x", "valueAttachment": {"data": BASE64}}]),
        register_body("A-1", text={"data": BASE64}),
        {
            **register_body("A-1"),
            "parameter": [
                *register_body("A-1")["parameter"],
                {"name": "photo", "resource": patient(photo=[{"data": BASE64}])},
            ],
        },
    ],
)
def test_what_is_no_document_of_the_resource_is_to_be_read_whole(body: dict[str, Any]) -> None:
    with pytest.raises(MisplacedCut):
        prepared_without_documents(dumps(body))


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b'"data":', b'"data":"",'),
        lambda raw: raw.replace(b'"data":', b'"data":"x","data":'),
        lambda raw: raw.replace(b'"data":', b'\\"data":'),
        lambda raw: raw.replace(b'"data":', b'"data" "'),
        lambda raw: raw.replace(b'"title":', b'"title":"data","x":'),
        lambda raw: raw[: raw.index(BASE64.encode()) + MIN_CUT + 1],
        lambda raw: raw + b'"data":"' + BASE64.encode(),
        lambda raw: raw + b'"data":"' + BASE64.encode() + b'"',
    ],
)
def test_what_is_wrong_stays_wrong(change: Callable[[bytes], bytes]) -> None:
    raw = change(dumps(large_body()))

    found = prepared_without_documents(raw)

    assert not isinstance(found, Candidate)
    assert not isinstance(prepared(raw), Candidate)


@pytest.mark.parametrize("before", range(12))
def test_a_document_is_found_across_the_end_of_what_is_searched_at_a_time(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "_SEARCHED_BYTES", 12)
    raw = b" " * before + b'{"data":"' + BASE64.encode() + b'"}'

    assert [*cut(raw)[1].values()] == [LARGE]


@pytest.mark.parametrize(
    "first", [b'"data":1', b'"data":{}', b'"x":"data"', b'"x":["data"]', b'"data":""']
)
def test_a_document_is_found_behind_the_same_name_of_something_else(first: bytes) -> None:
    raw = b"{" + first + b',"y":{"data":"' + BASE64.encode() + b'"}}'

    assert [*cut(raw)[1].values()] == [LARGE]


def test_at_most_a_hundred_places_are_looked_at() -> None:
    forms = [document(LARGE + number.to_bytes(2)) for number in range(MAX_CUTS + 1)]

    assert len(cut(dumps({"presentedForm": forms}))[1]) == MAX_CUTS
    assert cut(b'"data",' * MAX_CUTS + dumps(forms[0]))[1] == {}


VALUES = {
    "large": BASE64,
    "incomplete": BASE64[:-1],
    "with a line break": f"{BASE64}\n",
    "a name": "data",
    "a name with a mark": '"data":"',
    "empty": "",
}


@given(
    names=st.lists(
        st.sampled_from(["data", '"data', 'x"data":"', "\\data", "date"]), unique=True, max_size=4
    ),
    kinds=st.lists(st.sampled_from(sorted(VALUES)), max_size=6),
    space=st.text(" \t\r\n", max_size=2),
)
def test_what_is_left_parses_as_the_whole(names: list[str], kinds: list[str], space: str) -> None:
    values = [VALUES[kind] for kind in kinds]
    value = [dict(zip(names, values, strict=False)), values, [{"data": one} for one in values]]
    raw = json.dumps(value, separators=(f"{space},", f":{space}")).encode()

    rest, documents = cut(raw)

    read = json.dumps(loads(rest))
    for token, data in documents.items():
        read = read.replace(token, base64.b64encode(data).decode())
    assert json.loads(read) == value
