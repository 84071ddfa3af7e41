"""The fields of a form, as the parameters of an operation declare them, and what was entered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fhirpub.administration.operation import Operation, Parameter
from fhirpub.console.operators.catalogue import SECRETS
from fhirpub.console.operators.words import label_of
from fhirpub.console.visit import moment_in_utc
from fhirpub.errors import InvalidContent
from fhirpub.fhir.strict_json import dumps, loads

Texts = Mapping[str, Sequence[str]]
"""The fields of a form as they were sent, all of each name."""
FILLED = "filled"
"""The field that names those that were not empty when a form was shown."""
_CONTROLS = {
    "integer": "number",
    "boolean": "checkbox",
    "strings": "lines",
    "object": "json",
    "objects": "json",
    "instant": "instant",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form.

    Attributes:
        parameter: What it is for.
        label: How it is called.
        control: How it is shown.
        value: What is in it.
        problem: What is wrong with that.
    """

    parameter: Parameter
    label: str
    control: str
    value: str = field(default="", repr=False)
    problem: str = ""

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return self.parameter.name

    @property
    def is_kept(self) -> bool:
        """Whether what was entered may be shown again."""
        return self.control != "password"


def fields_of(operation: Operation, texts: Texts, problems: Mapping[str, str]) -> list[Field]:
    """Return the fields of an operation, with what was entered and what is wrong with it."""
    return [
        Field(
            parameter=one,
            label=label_of(one.name) + (" (UTC)" if one.type == "instant" else ""),
            control=_control_of(one),
            value=next(iter(texts.get(one.name, ())), ""),
            problem=problems.get(one.name, ""),
        )
        for one in operation.parameters
    ]


def filled_with(fields: Sequence[Field], record: Mapping[str, Any]) -> list[Field]:
    """Return fields with the values that a record has now, where nothing was entered."""
    return [
        replace(one, value=_text_of(record[one.name]))
        if one.name in record and not one.value and one.parameter.place != "path"
        else one
        for one in fields
    ]


def read_given(operation: Operation, texts: Texts) -> dict[str, Any]:
    """Return what a form gives to an operation, unchecked.

    An empty field gives nothing, unless there was something in it when the form was shown.
    """
    emptied = set(texts.get(FILLED, ()))
    given: dict[str, Any] = {}
    for one in operation.parameters:
        text = next(iter(texts.get(one.name, ())), "").strip()
        if text:
            given[one.name] = _value_of(one, text)
        elif one.name in emptied:
            given[one.name] = [] if one.type == "strings" else ""
    return given


def _value_of(parameter: Parameter, text: str) -> Any:
    if parameter.type == "strings":
        return [line.strip() for line in text.splitlines() if line.strip()]
    if parameter.type in ("object", "objects"):
        try:
            return loads(text.encode())
        except InvalidContent:
            return text
    if parameter.type == "instant":
        return moment_in_utc(text)
    return parameter.from_texts([text])


def _control_of(parameter: Parameter) -> str:
    if parameter.name in SECRETS:
        return "password"
    if parameter.choices:
        return "select"
    return _CONTROLS.get(parameter.type, "text")


def _text_of(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(str, value))
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value).decode()
