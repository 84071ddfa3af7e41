"""Elements of resources in words: what a reader wants to see of each data type (R4, 2.24)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fhirpub.console.visit import address

_LEFT_OUT = frozenset({"resourceType", "id", "meta", "text", "contained", "implicitRules"})
_MOST_WORDS = 2_000
_CHOICE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ID = r"(?!\.\.?(?:/|$))([A-Za-z0-9.-]{1,64})"
"""An id, but those two that browsers take for steps in a path."""
_DOCUMENT = re.compile(rf"/Binary/{_ID}$")
_LOCAL = re.compile(rf"(?:^|/)([A-Z][A-Za-z]+)/{_ID}(?:/_history/[0-9]+)?$")


@dataclass(frozen=True, slots=True)
class Value:
    """A value in words, and the page that it leads to, if there is one."""

    words: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a resource."""

    id: str
    title: str
    media_type: str
    size: int | None

    @property
    def is_pdf(self) -> bool:
        """Whether it is a PDF."""
        return self.media_type == "application/pdf"


def facts_of(
    resource: Mapping[str, Any], *, without: frozenset[str]
) -> Iterator[tuple[str, list[Value]]]:
    """Yield the elements of a resource, in words, but those that are shown otherwise."""
    for name, element in resource.items():
        if name in _LEFT_OUT or name in without or name.startswith("_"):
            continue
        values = element if isinstance(element, list) else [element]
        shown = [_value(one) for one in values if not _is_document(one)]
        if shown:
            yield _label(name), shown


def words_of(element: Any) -> str:
    """Return an element in words."""
    return _value(element).words


def _value(element: Any) -> Value:
    if isinstance(element, Mapping) and "reference" in element:
        return _reference(element)
    return Value(_clipped(_words(element)))


def _reference(element: Mapping[str, Any]) -> Value:
    reference = str(element["reference"])
    shown = str(element.get("display") or reference)
    match = _LOCAL.search(reference)
    if match is None or reference.startswith("#"):
        return Value(_clipped(shown))
    return Value(_clipped(shown), address("resources", match[1], match[2]))


def _words(element: Any) -> str:
    if element is None:
        return ""
    if isinstance(element, bool):
        return "yes" if element else "no"
    if isinstance(element, list | tuple):
        return "; ".join(filter(None, map(_words, element)))
    if isinstance(element, Mapping):
        return _words_of_object(element)
    return str(element)


def _words_of_object(element: Mapping[str, Any]) -> str:
    for is_one, describe in _FORMS:
        if is_one(element):
            return str(describe(element))
    return ", ".join(f"{_label(name)}: {_words(value)}" for name, value in element.items())


def _label(name: str) -> str:
    """Return the name of an element in words."""
    return _CHOICE.sub(" ", name).lower()


def _concept(element: Mapping[str, Any]) -> str:
    codings = [_coding(one) for one in element.get("coding", ())]
    text = element.get("text")
    return str(text) if text else "; ".join(codings)


def _coding(element: Mapping[str, Any]) -> str:
    return str(element.get("display") or element.get("code") or element.get("system", ""))


def _quantity(element: Mapping[str, Any]) -> str:
    unit = element.get("unit") or element.get("code") or ""
    return f"{element.get('comparator', '')}{element['value']} {unit}".strip()


def _range(element: Mapping[str, Any]) -> str:
    if text := element.get("text"):
        return str(text)
    low, high = (_words(element[name]) if name in element else "" for name in ("low", "high"))
    if low and high:
        return f"{low} to {high}"
    return f"from {low}" if low else f"up to {high}"


def _name(element: Mapping[str, Any]) -> str:
    if text := element.get("text"):
        return str(text)
    parts = [*element.get("prefix", ()), *element.get("given", ()), element.get("family", "")]
    return " ".join(filter(None, map(str, parts)))


def _period(element: Mapping[str, Any]) -> str:
    return f"{element.get('start', '…')} to {element.get('end', '…')}"


def _identifier(element: Mapping[str, Any]) -> str:
    system = element.get("system")
    value = str(element.get("value", ""))
    return f"{value} ({system})" if system else value


def _of(*names: str, any_: bool = False) -> Any:
    needed = frozenset(names)
    if any_:
        return lambda element: bool(needed & element.keys())
    return lambda element: needed <= element.keys()


_FORMS: Sequence[tuple[Any, Any]] = (
    (_of("coding"), _concept),
    (_of("value", "unit"), _quantity),
    (_of("value", "code"), _quantity),
    (_of("low", "high", any_=True), _range),
    (_of("family", "given", any_=True), _name),
    (_of("reference"), lambda element: _reference(element).words),
    (_of("start", "end", any_=True), _period),
    (_of("system", "value"), _identifier),
    (_of("code", "system"), _coding),
    (lambda element: set(element) == {"text"}, lambda element: str(element["text"])),
    (lambda element: set(element) == {"value"}, lambda element: str(element["value"])),
)
"""The forms of data types by their members, the first that fits counts."""


def documents_in(element: Any) -> Iterator[Document]:
    """Yield the documents of a resource that the service has."""
    if isinstance(element, list):
        for one in element:
            yield from documents_in(one)
    elif isinstance(element, Mapping):
        if _is_document(element):
            match = _DOCUMENT.search(str(element["url"]))
            if match is not None:
                media_type = str(element["contentType"])
                title = str(element.get("title") or media_type)
                yield Document(match[1], title, media_type, element.get("size"))
            return
        for value in element.values():
            yield from documents_in(value)


def _is_document(element: Any) -> bool:
    return isinstance(element, Mapping) and "contentType" in element and "url" in element


def _clipped(words: str) -> str:
    return words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS]} …"
