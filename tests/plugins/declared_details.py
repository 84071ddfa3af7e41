"""What the declaration of a type has for searches, in a form that is easy to compare."""

from __future__ import annotations

from collections.abc import Iterable

from fhirpub.plugin_api import SearchParameter


def paths_of(search: Iterable[SearchParameter]) -> dict[str, str]:
    """Return the type of each parameter, with the elements that it compares behind it.

    Of a composite these are the parameters that it joins. They are separated by blanks.
    """
    return {one.name: " ".join((one.type, *(one.paths or one.components))) for one in search}
