"""Installed plugins, by their entry points; none of them is imported for it."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from fhirpub.errors import PluginError
from fhirpub.plugin_api.hookspecs import API_VERSION, SUPPORTED_VERSIONS
from fhirpub.suggestion import did_you_mean

_GROUP = re.compile(r"fhirpub\.plugins(\.v(?P<version>[1-9][0-9]*))?")


@dataclass(frozen=True, slots=True)
class PluginSource:
    """Where an installed plugin lives: its module, and the distribution that brought it.

    ``api`` is the version of the plugin API that it was made for.
    """

    name: str
    module: str
    distribution: str
    version: str
    api: int = API_VERSION

    @property
    def where(self) -> str:
        """The plugin in messages."""
        return f"plugin {self.name} ({self.module})"


def available() -> tuple[PluginSource, ...]:
    """Return every installed plugin that this service can load, whether it is enabled or not.

    One that was made for several versions of the plugin API is there once, with the highest.
    """
    found: dict[tuple[str, str, str], PluginSource] = {}
    for point in installed():  # in the order of versions
        if point.api in SUPPORTED_VERSIONS:
            found[point.name, point.module, point.distribution] = point
    return tuple(found.values())


def installed() -> list[PluginSource]:
    """Return the entry points of every version of the plugin API.

    To read those of all distributions takes tens of milliseconds. They are read again when
    something was installed or removed, which changes its folder.
    """
    return [*_installed_in(tuple((folder, _changed(folder)) for folder in sys.path))]


def _changed(folder: str) -> int:
    try:
        return Path(folder or ".").stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _installed_in(_folders: tuple[tuple[str, int], ...]) -> tuple[PluginSource, ...]:
    found = set()
    entries = importlib.metadata.entry_points()
    for group in filter(None, map(_GROUP.fullmatch, entries.groups)):
        api = int(group["version"] or 1)
        # A distribution parses its metadata for each look at its name or version.
        for owner, points in groupby(entries.select(group=group[0]), attrgetter("dist")):
            name, version = (owner.name, owner.version) if owner is not None else ("", "")
            found |= {PluginSource(each.name, each.module, name, version, api) for each in points}
    return tuple(sorted(found, key=lambda each: (each.name, each.module, each.version, each.api)))


def source_of(name: str, points: Sequence[PluginSource]) -> PluginSource:
    """Return the installed plugin of a name, for the highest version that is supported.

    Raises PluginError.
    """
    named = [point for point in points if point.name == name]
    usable = [point for point in named if point.api in SUPPORTED_VERSIONS]
    best = max((point.api for point in usable), default=0)
    matches = [point for point in usable if point.api == best]
    _refuse_several(name, matches)
    if named and not matches:
        raise PluginError(_requires_another_version(named[0]))
    if not matches:
        known = [point.name for point in points]
        raise PluginError(f"[plugins] enabled: there is no plugin {name}{_nearest(name, known)}")
    return matches[0]


def _refuse_several(name: str, matches: Sequence[PluginSource]) -> None:
    """Raise PluginError if plugins of a name are in several packages."""
    if len({match.module for match in matches}) > 1:
        homes = " and ".join(f"{match.module} of {match.distribution}" for match in matches)
        raise PluginError(f"plugin {name}: two packages use this name, {homes}; uninstall one")


def _requires_another_version(source: PluginSource) -> str:
    return (
        f"{source.where[:-1]} of {source.distribution} {source.version}): "
        f"was made for version {source.api} of the plugin API, and this service has version "
        f"{API_VERSION}; install a release of it that was made for version {API_VERSION}"
    )


def _nearest(word: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    others = f"installed are {', '.join(names)}" if names else "none is installed"
    return f"; {did_you_mean(word, names) or others}"
