"""What is wrong with the identifiers of a resource, by the rule of its type (D-44, D-386)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.config.settings import ABSOLUTE_URI
from fhirpub.errors import Issue
from fhirpub.fhir.schema import Schemas
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.identity.identification import (
    MAX_IDENTIFIER_LENGTH,
    MAX_TYPES,
    Identification,
    identification_of,
    made_key,
    type_codings,
)
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import ContentProblem, OperationProblem

_TOO_LONG = f"system and value must not have more than {MAX_IDENTIFIER_LENGTH} characters"
_NOT_ABSOLUTE = "must be an absolute URI, such as https://lab.example/reports"


def identifier_problems(
    resource: JsonObject, resource_type: ResourceType, schemas: Schemas
) -> list[Issue]:
    """Return what is wrong, with places below the resource, whatever its structure is."""
    identification = identification_of(resource_type)
    if identification.rule.key is not None:
        return [*_of_made_key(resource, identification)]
    if identification.is_single:
        element = schemas.element(resource_type.name, "identifier")
        is_list = element is None or element.repeats
        return [*_of_only_one(resource, identification, is_list=is_list)]
    return [*_of_several(resource, identification)]


def has_usual_identifier(resource: JsonObject, resource_type: ResourceType) -> bool:
    """Return whether nothing is wrong with the identifiers of a resource whose structure is right.

    False: it may be right all the same. Raises what a function of the plugin raises.
    """
    identification = identification_of(resource_type)
    if identification.rule.key is not None:
        key = made_key(identification.rule.key, resource)
        return key is not None and not any(_of_key(*key))
    if not identification.is_single:
        return not any(_of_several(resource, identification))
    sent = resource.get("identifier")
    one = sent[0] if type(sent) is list and len(sent) == 1 else sent
    if type(one) is not dict or "type" in one or not identification.is_plain:
        return not any(_of_only_one(resource, identification, is_list=type(sent) is list))
    return not any(_of_key(one.get("system", ""), one.get("value", "")))


def refuse_other_key(
    before: JsonObject, after: JsonObject, resource_type: ResourceType
) -> Iterator[Issue]:
    """Report an update from which a function would make another key.

    Elements of identifiers are never updated.
    """
    make = resource_type.identifier.key
    if make is not None and made_key(make, before) != made_key(make, after):
        rule = "the key of the resource follows from what is updated, and must stay as it is"
        yield Issue.error(OperationProblem.ELEMENT_NOT_UPDATABLE, rule, resource_type.name)


def _of_only_one(
    resource: Mapping[str, Any], identification: Identification, *, is_list: bool
) -> Iterator[Issue]:
    """Exactly one identifier with system and value (D-44), which can be the key."""
    sent = resource.get("identifier")
    single = [sent] if isinstance(sent, dict) else []
    identifiers = (sent if isinstance(sent, list) else []) if is_list else single
    if len(identifiers) != 1:
        found = f"; there are {len(identifiers)}" if identifiers else ""
        what = "a list of exactly one identifier" if is_list else "an identifier"
        rule = f"must be {what}, with system and value{found}"
        yield _error(rule, "identifier")
        return
    at = "identifier[0]" if is_list else "identifier"
    one = identifiers[0] if isinstance(identifiers[0], dict) else {}
    missing = [*_required_texts(one, at)]
    yield from missing
    yield from _of_one(one, at, identification)
    if not missing and not identification.is_plain:
        yield from _of_choice(resource, identification, at)


def _of_several(resource: Mapping[str, Any], identification: Identification) -> Iterator[Issue]:
    """So many identifiers at most, of which one is the key (D-386)."""
    rule, identifiers = identification.rule, identification.identifiers_in(resource)
    first = rule.elements[0]
    if len(identifiers) > rule.most:
        where = " and ".join(rule.elements)
        yield _error(f"must not have more than {rule.most} identifiers in {where}", first)
        return
    found: list[Issue] = []
    for at, item in identifiers:
        one = item if isinstance(item, dict) else {}
        if isinstance(one.get("value"), str) and not one["value"].strip():
            found.append(_error("must not be blank", f"{at}.value"))
        found += _of_one(one, at, identification)
    yield from found or _of_choice(resource, identification, first)


def _required_texts(one: JsonObject, at: str) -> Iterator[Issue]:
    for name in ("system", "value"):
        text = one.get(name)
        if not isinstance(text, str) or not text.strip():
            is_other = text is not None and not isinstance(text, str)
            rule = (
                "must be a string, in quotation marks"
                if is_other
                else "is required and must not be blank"
            )
            yield _error(rule, f"{at}.{name}")


def _of_one(one: JsonObject, at: str, identification: Identification) -> Iterator[Issue]:
    """Yield what is wrong with an identifier, whether it is the key or not."""
    system, value = one.get("system"), one.get("value")
    if len(f"{system}{value}") > MAX_IDENTIFIER_LENGTH:
        yield _error(_TOO_LONG, at)
    if len(type_codings(one)) > MAX_TYPES:  # the value is a search value with each of them
        rule = f"must not have more than {MAX_TYPES} codings"
        yield Issue.error(ContentProblem.IDENTIFIER_INVALID, rule, f"{at}.type", code="too-costly")
    if not isinstance(system, str):
        return
    if system.strip() and not ABSOLUTE_URI.fullmatch(system):
        yield _error(_NOT_ABSOLUTE, f"{at}.system")
    if system in identification.rule.refused_systems:
        rule = "is a system whose identifiers must not stand here"
        yield _error(rule, f"{at}.system")
    if identification.has_forms and isinstance(value, str) and value.strip():
        form = identification.form_of(system)
        if len(value) <= MAX_IDENTIFIER_LENGTH and not form.accepts(form.normal(value)):
            yield _error(form.declared.words, f"{at}.value")


def _of_choice(
    resource: Mapping[str, Any], identification: Identification, at: str
) -> Iterator[Issue]:
    """Yield why there is no key, if there is none."""
    best = identification.best_of(identification.candidates_in(resource))
    if not best:
        yield _error(f"needs an identifier with {_described(identification)}", at)
    elif len(best) > 1:
        others = " and ".join(one.at for one in best[1:3])
        rule = (
            "could be the key of the resource, and so could "
            f"{others}: send one of them, or tell them apart by use, type or system"
        )
        yield _error(rule, best[0].at)


def _described(identification: Identification) -> str:
    """Return what an identifier needs to be the key."""
    rule = identification.rule
    lists = (("use", rule.uses), ("type", rule.types), ("system", rule.systems))
    asked = [
        f"the {name} {' or '.join(each or 'none' for each in names)}"
        for name, names in lists
        if names
    ]
    return ", ".join(["system and value", *asked])


def _of_made_key(resource: JsonObject, identification: Identification) -> Iterator[Issue]:
    key = identification.key_in(resource)
    if key is None:
        yield _error("has nothing from which its key could follow", "")
    else:
        yield from _of_key(*key)


def _of_key(system: str, value: str) -> Iterator[Issue]:
    """Yield what is wrong with a key that a function made."""
    if not value.strip() or not ABSOLUTE_URI.fullmatch(system):
        yield _error("has no proper key: its system must be an absolute URI, its value a text", "")
    elif len(system) + len(value) > MAX_IDENTIFIER_LENGTH:
        yield _error(f"has a key that is too long: {_TOO_LONG}", "")


def _error(rule: str, at: str) -> Issue:
    return Issue.error(ContentProblem.IDENTIFIER_INVALID, rule, at)
