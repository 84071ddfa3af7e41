"""Finds the key of a resource by the rule that its type declares (ADR 41)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from fhirpub.fhir.elements import each_item
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.plugin_api import IdentifierRule, ResourceType, ValueForm
from fhirpub.plugin_api.identifier import EXACTLY_ONE, Key
from fhirpub.storage.criteria import TokenMatch

MAX_IDENTIFIER_LENGTH = 2048
"""What is longer fits into no URL, so that it could not be searched for."""
MAX_TYPES = 20
"""So many codings the type of an identifier may have at most."""
_PLAIN = ValueForm()


@dataclass(frozen=True, slots=True)
class Identifier:
    """An identifier that can be the key: where it stands as FHIRPath, and how good it is."""

    at: str
    item: JsonObject
    key: Key
    rank: tuple[int, ...]


class Form:
    """A form of values, ready to be used."""

    def __init__(self, declared: ValueForm) -> None:
        self.declared = declared
        self._remove = str.maketrans("", "", declared.remove)
        self._pattern = re.compile(declared.pattern) if declared.pattern else None

    def normal(self, value: str) -> str:
        """Return the form in which a value is compared; its own normal form is itself."""
        declared = self.declared
        if declared.case != "keep":
            value = value.upper() if declared.case == "upper" else value.lower()
        value = value.translate(self._remove)
        if declared.blanks == "remove":
            value = "".join(value.split())
        before = None
        while value != before:  # what is left may begin like that once more
            before = value
            value = (value.strip() if declared.blanks == "trim" else value).removeprefix(
                declared.prefix
            )
        return value

    def accepts(self, normal: str) -> bool:
        """Return whether a value in its normal form is right."""
        if self._pattern is not None and self._pattern.fullmatch(normal) is None:
            return False
        return bool(normal) and self.declared.check(normal)


class Identification:
    """The rule of a type, ready to be used."""

    def __init__(self, rule: IdentifierRule) -> None:
        self.rule = rule
        self.is_plain = rule == EXACTLY_ONE
        """Whether it is the rule of the types that declare none."""
        self.is_single = rule.key is not None or (rule.elements, rule.most) == (("identifier",), 1)
        """Whether a resource is found by one identifier alone, which is its key."""
        self.forms = {one.system: Form(one) for one in rule.forms}
        self._other = self.forms.pop("", Form(_PLAIN))
        self.has_forms = bool(rule.forms)
        lists = ((rule.uses, _uses), (rule.types, _types), (rule.systems, _systems))
        self._lists = [(names, read) for names, read in lists if names]

    def form_of(self, system: str) -> Form:
        """Return the form of the values in a system."""
        return self.forms.get(system, self._other)

    def normal(self, system: Any, value: Any) -> Any:
        """Return the form in which a value is compared; what is no text stays as it is."""
        if not self.has_forms or type(value) is not str or len(value) > MAX_IDENTIFIER_LENGTH:
            return value
        return self.form_of(system if type(system) is str else "").normal(value)

    def identifiers_in(self, resource: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return what stands in the elements, with places: one more than there may be at most."""
        every = (each_item(resource, path) for path in self.rule.elements)
        return [*islice(chain.from_iterable(every), self.rule.most + 1)]

    def candidates_in(self, resource: Mapping[str, Any]) -> list[Identifier]:
        """Return the identifiers that can be the key, none if there are too many in all."""
        found: list[Identifier] = []
        number = 0
        for place, path in enumerate(self.rule.elements):
            for at, item in each_item(resource, path):
                number += 1
                if number > self.rule.most:
                    return []
                key = self._key_of(item)
                rank = None if key is None else self._rank(item)
                if key is not None and rank is not None:
                    found.append(Identifier(at, item, key, (place, *rank)))
        return found

    def _key_of(self, item: Any) -> Key | None:
        """Return the key that an identifier can be; None if nothing would be left of its value."""
        if type(item) is not dict:
            return None
        system, value = item.get("system"), item.get("value")
        if type(system) is not str or type(value) is not str:
            return None
        normal = self.normal(system, value)
        return None if value and not normal else (system, normal)

    def _rank(self, item: JsonObject) -> list[int] | None:
        rank = []
        for names, read in self._lists:
            best = min((names.index(one) for one in read(item) if one in names), default=-1)
            if best < 0:
                return None
            rank.append(best)
        return rank

    def best_of(self, candidates: Sequence[Identifier]) -> list[Identifier]:
        """Return the best candidates, each other key once: one if the choice is clear."""
        if not candidates:
            return []
        least = min(one.rank for one in candidates)
        best: dict[Key, Identifier] = {}
        for one in candidates:
            if one.rank == least:
                best.setdefault(one.key, one)
        return [*best.values()]

    def chosen_in(self, resource: Mapping[str, Any]) -> Identifier | None:
        """Return the identifier that is the key; None if none is, or several are as good."""
        best = self.best_of(self.candidates_in(resource))
        return best[0] if len(best) == 1 else None

    def key_in(self, resource: Mapping[str, Any]) -> Key | None:
        """Return the key of a resource that may not be valid; None if there is none."""
        if self.is_plain:
            match resource.get("identifier"):
                case [{"system": str(system), "value": str(value)}] | {
                    "system": str(system),
                    "value": str(value),
                }:
                    return system, value
            return None
        if self.rule.key is not None:
            try:
                return made_key(self.rule.key, resource)
            except Exception:  # noqa: BLE001 - the resource is not validated yet
                return None
        chosen = self.chosen_in(resource)
        return None if chosen is None else chosen.key

    def matches_of(self, matches: Sequence[TokenMatch]) -> list[TokenMatch]:
        """Return tokens of identifiers with values in the form in which they are stored.

        Without a system a value may be in any form: so it stands there in each of them.
        """
        if not self.has_forms:
            return [*matches]
        found: dict[TokenMatch, None] = {}
        for one in matches:
            found[replace(one, value=self.normal(one.system, one.value))] = None
            for system, form in self.forms.items() if one.system is None else ():
                if one.value is not None and len(one.value) <= MAX_IDENTIFIER_LENGTH:
                    found[TokenMatch(system, form.normal(one.value))] = None
        return [*found]

    def spellings_of(self, value: str) -> list[str]:
        """Return the forms in which a value can be stored, whatever its system is."""
        is_known = self.has_forms and len(value) <= MAX_IDENTIFIER_LENGTH
        every = (self._other, *self.forms.values()) if is_known else ()
        return [*dict.fromkeys([one.normal(value) for one in every] or [value])]

    @property
    def described(self) -> str:
        """What keys depend on, as JSON to compare; empty for the rule of types without one."""
        rule = self.rule
        said = _unlike(rule, EXACTLY_ONE, "elements", "uses", "types", "systems")
        steps = "blanks", "prefix", "remove", "case"
        forms = {one.system: how for one in rule.forms if (how := _unlike(one, _PLAIN, *steps))}
        said |= {"forms": forms} if forms else {}
        said |= {"key_version": rule.key_version} if rule.key is not None else {}
        return dumps(said).decode() if said else ""


def made_key(make: Callable[[Mapping[str, Any]], Any], resource: Mapping[str, Any]) -> Key | None:
    """Return what a function of a plugin makes the key; TypeError if that can be none."""
    made = make(resource)
    if made is None:
        return None
    system, value = made
    if type(system) is not str or type(value) is not str:
        raise TypeError("the function key must return the system and the value, or None")
    return system, value


def _unlike(declared: object, usual: object, *names: str) -> JsonObject:
    """Return those of the attributes that are not the usual ones."""
    values = {name: getattr(declared, name) for name in names}
    return {name: value for name, value in values.items() if value != getattr(usual, name)}


def _uses(item: JsonObject) -> Sequence[Any]:
    return (item.get("use", ""),)


def _systems(item: JsonObject) -> Sequence[Any]:
    return (item["system"],)


def _types(item: JsonObject) -> Sequence[Any]:
    """Return the codes of the types of an identifier, alone and with their systems."""
    found: list[Any] = []
    for coding in type_codings(item)[:MAX_TYPES]:
        code = coding.get("code") if type(coding) is dict else None
        if type(code) is str:
            found += [code, f"{coding.get('system', '')}|{code}"]
    return found or ("",)


def type_codings(item: Mapping[str, Any]) -> Sequence[Any]:
    """Return the codings of the type of an identifier, whatever its structure is."""
    concept = item.get("type")
    codings = concept.get("coding") if isinstance(concept, dict) else ()
    return codings if isinstance(codings, list) else ()


_known: dict[int, tuple[IdentifierRule, Identification]] = {}


def identification_of(resource_type: ResourceType) -> Identification:
    """Return the rule of a type, ready to be used; made once for each rule, never released."""
    rule = resource_type.identifier
    known = _known.get(id(rule))
    if known is None:
        known = _known[id(rule)] = (rule, Identification(rule))
    return known[1]
