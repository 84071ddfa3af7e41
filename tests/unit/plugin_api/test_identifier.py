"""What the identification of a type is without the attributes that a plugin leaves out."""

from __future__ import annotations

from fhirpub.plugin_api.identifier import BLANKS, CASES, EXACTLY_ONE, ValueForm


def test_a_type_without_a_rule_has_exactly_one_identifier_as_its_key() -> None:
    assert (EXACTLY_ONE.elements, EXACTLY_ONE.most) == (("identifier",), 1)
    assert not any((EXACTLY_ONE.uses, EXACTLY_ONE.types, EXACTLY_ONE.systems))
    assert not any((EXACTLY_ONE.refused_systems, EXACTLY_ONE.forms, EXACTLY_ONE.key))
    assert EXACTLY_ONE.key_version == 1


def test_a_form_without_attributes_leaves_every_value_as_it_is() -> None:
    form = ValueForm()

    assert (form.case, form.blanks) == ("keep", "keep")
    assert not any((form.system, form.remove, form.prefix, form.pattern))
    assert form.check("") is True


def test_the_words_of_a_form_are_those_that_are_documented() -> None:
    assert (BLANKS, CASES) == (("keep", "trim", "remove"), ("keep", "upper", "lower"))
