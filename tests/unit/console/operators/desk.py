"""Visits of an operator, whose operations run in this process on a store of their own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from fhirpub.administration.http.interface import Interface
from fhirpub.console.sessions import Person, Session
from fhirpub.console.visit import Visit
from tests.unit.administration.office import Office

OPERATOR = Person(subject="ana", name="Ana", is_operator=True)


def a_visit(office: Office, *blanks: str, form: Any = None, **query: str) -> Visit:
    """Return the visit of an operator, to a page with blanks in its path."""
    administration = office.administration
    interface = Interface(administration.config, cast("Any", None), office.under, audit=None)
    services = SimpleNamespace(
        store=administration.store, config=administration.config, clock=administration.clock
    )
    console: Any = SimpleNamespace(
        interface=interface, config=administration.config, services=services
    )
    session = Session(person=OPERATOR, id="s", proof="p", began=0, expires=9)
    return Visit(
        console=console,
        session=session,
        blanks=blanks,
        query=query,
        form={name: [text] for name, text in (form or {}).items()},
        client=cast("Any", None),
        address="192.0.2.9",
        request_id="r-9",
    )


def cells_of(table: Any) -> list[list[str]]:
    """Return the text of each cell of a table, row by row."""
    return [["".join(piece.text for piece in cell) for cell in row] for row in table.rows]


def facts_in(facts: Any) -> dict[str, list[str]]:
    """Return the texts of each fact by its label."""
    return {one.label: [piece.text for piece in one.pieces] for one in facts}
