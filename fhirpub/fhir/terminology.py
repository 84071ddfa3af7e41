"""The code systems and value sets that the service holds, to warn about codes (D-41, D-42)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from fhirpub.errors import ConfigurationError, Issue
from fhirpub.problems import ContentProblem

Codes = frozenset[str]
IDENTIFIER_TYPES = "http://hl7.org/fhir/ValueSet/identifier-type"
V2_0203 = "http://terminology.hl7.org/CodeSystem/v2-0203"
FORMER_V2_0203 = "http://hl7.org/fhir/v2/0203"
"""The address of the same code system before FHIR R4, which many senders still use."""

_NATIONAL = re.compile("NN[A-Z]{3}")
_MAX_SYSTEM_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Terminology:
    """Codes by code system (only systems held whole) and by value set and system."""

    systems: Mapping[str, Codes]
    value_sets: Mapping[str, Mapping[str, Codes]]
    assumed: frozenset[str] = frozenset()
    """Code systems of which every code is taken for correct."""
    sources: Sequence[Callable[[str, str], bool | None]] = ()
    """What others know of the codes of systems that are not held, in the order of asking."""

    @classmethod
    def load(cls, directories: Iterable[Path] = (), *, assume: Iterable[str] = ()) -> Terminology:
        """Read what comes with the service, then every ``*.json`` in the directories.

        A file of a directory may replace one that comes with the service. There are no remarks
        on codes of the systems in ``assume``.
        Raises ConfigurationError naming the file that cannot be used, and why.
        """
        files = [
            *_load_shipped(),
            *(file for directory in directories for file in _files(directory)),
        ]
        read = [(name, _read(name, file)) for name, file in files]
        systems: dict[str, Codes] = {}
        for name, resource in read:
            if resource["resourceType"] == "CodeSystem":
                systems[_url(name, resource)] = _Reader(name, {}).system(resource)
        value_sets: dict[str, Mapping[str, Codes]] = {}
        for name, resource in read:
            if resource["resourceType"] == "ValueSet":
                value_sets[_url(name, resource)] = _Reader(name, systems).value_set(resource)
        return cls(systems, value_sets, frozenset(assume))

    def holds_system(self, system: str) -> bool:
        """Return whether all codes of the code system are known."""
        return system in self.systems

    def has_code(self, system: str, code: str) -> bool:
        """Return whether the code is known to be of the code system."""
        return code in self.systems.get(system, ())

    def in_value_set(self, url: str, system: str, code: str) -> bool:
        """Return whether the code is known to be in the value set."""
        return code in self.value_sets.get(url, {}).get(system, ())

    def system_of(self, url: str) -> str:
        """Return the code system of all codes of a value set, empty if there is not just one."""
        systems = [*self.value_sets.get(url, ())]
        return systems[0] if len(systems) == 1 else ""

    def knows(self, coding: Mapping[str, Any]) -> bool:
        """Return whether there is nothing to remark on a Coding: it has a code of its system."""
        system, code = coding.get("system"), coding.get("code")
        if not isinstance(system, str) or not isinstance(code, str):
            return True
        if code in self.systems.get(system, ()) or system in self.assumed:
            return True
        return bool(self.sources) and self._asked(system, code) is True

    def _asked(self, system: str, code: str) -> bool | None:
        """Return what the first source that knows a code returns."""
        if system in self.systems:
            return None
        answers = (knows(system, code) for knows in self.sources)
        return next((answer for answer in answers if answer is not None), None)

    def coding_issues(self, coding: Mapping[str, Any], expression: str) -> list[Issue]:
        """Return the remarks on a Coding; never an error."""
        if self.knows(coding):
            return []
        system, code = str(coding["system"]), str(coding["code"])
        named = system if len(system) <= _MAX_SYSTEM_LENGTH else "named here"
        if self.holds_system(system):
            cases = (one for one in (code.upper(), code.lower()) if self.has_code(system, one))
            meant = "".join(f"; did you mean {one}?" for one in cases)
            said = f"the code is not in the code system {named}{meant}"
            return [Issue.warning(ContentProblem.CODE_UNKNOWN, said, f"{expression}.code")]
        if self._asked(system, code) is False:
            said = f"the code is not in the code system {named}"
            return [Issue.warning(ContentProblem.CODE_UNKNOWN, said, f"{expression}.code")]
        said = f"value set not found: the code system {named} is not held, the code is unchecked"
        return [
            Issue.information(ContentProblem.CODE_SYSTEM_UNKNOWN, said, f"{expression}.system")
        ]

    def identifier_type_issues(self, coding: Mapping[str, Any], expression: str) -> list[Issue]:
        """Return the remarks on a Coding of Identifier.type: none on any code of v2-0203."""
        system, code = coding.get("system", ""), coding.get("code", "")
        if system == FORMER_V2_0203:
            system = V2_0203
        if self.in_value_set(IDENTIFIER_TYPES, system, code) or system in self.assumed:
            return []
        # One code of v2-0203 stands for many: NNxxx, with the country's three letters.
        known = "NNxxx" if _NATIONAL.fullmatch(code) else code
        if system == V2_0203 and self.has_code(V2_0203, known):
            return []
        said = f"the code is neither in {V2_0203} nor in the value set {IDENTIFIER_TYPES}"
        return [Issue.warning(ContentProblem.CODE_UNKNOWN, said, expression)]


def _load_shipped() -> Iterator[tuple[str, Traversable]]:
    folder = resources.files("fhirpub.schemas") / "valuesets"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        yield file.name, file


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    if not directory.is_dir():
        raise ConfigurationError(f"[terminology] value_set_directories: no directory {directory}")
    for file in sorted(directory.glob("*.json")):
        yield str(file), file


def _read(name: str, file: Traversable) -> dict[str, Any]:
    try:
        resource = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise ConfigurationError(f"{name} cannot be read: {problem}") from None
    kind = resource.get("resourceType") if isinstance(resource, dict) else None
    if kind not in ("CodeSystem", "ValueSet"):
        raise ConfigurationError(f"{name} is not a ValueSet or CodeSystem in JSON")
    return dict(resource)


def _url(name: str, resource: Mapping[str, Any]) -> str:
    url = resource.get("url")
    if not isinstance(url, str) or not url:
        raise ConfigurationError(f"{name} has no url")
    return url


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one file; errors name the file."""

    name: str
    systems: Mapping[str, Codes]

    def system(self, resource: Mapping[str, Any]) -> Codes:
        if resource.get("content") != "complete":
            raise self._wrong("content must be complete, or codes would be missed")
        return frozenset(self._codes(resource))

    def value_set(self, resource: Mapping[str, Any]) -> Mapping[str, Codes]:
        expansion = self._object(resource.get("expansion", {}), "expansion")
        found: dict[str, set[str]] = {}
        if "contains" in expansion:
            self._expand(expansion, found)
        else:
            compose = self._object(resource.get("compose", {}), "compose")
            if "exclude" in compose:
                raise self._wrong("compose.exclude is not understood; give its expansion")
            for include in self._list(compose, "include"):
                self._codes_of_include(include, found)
        if not found:
            raise self._wrong("no codes: neither compose.include nor expansion.contains")
        return {system: frozenset(codes) for system, codes in found.items()}

    def _codes_of_include(self, include: Mapping[str, Any], found: dict[str, set[str]]) -> None:
        if "filter" in include or "valueSet" in include:
            raise self._wrong("compose.include with filter or valueSet; give its expansion")
        system = self._text(include, "system")
        if "concept" in include:
            found.setdefault(system, set()).update(self._codes(include))
        elif system in self.systems:
            found.setdefault(system, set()).update(self.systems[system])
        else:
            raise self._wrong(f"all of {system} is included, but there is no file with its codes")

    def _expand(self, node: Mapping[str, Any], found: dict[str, set[str]]) -> None:
        for element in self._list(node, "contains"):
            if "code" in element and element.get("abstract") is not True:
                found.setdefault(self._text(element, "system"), set()).add(
                    self._text(element, "code")
                )
            self._expand(element, found)

    def _codes(self, node: Mapping[str, Any]) -> Iterator[str]:
        for concept in self._list(node, "concept"):
            yield self._text(concept, "code")
            yield from self._codes(concept)

    def _list(self, node: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
        items = node.get(name, [])
        if not isinstance(items, list):
            raise self._wrong(f"{name} must be an array")
        return (self._object(item, name) for item in items)

    def _object(self, value: object, name: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(f"{name} must be an object")
        return value

    def _text(self, node: Mapping[str, Any], name: str) -> str:
        value = node.get(name)
        if not isinstance(value, str) or not value:
            raise self._wrong(f"{name} must be a string")
        return value

    def _wrong(self, problem: str) -> ConfigurationError:
        return ConfigurationError(f"{self.name}: {problem}")
