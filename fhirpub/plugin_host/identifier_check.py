"""Finds what is wrong with the rule that a type declares for its identifiers (ADR 41)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fhirpub.config.settings import ABSOLUTE_URI
from fhirpub.plugin_api import IdentifierRule, ValueForm
from fhirpub.plugin_api.identifier import BLANKS, CASES, EXACTLY_ONE
from fhirpub.plugin_host.functions import wrong_function

MAX_IDENTIFIERS = 100
"""So many identifiers a rule may allow at most: each is compared, and is a search value."""
ELEMENT_PATH = re.compile(r"[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)*")
_USES = ("", "usual", "official", "temp", "secondary", "old")


def identifier_problems_of(rule: Any) -> list[str]:
    """Return what is malformed in a rule, or else what contradicts itself."""
    if not isinstance(rule, IdentifierRule):
        return [f"identifier must be an IdentifierRule, not {type(rule).__name__}"]
    malformed = [*_malformed(rule), *_malformed_function(rule)]
    return [f"identifier: {said}" for said in malformed or _contradictions(rule)]


def _malformed(rule: IdentifierRule) -> Iterator[str]:
    for field, kind in (
        ("elements", tuple),
        ("uses", tuple),
        ("types", tuple),
        ("systems", tuple),
        ("refused_systems", frozenset),
    ):
        value: Any = getattr(rule, field)
        if not isinstance(value, kind) or not all(isinstance(item, str) for item in value):
            yield f"{field} must be a {kind.__name__} of strings"
        elif len(value) > len({*value}):
            yield f"{field} names something twice"
    most: Any = rule.most
    if type(most) is not int or not 1 <= most <= MAX_IDENTIFIERS:
        yield f"most must be a number from 1 to {MAX_IDENTIFIERS}"
    version: Any = rule.key_version
    if type(version) is not int or version < 1:
        yield "key_version must be a number from 1"
    forms: Any = rule.forms
    if not isinstance(forms, tuple) or not all(isinstance(one, ValueForm) for one in forms):
        yield "forms must be a tuple of ValueForm"
        return
    for form in forms:
        said = f"form of {form.system or 'other systems'}"
        yield from (f"{said}: {problem}" for problem in _malformed_form(form))


def _malformed_form(form: ValueForm) -> Iterator[str]:
    for field in ("system", "prefix", "remove", "pattern", "words"):
        if not isinstance(getattr(form, field), str):
            yield f"{field} must be a string"
            return
    for field, known in (("blanks", BLANKS), ("case", CASES)):
        if getattr(form, field) not in known:
            yield f"{field} must be one of {', '.join(known)}"
    try:
        re.compile(form.pattern)
    except re.error as problem:
        yield f"pattern is no regular expression: {problem}"
    if not form.words.strip():
        yield "words must say what a value must be"
    yield from wrong_function("check", form.check, ("value",))
    yield from _wrong_prefix(form)


def _wrong_prefix(form: ValueForm) -> Iterator[str]:
    folded = {"upper": str.upper, "lower": str.lower}.get(form.case, str)(form.prefix)
    if folded != form.prefix or not {*form.remove}.isdisjoint(form.prefix):
        yield "prefix is changed by case or remove, so that no value begins with it"
    elif form.blanks != "keep" and form.prefix != form.prefix.strip():
        yield "prefix has white space at an end, which blanks takes away"


def _malformed_function(rule: IdentifierRule) -> Iterator[str]:
    if rule.key is not None:
        yield from wrong_function("key", rule.key, ("resource",))


def _contradictions(rule: IdentifierRule) -> Iterator[str]:
    if rule.key is not None:
        yield from _beside_a_function(rule)
    elif not rule.elements:
        yield "elements is empty: name the elements of identifiers, or a function as key"
    elif rule.key_version != EXACTLY_ONE.key_version:
        yield "key_version is set, but there is no function key"
    for path in rule.elements:
        if ELEMENT_PATH.fullmatch(path) is None:
            yield f"elements holds {path!r}, which cannot be the path of an element"
    yield from (f"uses: there is no use {use}" for use in rule.uses if use not in _USES)
    yield from _wrong_systems(rule)
    for form in rule.forms:
        yield from _useless_form(form, rule)


def _wrong_systems(rule: IdentifierRule) -> Iterator[str]:
    for field in ("systems", "refused_systems"):
        wrong = (one for one in getattr(rule, field) if ABSOLUTE_URI.fullmatch(one) is None)
        yield from (f"{field} holds {system!r}, which is no absolute URI" for system in wrong)
    for system in sorted(rule.refused_systems.intersection(rule.systems)):
        yield f"{system} is refused, and it is a system of keys"
    counts = Counter(form.system for form in rule.forms)
    for system in sorted(one for one, number in counts.items() if number > 1):
        yield f"forms: there are several of {system or 'other systems'}"


def _beside_a_function(rule: IdentifierRule) -> Iterator[str]:
    for field in ("uses", "types", "systems", "refused_systems", "forms", "most"):
        if getattr(rule, field) != getattr(EXACTLY_ONE, field):
            yield f"{field} has no meaning beside a function key"
    if rule.elements:
        yield "elements must be empty beside a function key: elements=()"


def _useless_form(form: ValueForm, rule: IdentifierRule) -> Iterator[str]:
    if form.system and ABSOLUTE_URI.fullmatch(form.system) is None:
        yield f"forms: {form.system!r} is no absolute URI"
    if form.system in rule.refused_systems:
        yield f"forms: {form.system} is refused, so it needs no form"
    if form == ValueForm(system=form.system):
        yield f"forms: the form of {form.system or 'other systems'} says nothing"
