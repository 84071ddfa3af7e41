"""What operations return, as facts and tables that a template can show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl

from fhirpub.console.operators.catalogue import SECRETS, home_of
from fhirpub.console.operators.words import label_of
from fhirpub.console.rendering import moment
from fhirpub.fhir.times import instant

Record = Mapping[str, Any]

_MILLISECONDS = frozenset({"at", "finished", "ordered", "since"})
"""Members that are times as numbers, in records of the store."""
_STATES = {
    "active": "good",
    "closed": "good",
    "enabled": "good",
    "right": "good",
    "delivered": "good",
    "disabled": "bad",
    "disabled-unverified": "bad",
    "dead": "bad",
    "open": "bad",
    "deleted": "bad",
    "cancelled": "warn",
    "half-open": "warn",
    "held": "warn",
    "paused": "warn",
    "pending": "warn",
    "unverified": "warn",
    "waiting": "warn",
}
_KINDS = {
    **dict.fromkeys(("chain", "id", "kid", "resource"), "code"),
    "request": "nowrap",
}
"""How texts of some members are shown."""
_OF_STATE = frozenset({"breaker", "state", "status", "verdict"})
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}Z")
MAX_ROWS = 100
"""So many records are in a table: a page holds no event loop for long."""
_MAX_PIECES, _FEW = 100, 10
"""So much of a list in a record is shown, and in a table."""
_NAME = re.compile("[_A-Za-z][A-Za-z0-9_.:-]{0,63}")
"""The name of a parameter of a search."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a value: a text, where it leads, and how it is shown."""

    text: str
    href: str = ""
    kind: str = ""

    @property
    def short(self) -> str:
        """The text as it is read: of a time, without fractions of a second."""
        return moment(self.text) if self.kind == "time" else self.text


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its name."""

    label: str
    pieces: Sequence[Piece] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Table:
    """Records with the same members."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Sequence[Piece]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A result: secrets, which are shown this once, then other facts, then tables."""

    secrets: Sequence[Fact] = ()
    facts: Sequence[Fact] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shower:
    """Shows results of one subject.

    Attributes:
        subject: Of what the records are: the kind to which their ids lead.
        names: The names of tenants by id, to be shown instead of these.
        secrets: The names of what is secret.
        max_pieces: How much of a list in a record is shown.
    """

    subject: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = SECRETS
    max_pieces: int = _MAX_PIECES

    def show(self, result: Any, *, title: str = "") -> Shown:
        """Return a result as it is shown."""
        if isinstance(result, list):
            return Shown(tables=[self.table(result, title=title)])
        members = {name: value for name, value in result.items() if name != "following"}
        tables = {name: value for name, value in members.items() if is_table(value)}
        secrets = {
            name: value for name, value in members.items() if name in self.secrets and value
        }
        facts = {
            name: value
            for name, value in members.items()
            if name not in tables and name not in secrets
        }
        return Shown(
            secrets=self.facts(secrets),
            facts=self.facts(facts),
            tables=[self.table(value, title=label_of(name)) for name, value in tables.items()],
        )

    def facts(self, members: Record) -> list[Fact]:
        """Return the members of a record; those of one in it have its name before theirs."""
        return [
            Fact(label_of(path), self.pieces(path.rpartition(" ")[2], value))
            for path, value in _flat(members)
        ]

    def table(
        self, records: Sequence[Any], *, title: str = "", columns: Sequence[str] = ()
    ) -> Table:
        """Return records as a table, of some of their members or of all."""
        shown, shower = records[:MAX_ROWS], replace(self, max_pieces=min(self.max_pieces, _FEW))
        rows = [one if isinstance(one, dict) else {"name": one} for one in shown]
        if len(records) > len(shown):
            title = f"{title or 'Records'}, the first {MAX_ROWS} of {len(records):,}"
        names = columns or [*dict.fromkeys(chain.from_iterable(rows))]
        return Table(
            title,
            [*map(label_of, names)],
            [[shower._cell(name, one) for name in names] for one in rows],  # noqa: SLF001 - its own
        )

    def _cell(self, name: str, record: Record) -> Sequence[Piece]:
        pieces = self.pieces(name, record.get(name))
        if name not in ("description", "name"):
            return pieces
        ids = (home_of(own, str(record.get(own, "")), self.subject) for own in ("id", "client_id"))
        return [replace(one, href=next(filter(None, ids), "")) for one in pieces]

    def pieces(self, name: str, value: Any) -> list[Piece]:
        """Return a value of a member as it is shown."""
        if name == "disabled":
            value, name = "disabled" if value else "enabled", "state"
        if name == "query" and value:
            return [Piece(one, kind="code") for one in _parameters_in(value)]
        if name in _MILLISECONDS and isinstance(value, int):
            return [Piece(instant(value), kind="time")]
        if isinstance(value, list | tuple):
            return self._several(name, value)
        if isinstance(value, dict):
            return [self._line(value)]
        return [self._piece(name, value)] if value not in (None, "") else []

    def _several(self, name: str, values: Sequence[Any]) -> list[Piece]:
        shown = chain.from_iterable(self.pieces(name, one) for one in values[: self.max_pieces])
        left = len(values) - self.max_pieces
        return [*shown, *([Piece(f"and {left:,} more", kind="faint")] if left > 0 else ())]

    def _piece(self, name: str, value: Any) -> Piece:
        if isinstance(value, int | float):
            is_yes_or_no = isinstance(value, bool)
            return Piece("yes" if value else "no") if is_yes_or_no else _number(value)
        text = str(value)
        if name in _OF_STATE:
            return Piece(text, kind=_STATES.get(text, "badge"))
        if name in ("by", "patients", "what"):
            kind, _, id_ = text.partition("/")
            return Piece(text, home_of(kind, id_), "code" if id_ else "")
        if name == "tenant":
            return Piece(self.names.get(text) or text, home_of(name, text))
        href = home_of(name, text, self.subject)
        usual = "time" if _TIME.fullmatch(text) else ""
        return Piece(text, href, "code" if href else _KINDS.get(name, usual))

    def _line(self, members: Record) -> Piece:
        parts = (
            f"{label_of(path)}: {', '.join(piece.text for piece in pieces)}"
            for path, value in _flat(members)
            if (pieces := self.pieces(path.rpartition(" ")[2], value))
        )
        return Piece("; ".join(parts))


def _number(value: float) -> Piece:
    return Piece(f"{value:,}", kind="number")


def _flat(members: Record, before: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in members.items():
        path = f"{before} {name}".strip()
        if isinstance(value, dict):
            yield from _flat(value, path)
        else:
            yield path, value


def is_table(value: Any) -> bool:
    """Return whether a value is shown as a table."""
    return isinstance(value, list | tuple) and any(isinstance(one, dict) for one in value)


def _parameters_in(query: str) -> list[str]:
    """Return the names of the parameters of a search: what they look for may be a name."""
    names = (name for name, _ in parse_qsl(query, keep_blank_values=True))
    return [*dict.fromkeys(filter(_NAME.fullmatch, names))]
