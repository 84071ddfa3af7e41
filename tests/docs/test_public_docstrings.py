"""The docstrings of the public modules, from which the API reference is generated."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from fhirpub import plugin_api, testing
from fhirpub.storage import (
    client_activity_contract,
    contract,
    criteria,
    quota_contract,
    records,
    store,
    webhook_contract,
    webhook_records,
)

_SECTION = re.compile(r"^([A-Z][a-z]+):\n((?:    .*\n|\n(?=    ))+)", re.MULTILINE)
_ITEM = re.compile(r"^    \*{0,2}(\w+): \S", re.MULTILINE)


def sections_of(member: Any) -> dict[str, str]:
    """Return the sections of a docstring in Google's style, by their titles."""
    return dict(_SECTION.findall(f"{inspect.getdoc(member)}\n"))


def described_in(member: Any, section: str) -> list[str]:
    """Return the names that a section describes."""
    return _ITEM.findall(sections_of(member).get(section, ""))


def _modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Yield a package and all modules below it."""
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def _members_of(scope: Any, module: str) -> Iterator[tuple[str, Any]]:
    """Yield the public classes, functions and properties that a scope defines.

    Tests are documented by their names, and some properties among the attributes of their class.
    """
    attributes = described_in(scope, "Attributes")
    for name, member in vars(scope).items():
        plain = inspect.unwrap(getattr(member, "__func__", member))
        origin = plain.fget if isinstance(plain, property) else plain
        if getattr(origin, "__module__", "") != module or name in attributes:
            continue
        if name.startswith(("_", "test_")):
            continue
        if inspect.isclass(plain):
            yield from _members_of(plain, module)
        elif not inspect.isfunction(origin):
            continue
        place = module if inspect.ismodule(scope) else f"{module}.{scope.__name__}"
        yield f"{place}.{name}", plain


PUBLIC = {
    name: member
    for module in (
        *(store, contract, records, webhook_contract, webhook_records, quota_contract, criteria),
        client_activity_contract,
        *_modules_of(plugin_api),
        *_modules_of(testing),
    )
    for name, member in _members_of(module, module.__name__)
}
FUNCTIONS = {name: member for name, member in PUBLIC.items() if inspect.isfunction(member)}
DATACLASSES = {name: member for name, member in PUBLIC.items() if dataclasses.is_dataclass(member)}
PROMISES = {
    f"{seam.__name__}.{name}": method
    for seam in (
        *(contract.Resources, contract.CredentialStore, contract.StoreAdmin),
        *(webhook_contract.Endpoints, webhook_contract.DeliveryQueueStore, store.Store),
        *(quota_contract.QuotaStore, client_activity_contract.ClientActivity),
    )
    for name, method in vars(seam).items()
    if inspect.isfunction(method)
}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_member_has_a_summary_of_one_line(name: str) -> None:
    summary, *rest = (PUBLIC[name].__doc__ or "").splitlines()

    assert summary.endswith(".")
    assert not any(rest[:1])


@pytest.mark.parametrize("name", PROMISES)
def test_every_method_of_a_store_states_what_it_returns(name: str) -> None:
    returns = inspect.signature(PROMISES[name]).return_annotation != "None"

    assert returns == bool({"Returns", "Yields"} & {*sections_of(PROMISES[name])})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_describes_arguments_describes_all_of_them(name: str) -> None:
    described = described_in(FUNCTIONS[name], "Args")
    parameters = [*inspect.signature(FUNCTIONS[name]).parameters]

    assert described in ([], [name for name in parameters if name not in ("self", "cls")])


@pytest.mark.parametrize("name", DATACLASSES)
def test_every_field_of_a_record_is_described(name: str) -> None:
    fields = [field.name for field in dataclasses.fields(DATACLASSES[name])]

    assert described_in(DATACLASSES[name], "Attributes") == fields


def test_the_public_members_are_found() -> None:
    assert len(PROMISES) >= 50
    assert {"fhirpub.plugin_api.parts.patient", "fhirpub.testing.clock.HandClock.forward"} <= {
        *PUBLIC
    }
