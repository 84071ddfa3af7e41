"""Templates: read from the package, compiled once, with what all of them use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from tornado.template import Loader, Template

from fhirpub.console.visit import address


def moment(text: str) -> str:
    """Return a date or a time as pages write it: to the second, and with its zone."""
    day, mark, time = text.partition("T")
    if not mark:
        return text
    zone = "UTC" if time.endswith("Z") else time[-6:]
    return f"{day} {time[:8]} {zone}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


_SHARED = {"address": address, "moment": moment, "counted": counted}


class _PackageLoader(Loader):
    """Reads templates out of the package; every value is escaped unless it is marked raw."""

    def __init__(self) -> None:
        super().__init__("", autoescape="xhtml_escape", namespace=_SHARED)

    def resolve_path(self, name: str, parent_path: str | None = None) -> str:  # noqa: ARG002
        return name

    def _create_template(self, name: str) -> Template:
        text = resources.files("fhirpub.console").joinpath("templates", name).read_bytes()
        return Template(text, name=name, loader=self)


@lru_cache(maxsize=1)
def _loader() -> _PackageLoader:
    return _PackageLoader()


def render(template: str, values: Mapping[str, Any]) -> bytes:
    """Return a template filled with values."""
    rendered: bytes = _loader().load(template).generate(**values)
    return rendered
