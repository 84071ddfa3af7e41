"""Requests of the entries of a batch, and why a Bundle or an entry cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub.errors import InvalidContent, Issue, TooLarge
from fhirpub.fhir.batch.envelope import CONDITIONS, Entry, EntryRequest, read_batch, urns_in
from fhirpub.problems import ContentProblem, RequestProblem
from fhirpub.runtime.stages import run_to_completion

MALFORMED = ContentProblem.ELEMENT_MALFORMED
REQUIRED = ContentProblem.ELEMENT_REQUIRED
UNKNOWN = ContentProblem.ELEMENT_UNKNOWN
AT = "Bundle.entry[0]"
LONGEST_SHELL = 64 * 1024


def bundle(*entries: Any, **changes: Any) -> bytes:
    body = {"resourceType": "Bundle", "type": "batch", "entry": [*entries], **changes}
    return json.dumps(body).encode()


def entries_of(body: bytes, most: int = 10) -> list[Entry]:
    return run_to_completion(read_batch(None, body, most=most))


def get(**changes: Any) -> dict[str, Any]:
    return {"request": {"method": "GET", "url": "Patient/1"}, **changes}


def asking(**changes: Any) -> dict[str, Any]:
    return {"request": {"method": "GET", "url": "Patient/1", **changes}}


def read(entry: Any) -> EntryRequest:
    [found] = entries_of(bundle(entry))
    assert isinstance(found, EntryRequest), found
    return found


def wrong(entry: Any) -> list[tuple[str, str]]:
    return [(issue.expression, issue.diagnostics) for issue in issues_of(entry)]


def issues_of(entry: Any) -> list[Issue]:
    [found] = entries_of(bundle(entry))
    assert isinstance(found, InvalidContent), found
    return [*found.issues]


def refused(body: bytes) -> list[Issue]:
    with pytest.raises(InvalidContent) as caught:
        entries_of(body)
    return [*caught.value.issues]


def test_an_entry_is_read_with_its_resource_as_it_was_sent() -> None:
    entry = (
        '{"fullUrl":"urn:uuid:1","resource": {"a" :1.0} ,"request":{"method":"POST","url":"A"}}'
    )
    body = f'{{"resourceType":"Bundle","type":"batch","entry":[{entry}]}}'.encode()

    assert entries_of(body) == [
        EntryRequest(
            method="POST",
            url="A",
            conditions={},
            resource=b'{"a" :1.0}',
            full_url="urn:uuid:1",
        )
    ]


def test_an_entry_without_a_resource_has_none() -> None:
    assert read(get()) == EntryRequest("GET", "Patient/1", {}, b"", "")


def test_a_byte_order_mark_is_skipped() -> None:
    assert len(entries_of(b"\xef\xbb\xbf" + bundle(get()))) == 1


def test_entries_stay_in_their_order_beside_wrong_ones() -> None:
    first, second, third = entries_of(bundle(get(), 7, asking(url="Patient/2")))

    assert isinstance(first, EntryRequest)
    assert isinstance(second, InvalidContent)
    assert second.issues[0].expression == "Bundle.entry[1]"
    assert isinstance(third, EntryRequest)
    assert third.url == "Patient/2"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_a_method_that_writes_needs_a_resource(method: str) -> None:
    at, said = f"{AT}.resource", f"is required for {method}"

    assert issues_of(asking(method=method)) == [Issue.error(REQUIRED, said, at)]
    assert read({**asking(method=method), "resource": {}}).method == method


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_a_method_that_does_not_write_has_no_resource(method: str) -> None:
    at, said = f"{AT}.resource", f"must be absent for {method}"

    assert wrong({**asking(method=method), "resource": {"a": 1}}) == [(at, said)]
    assert read(asking(method=method)).method == method


@pytest.mark.parametrize("method", ["get", "OPTIONS", "", 7, None, ["GET"]])
def test_a_method_is_one_of_http(method: Any) -> None:
    [issue] = issues_of(asking(method=method))

    said = "must be GET, HEAD, POST or PATCH"
    at = f"{AT}.request.method"
    assert issue == Issue.error(RequestProblem.METHOD_UNSUPPORTED, said, at)


@pytest.mark.parametrize("url", ["", "a b", "a#b", "a\n", "a\x7f", "\xa0", 7, None])
def test_a_url_has_neither_blanks_nor_a_fragment(url: Any) -> None:
    [issue] = issues_of(asking(url=url))

    said = "is required: the address below the FHIR base, without blanks"
    assert issue == Issue.error(REQUIRED, said, f"{AT}.request.url")


def test_a_url_has_at_most_8192_characters() -> None:
    assert read(asking(url="a" * 8192)).url == "a" * 8192

    [issue] = issues_of(asking(url="a" * 8193))

    said = "has more than 8192 characters"
    at = f"{AT}.request.url"
    assert issue == Issue.error(RequestProblem.ADDRESS_TOO_LONG, said, at)


def test_conditions_are_those_that_are_stated() -> None:
    stated = {name: f"{name}-1" for name in CONDITIONS}

    assert read(asking(**stated)).conditions == stated
    assert read(asking(ifMatch="")).conditions == {"ifMatch": ""}


def test_each_condition_stands_for_its_header() -> None:
    assert CONDITIONS == {
        "ifMatch": "If-Match",
        "ifNoneMatch": "If-None-Match",
        "ifModifiedSince": "If-Modified-Since",
        "ifNoneExist": "If-None-Exist",
    }


@pytest.mark.parametrize("value", ["é", "a\r\nb", "\x7f", 7, None, ["a"]])
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_is_a_text_that_a_header_can_have(name: str, value: Any) -> None:
    said = "must be a text of visible ASCII characters"

    assert wrong(asking(**{name: value})) == [(f"{AT}.request.{name}", said)]


@pytest.mark.parametrize("value", ["é", "a\n", 7, None])
def test_a_full_url_is_a_text_of_visible_characters(value: Any) -> None:
    said = "must be a text of visible ASCII characters"

    assert wrong(get(fullUrl=value)) == [(f"{AT}.fullUrl", said)]


@pytest.mark.parametrize("entry", [7, "a", None, [], True])
def test_an_entry_is_an_object(entry: Any) -> None:
    said = "must be an object with a request"

    assert issues_of(entry) == [Issue.error(MALFORMED, said, AT)]


@pytest.mark.parametrize("request_sent", [None, 7, "GET", []])
def test_an_entry_needs_a_request(request_sent: Any) -> None:
    said = "is required: the method and the url of the request"

    expected = [Issue.error(REQUIRED, said, f"{AT}.request")]
    assert issues_of({"request": request_sent}) == expected
    assert issues_of({}) == expected


@pytest.mark.parametrize("resource", [7, "a", [], False])
def test_a_resource_is_an_object(resource: Any) -> None:
    assert (f"{AT}.resource", "must be a resource") in wrong(get(resource=resource))


def test_unknown_properties_are_named_with_their_places() -> None:
    said = "has properties that FHIR R4 does not have here: "
    entry = {"response": {}, "request": {"method": "GET", "url": "a", "body": "b"}}

    assert wrong(entry) == [(AT, f"{said}response"), (f"{AT}.request", f"{said}body")]
    assert issues_of(entry)[0].details == UNKNOWN


def test_siblings_and_extensions_of_an_entry_are_known() -> None:
    entry = get(id="a", extension=[], link=[], _fullUrl={"id": "b"})
    entry["request"] |= {"id": "a", "extension": [], "_url": {"id": "c"}}

    assert read(entry).url == "Patient/1"


def test_all_problems_of_an_entry_are_reported_in_order() -> None:
    entry = {"a": 1, "fullUrl": 7, "request": {"b": 1, "method": "x", "url": ""}}

    places = [place for place, _said in wrong(entry)]

    assert places == [
        AT,
        f"{AT}.request",
        f"{AT}.fullUrl",
        f"{AT}.request.method",
        f"{AT}.request.url",
    ]


def test_what_surrounds_a_resource_has_at_most_64_kilobytes() -> None:
    fits = {"id": "", "resource": {"a": 1}, **asking(method="POST")}
    outside = len(json.dumps(fits)) - len('{"a": 1}')
    fits["id"] = "a" * (LONGEST_SHELL - outside)

    assert read(fits).resource == b'{"a": 1}'
    fits["id"] += "a"
    [issue] = issues_of(fits)

    assert issue == Issue.error(
        ContentProblem.BODY_TOO_LARGE,
        "has more than 65536 bytes outside of its resources",
        AT,
        code="too-costly",
    )


def test_an_entry_without_a_resource_has_at_most_64_kilobytes() -> None:
    entry = get(id="")
    entry["id"] = "a" * (LONGEST_SHELL - len(json.dumps(entry)))

    assert read(entry).method == "GET"
    entry["id"] += "a"
    assert issues_of(entry)[0].details == ContentProblem.BODY_TOO_LARGE


def test_a_long_resource_does_not_count_for_its_entry() -> None:
    entry = {**asking(method="POST"), "resource": {"a": "b" * LONGEST_SHELL}}

    assert len(read(entry).resource) > LONGEST_SHELL


def test_a_long_bundle_does_not_count_for_its_entries() -> None:
    entry = get(id="a" * 40_000)

    assert len(entries_of(bundle(entry, entry))) == 2


def test_what_surrounds_the_entries_has_at_most_64_kilobytes() -> None:
    [issue] = refused(bundle(get(), id="a" * LONGEST_SHELL))

    assert (issue.expression, issue.code) == ("Bundle", "too-costly")


def test_a_bundle_needs_a_type() -> None:
    body = json.dumps({"resourceType": "Bundle", "entry": []}).encode()

    assert refused(body) == [Issue.error(REQUIRED, "is required: batch", "Bundle.type")]


def test_a_transaction_is_refused_with_what_to_do_about_it() -> None:
    said = (
        "transactions are not supported: send the type batch, whose entries succeed or fail "
        "one by one, or register resources that belong together by one $register"
    )

    assert refused(bundle(get(), type="transaction")) == [
        Issue.error(RequestProblem.BATCH_UNSUPPORTED, said, "Bundle.type")
    ]


@pytest.mark.parametrize("kind", ["history", "Batch", "", 7, ["batch"]])
def test_a_bundle_is_of_the_type_batch(kind: Any) -> None:
    assert refused(bundle(get(), type=kind)) == [
        Issue.error(RequestProblem.BATCH_UNSUPPORTED, "must be batch", "Bundle.type")
    ]


def test_all_problems_of_a_bundle_are_reported() -> None:
    body = json.dumps({"resourceType": "Bundle", "total": 1, "entry": 7}).encode()

    assert [(issue.expression, issue.details) for issue in refused(body)] == [
        ("Bundle.type", REQUIRED),
        ("Bundle", UNKNOWN),
        ("Bundle.entry", MALFORMED),
    ]


def test_a_bundle_may_have_what_r4_gives_it() -> None:
    known = {"id": "a", "meta": {}, "language": "es", "identifier": {}, "timestamp": "2020"}

    assert entries_of(bundle(**known, link=[], signature={}, _type={"id": "a"})) == []


def test_a_bundle_without_entries_is_an_empty_batch() -> None:
    assert entries_of(b'{"resourceType":"Bundle","type":"batch"}') == []


def test_parameters_are_no_bundle_and_belong_to_their_operation() -> None:
    [issue] = refused(b'{"resourceType":"Parameters"}')

    said = (
        "the body must be a Bundle, and is a Parameters: send it to the operation itself, such "
        "as $register"
    )
    assert issue.diagnostics == said


def test_a_batch_has_at_most_so_many_entries() -> None:
    assert len(entries_of(bundle(get(), get()), most=2)) == 2
    with pytest.raises(TooLarge):
        entries_of(bundle(get(), get(), get()), most=2)


def test_what_is_no_json_in_an_entry_is_refused_without_line_numbers() -> None:
    [issue] = issues_of({**get(), "id": "\ud800"})

    assert issue.expression == AT
    assert "(line" not in issue.diagnostics


def test_urns_are_found_once_and_in_order() -> None:
    resource = (
        b'{"a":{"reference": "urn:uuid:2"},"b":{"reference" :"urn:oid:1.2"},'
        b'"c":{"reference":"urn:uuid:2"},"d":{"reference":"Patient/1"},"e":"urn:uuid:3"}'
    )

    assert urns_in(resource) == ["urn:oid:1.2", "urn:uuid:2"]


@pytest.mark.parametrize(("length", "expected"), [(80, 1), (81, 0)])
def test_a_urn_has_at_most_80_characters_behind_its_kind(length: int, expected: int) -> None:
    resource = f'{{"reference":"urn:uuid:{"a" * length}"}}'.encode()

    assert len(urns_in(resource)) == expected
