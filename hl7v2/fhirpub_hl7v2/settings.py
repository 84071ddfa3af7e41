"""The settings of the mapping: what messages leave open, read from a TOML file."""

from __future__ import annotations

import tomllib
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from fhirpub.config.settings import ABSOLUTE_URI
from fhirpub_hl7v2.text import CHARACTER_SETS

OTHERS = "*"
"""The assigning authorities that are not named; their systems begin with this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What messages leave open; docs/hl7v2.md explains each of them."""

    character_set: str = "UTF-8"
    time_zone: str = ""
    category: str = "LAB"
    processing_ids: tuple[str, ...] = ("P",)
    report_identifier: str = "order"
    report_system: str = ""
    patient_system: str = ""
    organization_name: str = ""
    organization_system: str = ""
    organization_value: str = ""
    authorities: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)

    @property
    def zone(self) -> zoneinfo.ZoneInfo | None:
        """The time zone of times without an offset."""
        return zoneinfo.ZoneInfo(self.time_zone) if self.time_zone else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_uri(value: Any) -> bool:
    return isinstance(value, str) and bool(ABSOLUTE_URI.fullmatch(value))


def _is_zone(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(zoneinfo.ZoneInfo(value))
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return False


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_uris(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_uri, value.values()))


_URI = (_is_uri, "must be an absolute URI in quotes")
_TEXT = (_is_text, "must be a text in quotes")
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "message.character_set": (
        lambda value: isinstance(value, str) and value.upper() in CHARACTER_SETS,
        f"must be one of {', '.join(CHARACTER_SETS)}",
    ),
    "message.time_zone": (_is_zone, 'must be the name of a time zone, such as "Europe/Madrid"'),
    "message.processing_ids": (_are_texts, 'must be a list of texts, such as ["P"]'),
    "report.category": _TEXT,
    "report.identifier": (
        lambda value: value in ("order", "order-and-code"),
        'must be "order" or "order-and-code"',
    ),
    "report.system": _URI,
    "patient.system": _URI,
    "organization.name": _TEXT,
    "organization.system": _URI,
    "organization.value": _TEXT,
    "authorities": (_are_uris, "must have absolute URIs in quotes"),
    "codes": (_are_uris, "must have absolute URIs in quotes"),
}
_FIELDS = {
    "message.character_set": "character_set",
    "message.time_zone": "time_zone",
    "message.processing_ids": "processing_ids",
}
_TABLES = frozenset({"authorities", "codes"})


def read_settings(file: Path | None) -> Settings:
    """Read the file; the defaults without one. Raises UsageError with all problems at once."""
    if file is None:
        return Settings()
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise click.UsageError(f"{file}: {problem}") from None
    values = dict(_flat(given))
    wrong = [text for name, value in values.items() if (text := _wrong(name, value))]
    if wrong:
        raise click.UsageError(f"{file}:\n  " + "\n  ".join(wrong))
    return Settings(**{_field(name): _frozen(value) for name, value in values.items()})


def _flat(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each setting by its section and name."""
    for section, values in given.items():
        if section in _TABLES or not isinstance(values, dict):
            yield section, values
        else:
            for name, value in values.items():
                yield f"{section}.{name}", value


def _wrong(name: str, value: Any) -> str:
    if name not in _RULES:
        return f"{name}: unknown; known are {', '.join(_RULES)}"
    accepts, text = _RULES[name]
    return "" if accepts(value) else f"{name}: {text}"


def _field(name: str) -> str:
    return _FIELDS.get(name) or name.replace(".", "_").replace("report_category", "category")


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
