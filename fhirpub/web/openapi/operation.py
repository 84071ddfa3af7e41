"""An operation in the words of OpenAPI, before it is put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Form = Literal["fhir", "json", "document", "media", "empty"]
"""What an answer is written in: FHIR's forms, plain JSON, a document as it is, text of the media
type that ``schema`` names, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """An answer that is no refusal. ``schema`` names the component that describes it."""

    text: str
    form: Form = "fhir"
    schema: str = ""
    headers: tuple[str, ...] = ()
    id_at: str = ""
    """Where the id stands of what was made, as a JSON pointer: links lead from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What a handler does for one method.

    ``refusals`` are the statuses beside those that follow from the handler's class, ``blanks``
    the names of the path parameters, ``body`` that of a body in `web/openapi/request_bodies.py`.
    ``scope`` is one that SMART does not have.
    """

    name: str
    summary: str
    successes: Mapping[int, Success]
    refusals: tuple[int, ...] = ()
    parameters: tuple[str, ...] = ()
    blanks: tuple[str, ...] = ("id",)
    body: str = ""
    text: str = ""
    scope: str = ""
    tag: str = "{type}"
    refuses_in: str = "OperationOutcome"
