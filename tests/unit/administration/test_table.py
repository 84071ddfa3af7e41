"""All operations together: each can be named, and none hides another one."""

from __future__ import annotations

import importlib
import pkgutil

import fhirpub.administration
from fhirpub.administration.operation import Operation
from fhirpub.administration.table import OPERATIONS

FINAL = {
    *("client remove-passkey", "client disable", "token revoke", "endpoint rm", "erase report"),
    *("erase resume", "restore"),
}


def test_no_two_operations_have_one_name_or_one_address() -> None:
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)
    assert len({one.command for one in OPERATIONS}) == len(OPERATIONS)


def test_the_blanks_of_a_path_are_its_required_parameters() -> None:
    for operation in OPERATIONS:
        in_path = [one.name for one in operation.parameters if one.place == "path"]

        assert sorted(in_path) == sorted(operation.blanks)
        assert all(one.required for one in operation.parameters if one.place == "path")


def test_only_what_changes_something_has_a_body() -> None:
    for operation in OPERATIONS:
        if operation.method in ("GET", "DELETE"):
            assert all(one.place != "body" for one in operation.parameters)


def test_what_cannot_be_undone_is_marked() -> None:
    for operation in OPERATIONS:
        assert operation.is_final is (operation.command in FINAL)


def test_what_adds_something_is_answered_with_201() -> None:
    for operation in OPERATIONS:
        adds = operation.method == "POST" and operation.command in {
            *("tenant add", "client add", "client add-person", "client invite", "endpoint add"),
        }

        assert operation.status == (201 if adds else 200)


def test_no_parameter_is_named_twice() -> None:
    for operation in OPERATIONS:
        names = [one.name for one in operation.parameters]

        assert len(set(names)) == len(names)


def test_summaries_and_parameters_are_explained() -> None:
    for operation in OPERATIONS:
        assert operation.summary
        assert all(one.text for one in operation.parameters)


def test_every_operation_that_a_module_declares_can_be_named() -> None:
    package = fhirpub.administration
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = [importlib.import_module(module.name) for module in found]

    made = [one for module in modules for one in vars(module).values()]
    commands = {one.command for one in made if isinstance(one, Operation)}
    assert {one.command for one in OPERATIONS} == commands
