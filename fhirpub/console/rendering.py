"""Templates: read from the package, compiled once, with what all of them use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from tornado.template import Loader, Template

from fhirpub.console.visit import address


class _PackageLoader(Loader):
    """Reads templates out of the package; every value is escaped unless it is marked raw."""

    def __init__(self) -> None:
        super().__init__("", autoescape="xhtml_escape", namespace={"address": address})

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
