"""Tests of the rule by which one identifier of a resource is its key (ADR 41)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from fhirpub.interactions.identity.identification import Form, identification_of
from fhirpub.plugin_api import IdentifierRule, items_of
from fhirpub.testing.contracts.resource_type.harness import ResourceTypeHarness, escape
from fhirpub.testing.service import Integrator


class ResourceIdentityContract(ResourceTypeHarness):
    """A resource has the key that the rule of its type chooses, in whatever form it is sent."""

    @property
    def rule(self) -> IdentifierRule:
        """The rule under test."""
        return self.resource_type.identifier

    @pytest.fixture
    def with_elements(self) -> None:
        """Skip what says nothing of a type whose key is made by a function."""
        if self.rule.key is not None:
            pytest.skip("the key of the type is made by a function")

    @pytest.mark.usefixtures("with_elements")
    def test_a_resource_without_an_identifier_is_refused(self, lab: Integrator) -> None:
        bodies = [self.body(self.fresh_value()) for _ in range(2)]
        nothings: tuple[Any, ...] = (None, [])
        for body, nothing in zip(bodies, nothings, strict=True):
            for path in self.rule.elements:
                _replace(self.resource_in(body), path, nothing)

        answers = [self.register(lab, body) for body in bodies]

        assert [answer.status for answer in answers] == [400, 400]
        assert {answer.issues[0]["code"] for answer in answers} <= {"invalid", "structure"}

    @pytest.mark.usefixtures("with_elements")
    def test_more_identifiers_than_the_rule_allows_are_refused(self, lab: Integrator) -> None:
        for path in self.rule.elements:
            body = self.body(self.fresh_value())
            key = self.key_in(body)
            for one in _lists_at(self.resource_in(body), path):
                one += [copy.deepcopy(key) for _ in range(self.rule.most)]

                answer = self.register(lab, body)

                assert (answer.status, answer.issues[0]["code"]) == (400, "invalid"), path

    @pytest.mark.usefixtures("with_elements")
    @pytest.mark.parametrize("name", ["system", "value"])
    def test_the_key_must_have_system_and_value(self, lab: Integrator, name: str) -> None:
        body = self.body(self.fresh_value())
        for path in self.rule.elements:
            for _at, identifier in items_of(self.resource_in(body), path):
                identifier.pop(name, None)

        answer = self.register(lab, body)

        assert (answer.status, answer.issues[0]["code"]) == (400, "invalid")
        if identification_of(self.resource_type).is_single:
            assert answer.issues[0]["expression"][0].endswith(f".{name}")

    @pytest.mark.usefixtures("with_elements")
    def test_another_spelling_of_the_key_is_the_same_resource(self, lab: Integrator) -> None:
        body = self.body(self.fresh_value())
        first = self.register(lab, body)
        sent = dict(self.key_in(body))

        for spelling in _spellings(sent, self.rule):
            self.key_in(body)["value"] = spelling

            again = self.register(lab, body)

            assert (again.status, again.body) == (first.status, first.body), spelling
            tried = lab.request("POST", f"/fhir/r4/{self.resource_type.name}/$validate", body)
            assert b"with the same content" in tried.body, spelling
            token = f"{escape(sent['system'])}|{escape(spelling)}"
            for query in (f"identifier={token}", f"identifier={escape(spelling)}"):
                assert self.ids_found(lab, f"{self.resource_type.name}?{query}") == {
                    self.resource_of(first)["id"]
                }, query

    @pytest.mark.usefixtures("with_elements")
    def test_a_value_that_does_not_have_its_form_is_refused(self, lab: Integrator) -> None:
        form = identification_of(self.resource_type).form_of(
            self.key_in(self.body(self.fresh_value()))["system"]
        )
        wrong = [one for one in ("?", "x" * 999) if not form.accepts(form.normal(one))]
        for value in wrong if self.rule.forms else ():
            body = self.body(self.fresh_value())
            self.key_in(body)["value"] = value

            answer = self.register(lab, body)

            assert (answer.status, answer.issues[0]["code"]) == (400, "invalid"), value
            assert answer.issues[0]["diagnostics"] == form.declared.words

    @pytest.mark.usefixtures("with_elements")
    def test_an_identifier_in_a_refused_system_is_refused(self, lab: Integrator) -> None:
        for system in sorted(self.rule.refused_systems):
            body = self.body(self.fresh_value())
            self.key_in(body)["system"] = system

            answer = self.register(lab, body)

            assert (answer.status, answer.issues[0]["code"]) == (400, "invalid"), system

    @pytest.mark.usefixtures("with_elements")
    def test_two_identifiers_that_are_equally_good_are_refused(self, lab: Integrator) -> None:
        body = self.body(self.fresh_value())
        key = self.key_in(body)
        for path in self.rule.elements:
            for one in _lists_at(self.resource_in(body), path):
                if any(item is key for item in one):
                    one.append({**key, "value": self.fresh_value()})

                    answer = self.register(lab, body)

                    assert (answer.status, answer.issues[0]["code"]) == (400, "invalid")

    @pytest.mark.usefixtures("with_elements")
    def test_it_is_found_by_each_of_its_identifiers(self, lab: Integrator) -> None:
        answer = self.register(lab, self.body(self.fresh_value()))
        resource = lab.get(self.path_of(answer)).json

        for path in dict.fromkeys(("identifier", *self.rule.elements)):
            for _at, one in items_of(resource, path):
                if "system" in one and "value" in one:
                    token = f"{escape(one['system'])}|{escape(one['value'])}"
                    query = f"{self.resource_type.name}?identifier={token}"
                    assert resource["id"] in self.ids_found(lab, query), query


def _spellings(identifier: dict[str, Any], rule: IdentifierRule) -> Iterator[str]:
    """Yield other spellings of a value that have the same normal form."""
    forms = {form.system: form for form in rule.forms}
    declared = forms.get(identifier["system"], forms.get(""))
    if declared is None:
        return
    value, form = identifier["value"], Form(declared)
    middle = len(value) // 2
    for spelling in (
        value.swapcase(),
        value.removeprefix(declared.prefix),
        f"{declared.prefix}{value.removeprefix(declared.prefix)}",
        f" {value}  ",
        f"{value[:middle]} {value[middle:]}",
        *(f"{value[:middle]}{one}{value[middle:]}" for one in declared.remove),
    ):
        if spelling != value and form.normal(spelling) == form.normal(value):
            yield spelling


def _lists_at(resource: dict[str, Any], path: str) -> list[list[Any]]:
    """Return the lists at a dotted path."""
    above, _, name = path.rpartition(".")
    holders = [one for _at, one in items_of(resource, above)] if above else [resource]
    return [holder[name] for holder in holders if isinstance(holder.get(name), list)]


def _replace(resource: dict[str, Any], path: str, value: Any) -> None:
    """Put a value in the place of an element, or nothing."""
    above, _, name = path.rpartition(".")
    for holder in [one for _at, one in items_of(resource, above)] if above else [resource]:
        holder.pop(name, None)
        if value is not None:
            holder[name] = value
