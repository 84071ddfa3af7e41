"""JSON Patch: its operations one after the other, what they copy, and what they must leave."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import BrokenRule, InvalidContent, TooLarge
from fhirpub.interactions.patch_formats import fields_of
from fhirpub.problems import ContentProblem, OperationProblem
from tests.unit.interactions.patches import (
    DATA_STAY,
    HASH_STAYS,
    KEPT,
    NOTHING_THERE,
    OTHER,
    REPORT,
    TEST_FAILED,
    before,
    divided,
    fields,
    issues,
    merge,
    not_updatable,
    operation_failed,
    patch,
    put,
)

OPS = "add, remove, replace, move, copy, test"


def malformed(*operations: Any) -> list[str]:
    with pytest.raises(InvalidContent) as refused:
        patch(*operations)
    assert {(place, problem) for place, problem, _rule in issues(refused)} == {
        ("DiagnosticReport", OperationProblem.PATCH_MALFORMED)
    }
    return [rule for _place, _problem, rule in issues(refused)]


def failed(*operations: Any) -> list[tuple[str, Any, str]]:
    with pytest.raises(BrokenRule) as refused:
        patch(*operations)
    return issues(refused)


def test_operations_run_in_their_order() -> None:
    found = patch(
        put("/status", "final", "test"),
        put("/status", "amended"),
        put("/status", "amended", "test"),
        put("/status", "corrected"),
    )

    assert found.names == {"status"}
    assert found.values == {"status": "corrected"}


def test_a_field_that_is_removed_has_no_value() -> None:
    found = patch({"op": "remove", "path": "/conclusion"})

    assert found.names == {"conclusion"}
    assert found.values == {}


def test_an_operation_within_a_field_changes_the_whole_field() -> None:
    found = patch(put("/presentedForm/0/title", "New"))

    assert found.names == {"presentedForm"}
    assert [one["title"] for one in found.values["presentedForm"]] == ["New", "Two"]


def test_a_test_names_no_field() -> None:
    found = patch(put("/code/text", "Blood count", "test"), put("/status", "amended"))

    assert found.names == {"status"}
    assert found.refused == ()


def test_a_move_changes_where_it_takes_from() -> None:
    found = patch({"op": "move", "from": "/code/text", "path": "/conclusion"})

    assert found.names == {"conclusion"}
    assert found.values == {"conclusion": "Blood count"}
    assert [issue.expression for issue in found.refused] == ["DiagnosticReport.code"]


def test_a_copy_leaves_where_it_takes_from() -> None:
    found = patch({"op": "copy", "from": "/code/text", "path": "/conclusion"})

    assert (found.values, found.refused) == ({"conclusion": "Blood count"}, ())


def test_the_whole_resource_cannot_be_updated() -> None:
    with pytest.raises(BrokenRule) as refused:
        patch(put("", {"resourceType": "DiagnosticReport"}))

    ((_place, _problem, rule),) = issues(refused)
    assert rule.startswith("(unknown) cannot be updated")


def test_each_field_that_cannot_be_updated_is_named_once() -> None:
    assert failed(put("/code/text", "x"), put("/code/text", "y"), put("/issued", "x", "add")) == [
        not_updatable("code"),
        not_updatable("issued"),
    ]


def test_a_resource_stays_as_it_was_while_a_patch_is_tried() -> None:
    stored = before()

    fields_of("json-patch", [put("/presentedForm/0/title", "New")], stored, REPORT, most=0)

    assert stored == before()


def test_numbers_are_compared_as_they_are_written_in_decimals() -> None:
    stored = {**before(), "conclusion": 13.2}

    operations = [put("/conclusion", 13.2, "test"), put("/status", "amended")]

    assert fields_of("json-patch", operations, stored, REPORT, most=0).names == {"status"}


# Operations that are none


def test_each_malformed_operation_is_reported_by_its_number() -> None:
    assert malformed(
        "x",
        {"op": "put", "path": "/status"},
        put("/status", "amended"),
        {"op": "add"},
        {"op": "replace", "path": "/status"},
        {"op": "test", "path": "/status"},
        {"op": "move", "path": "/status"},
        {"op": "copy"},
        {"op": "remove"},
    ) == [
        f"operation 1 must be an object whose op is one of {OPS}",
        f"operation 2 must be an object whose op is one of {OPS}",
        "operation 4 lacks path and value",
        "operation 5 lacks value",
        "operation 6 lacks value",
        "operation 7 lacks from",
        "operation 8 lacks path and from",
        "operation 9 lacks path",
    ]


@pytest.mark.parametrize("pointer", ["status", 1, None, ["/status"], "/a~2", "/" * 65])
def test_what_is_no_pointer_is_refused(pointer: Any) -> None:
    assert malformed({"op": "remove", "path": pointer}) == [
        "operation 1 has no JSON Pointer as path"
    ]
    assert malformed({"op": "move", "path": "/status", "from": pointer}) == [
        "operation 1 has no JSON Pointer as from"
    ]


def test_a_member_that_an_operation_does_not_take_is_ignored() -> None:
    assert patch({**put("/status", "amended"), "from": 1, "x": 2}).names == {"status"}


def test_a_pointer_of_64_steps_is_read() -> None:
    assert failed({"op": "remove", "path": "/conclusion" + "/a" * 63}) == [
        operation_failed(f"operation 1: {NOTHING_THERE}")
    ]


@pytest.mark.parametrize("body", [None, "x", {}, {"op": "add"}, put("/status", "amended")])
def test_a_body_that_is_no_list_is_of_another_form(body: Any) -> None:
    with pytest.raises(InvalidContent) as refused:
        fields("json-patch", body)

    ((place, problem, said),) = issues(refused)
    assert (place, problem) == ("DiagnosticReport", OperationProblem.PATCH_OF_OTHER_FORM)
    assert "an array of operations" in said


def test_a_thousand_operations_are_read_and_one_more_is_not() -> None:
    assert patch(*[put("/status", "amended")] * 1_000).names == {"status"}

    assert malformed(*[put("/status", "amended")] * 1_001) == [
        "the body must be a list of at most 1000 operations"
    ]


# Operations that fail


@pytest.mark.parametrize(
    "operation",
    [
        put("/conclusion/a", "x"),
        put("/presentedForm/2", {}),
        put("/presentedForm/3", {}, "add"),
        put("/presentedForm/x", {}, "add"),
        {"op": "remove", "path": "/nothing"},
        {"op": "move", "from": "/nothing", "path": "/conclusion"},
        {"op": "copy", "from": "/nothing", "path": "/conclusion"},
        {"op": "move", "from": "/presentedForm", "path": "/presentedForm/0"},
    ],
)
def test_an_operation_without_its_place_fails_with_its_number(operation: dict[str, Any]) -> None:
    found = failed(put("/status", "amended"), operation)

    assert found[-1] == operation_failed(f"operation 2: {NOTHING_THERE}")


@pytest.mark.parametrize("value", ["amended", None, ["final"]])
def test_a_test_that_fails_is_refused_with_its_number(value: Any) -> None:
    assert failed(put("/status", value, "test"), put("/status", "amended")) == [
        operation_failed(f"operation 1: {TEST_FAILED}")
    ]


def test_fields_that_cannot_be_updated_come_before_an_operation_that_fails() -> None:
    assert failed(put("/code/text", "x"), put("/conclusion/a", "x")) == [
        not_updatable("code"),
        operation_failed(f"operation 2: {NOTHING_THERE}"),
    ]


# Sizes


def copies(count: int) -> list[dict[str, Any]]:
    """Return copies of a text of 10 characters, which counts as 74 bytes."""
    return [
        put("/conclusion", "x" * 10),
        *[{"op": "copy", "from": "/conclusion", "path": "/status"}] * count,
    ]


def test_copies_may_take_as_many_bytes_as_the_limit() -> None:
    assert patch(*copies(3), most=3 * 74).values["status"] == "x" * 10

    with pytest.raises(TooLarge) as refused:
        patch(*copies(3), most=3 * 74 - 1)

    assert issues(refused) == [
        ("", ContentProblem.BODY_TOO_LARGE, "the operations make the resource too large")
    ]


def test_copies_may_take_128_kib_whatever_the_limit_of_a_resource_is() -> None:
    long = "x" * (131_072 - 64)
    operations = [
        put("/conclusion", long),
        {"op": "copy", "from": "/conclusion", "path": "/status"},
    ]
    patch(*operations, most=10**9)

    with pytest.raises(TooLarge):
        patch(put("/conclusion", f"{long}x"), operations[1], most=10**9)


def test_what_is_below_a_value_is_copied_with_it() -> None:
    value = {"a": ["x" * 5, {"b": 1}], "c": {}}
    weight = 6 * 64 + 5
    operations = [
        put("/conclusion", value),
        {"op": "copy", "from": "/conclusion", "path": "/status"},
    ]
    patch(*operations, most=weight)

    with pytest.raises(TooLarge):
        patch(*operations, most=weight - 1)


def test_a_resource_that_becomes_too_deep_is_refused() -> None:
    steps = [
        operation
        for _ in range(70)
        for operation in (
            {"op": "move", "from": "/conclusion", "path": "/status"},
            put("/conclusion", {}, "add"),
            {"op": "move", "from": "/status", "path": "/conclusion/a"},
        )
    ]

    with pytest.raises(InvalidContent) as refused:
        patch(*steps)

    assert [problem for _place, problem, _rule in issues(refused)] == [
        ContentProblem.BODY_TOO_COMPLEX
    ]


# Documents


def test_a_document_may_change_its_place_and_its_title() -> None:
    found = patch(
        {"op": "move", "from": "/presentedForm/1", "path": "/presentedForm/0"},
        put("/presentedForm/0/title", "First"),
    )

    assert [(one["data"], one["title"]) for one in found.values["presentedForm"]] == [
        (OTHER, "First"),
        (KEPT, "One"),
    ]


def test_a_document_may_be_taken_away_or_stand_twice() -> None:
    assert len(patch({"op": "remove", "path": "/presentedForm/0"}).values["presentedForm"]) == 1
    twice = patch({"op": "copy", "from": "/presentedForm/0", "path": "/presentedForm/-"})
    assert len(twice.values["presentedForm"]) == 3


@pytest.mark.parametrize(
    "operation",
    [
        put("/presentedForm/1/hash", "h1"),
        put("/presentedForm/1/hash", None),
        put("/presentedForm/1/hash", ["h2"]),
        {"op": "remove", "path": "/presentedForm/1/hash"},
        {"op": "copy", "from": "/presentedForm/0/data", "path": "/presentedForm/1/data"},
    ],
)
def test_the_hash_of_a_document_that_stays_is_its_own(operation: dict[str, Any]) -> None:
    assert failed(operation) == [divided(HASH_STAYS, ".presentedForm[1].hash")]


@pytest.mark.parametrize(
    "path", ["/conclusion", "/presentedForm/0/title", "/presentedForm/0/extension"]
)
def test_data_go_nowhere_without_their_attachment(path: str) -> None:
    assert divided(DATA_STAY) in failed(
        {"op": "copy", "from": "/presentedForm/1/data", "path": path}
    )


def test_documents_that_are_divided_come_after_fields_that_cannot_be_updated() -> None:
    assert failed(
        put("/code/text", "x"),
        {"op": "copy", "from": "/presentedForm/1/data", "path": "/conclusion"},
    ) == [not_updatable("code"), divided(DATA_STAY)]


def test_a_merge_patch_brings_no_data_that_are_kept_elsewhere() -> None:
    with pytest.raises(BrokenRule) as refused:
        merge(code={}, presentedForm=[{"data": KEPT, "hash": "h1"}, {"data": KEPT, "hash": "x"}])

    assert issues(refused) == [
        not_updatable("code"),
        divided(HASH_STAYS, ".presentedForm[1].hash"),
    ]
