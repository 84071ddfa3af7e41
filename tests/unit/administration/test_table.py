"""All operations together: each can be named, and none hides another one."""

from __future__ import annotations

import pytest

from fhirpub.administration.operation import Operation
from fhirpub.administration.table import OPERATIONS

IDS = [one.command for one in OPERATIONS]
FINAL = {
    *("client remove-passkey", "client disable", "token revoke", "endpoint rm", "erase report"),
    *("erase resume", "restore"),
}


def test_no_two_operations_have_one_name_or_one_address() -> None:
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)
    assert len({one.command for one in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_the_blanks_of_a_path_are_its_required_parameters(operation: Operation) -> None:
    in_path = [one.name for one in operation.parameters if one.place == "path"]

    assert sorted(in_path) == sorted(operation.blanks)
    assert all(one.required for one in operation.parameters if one.place == "path")


@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_only_what_changes_something_has_a_body(operation: Operation) -> None:
    if operation.method in ("GET", "DELETE"):
        assert all(one.place != "body" for one in operation.parameters)


@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_what_cannot_be_undone_is_marked(operation: Operation) -> None:
    assert operation.is_final is (operation.command in FINAL)


@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_what_adds_something_is_answered_with_201(operation: Operation) -> None:
    adds = operation.method == "POST" and operation.command in {
        *("tenant add", "client add", "client add-person", "client invite", "endpoint add"),
    }

    assert operation.status == (201 if adds else 200)


@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_no_parameter_is_named_twice(operation: Operation) -> None:
    names = [one.name for one in operation.parameters]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("operation", OPERATIONS, ids=IDS)
def test_summaries_and_parameters_are_explained(operation: Operation) -> None:
    assert operation.summary
    assert all(one.text for one in operation.parameters)
