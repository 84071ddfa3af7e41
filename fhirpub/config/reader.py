"""Groups of settings: parsed from a TOML file and the environment, and described for reference.

A group is a dataclass whose fields are created by :func:`setting`. Problems are collected, so that
all of them are reported at once.
"""

from __future__ import annotations

import dataclasses
import inspect
import ipaddress
import json
import math
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from fhirpub.errors import ConfigurationError
from fhirpub.suggestion import did_you_mean

LAST_PORT = 65_535
LARGEST = 2**53
"""The largest number up to which floats represent every integer exactly."""
_PREFIX = "FHIRPUB_"
_WIDTH = 97

Groups = Mapping[str, Any]
"""The dataclass of each group, by the group's name."""


def setting(default: Any, meaning: str, *, secret: bool = False) -> Any:
    """Return a dataclass field whose meaning is printed into the reference file.

    No command prints the value of a ``secret`` one, and no traceback that shows the group.
    """
    metadata = {"meaning": meaning, "secret": secret}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret)


def describe(groups: Groups) -> Iterator[str]:
    """Yield the lines of a file with every key of the groups, commented out, at its default."""
    for name, group_type in groups.items():
        yield from ("", *_wrap(_first_paragraph(group_type)), f"[{name}]")
        for member in dataclasses.fields(group_type):
            yield from ("", *_wrap(member.metadata["meaning"]))
            choices = _choices(typing.get_type_hints(group_type)[member.name])
            if choices:
                yield f"# One of: {', '.join(choices)}."
            yield f"#{member.name} = {_toml(getattr(group_type(), member.name))}"


def _first_paragraph(group_type: type[Any]) -> str:
    return (inspect.getdoc(group_type) or "").partition("\n\n")[0]


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a file. Raises ConfigurationError."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))  # some editors add a BOM
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read: {problem.strerror}") from problem
    except ValueError as problem:  # not TOML, not UTF-8, or a number with thousands of digits
        raise ConfigurationError(f"{path}: is not TOML: {problem}") from problem


def check(
    tables: Mapping[str, Any], groups: Groups, problems: list[str], *, source: str
) -> dict[str, dict[str, Any]]:
    """Return the valid values of every group; add a message for each other to ``problems``."""
    values: dict[str, dict[str, Any]] = {name: {} for name in groups}
    for name, table in tables.items():
        if problem := _why_no_group(name, table, groups):
            problems.append(f"{source}: {problem}")
            continue
        hints = typing.get_type_hints(groups[name])
        for key, value in table.items():
            where = f"{source}: {key} in [{name}]"
            _take(values[name], key, value, hints, problems, where=where)
    return values


def _why_no_group(name: str, table: Any, groups: Groups) -> str:
    """Return why a member of the file is none of the groups, or an empty text."""
    if name not in groups and not isinstance(table, dict):
        return f"{name} is in no group{_groups_with(name, groups)}"
    if name not in groups:
        return f"unknown group [{name}]{_nearest_group(name, groups)}"
    return "" if isinstance(table, dict) else f"[{name}] must be a table"


def override(
    values: dict[str, dict[str, Any]],
    groups: Groups,
    environment: Mapping[str, str],
    problems: list[str],
) -> None:
    """Override values of the file with variables such as ``FHIRPUB_SERVER__PORT``."""
    for variable, name, key in settings_in(environment):
        if name not in groups:
            problems.append(f"{variable}: unknown group {name}{_nearest_group(name, groups)}")
            continue
        hints = typing.get_type_hints(groups[name])
        value = _from_text(environment[variable], hints.get(key))
        _take(values[name], key, value, hints, problems, where=variable)


def settings_in(environment: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the variables that are settings, each with its group and its key."""
    for variable in sorted(environment):
        name, double, key = variable.removeprefix(_PREFIX).lower().partition("__")
        if variable.startswith(_PREFIX) and double:
            yield variable, name, key


def wrong_networks(key: str, networks: Sequence[str]) -> list[str]:
    """Return a message for each entry of a key that is neither an address nor a network."""
    found = []
    for network in networks:
        try:
            ipaddress.ip_network(network, strict=False)
        except ValueError:
            found.append(f"{key}: {network} is neither an address nor a network")
    return found


def _take(
    members: dict[str, Any],
    key: str,
    value: Any,
    hints: Mapping[str, Any],
    problems: list[str],
    *,
    where: str,
) -> None:
    if key not in hints:
        problems.append(f"{where}: unknown key{_nearest(key, hints)}")
        return
    problem = _mismatch(value, hints[key])
    if problem:
        problems.append(f"{where}: {problem}")
        return
    members[key] = float(value) if hints[key] is float else value


def _mismatch(value: Any, hint: Any) -> str:
    """Return the problem with a value, or an empty string."""
    choices = _choices(hint)
    if choices:
        return "" if value in choices else f"must be one of {', '.join(choices)}"
    item = _item(hint)
    if item:
        good = isinstance(value, list) and not any(_mismatch(element, item) for element in value)
        return "" if good else f"must be a list of {_ITEMS[item]}"
    if isinstance(value, bool) != (hint is bool):
        return f"must be {_NAMES[hint]}"
    if not isinstance(value, (int, float) if hint is float else hint):
        return f"must be {_NAMES[hint]}"
    return _out_of_range(value) if hint in (int, float) else ""


def _out_of_range(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if value > LARGEST:
        return f"must be at most {LARGEST}"
    return "must not be negative" if value < 0 else ""


_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
_ITEMS = {str: "strings", int: "whole numbers", float: "numbers"}


def _item(hint: Any) -> Any:
    """Return the type of the items of a list type, or None for any other type."""
    return typing.get_args(hint)[0] if isinstance(hint, types.GenericAlias) else None


def _from_text(text: str, hint: Any) -> Any:
    """Convert a variable's text to the type of its key; return unreadable text unchanged."""
    if hint is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if hint in (int, float):
        try:
            return hint(text)
        except ValueError:
            return text
    item = _item(hint)
    if item:
        return [_from_text(part.strip(), item) for part in text.split(",") if part.strip()]
    return text


def _choices(hint: Any) -> tuple[str, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def _nearest(word: str, known: Mapping[str, Any]) -> str:
    return "; " + (did_you_mean(word, known) or f"expected one of {', '.join(sorted(known))}")


def _nearest_group(word: str, groups: Groups) -> str:
    nearest = _nearest(word, groups)
    others = "" if "did you mean" in nearest else ", or the name of an enabled plugin"
    return nearest + others


def _groups_with(key: str, groups: Groups) -> str:
    """Return a hint to the groups of a key that was written above all groups."""
    homes = [f"[{name}]" for name, group in groups.items() if key in typing.get_type_hints(group)]
    return (
        f"; put it below {' or '.join(homes)}" if homes else "; every key belongs below a [group]"
    )


def _wrap(text: str) -> list[str]:
    lines, line = [], "#"
    for word in text.split():
        if len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return [*lines, line]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    # What JSON escapes in a string, TOML escapes alike.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
