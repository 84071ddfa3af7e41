"""What a declaration is without the attributes that a plugin leaves out."""

from __future__ import annotations

from typing import Any

from fhirpub.plugin_api.identifier import BLANKS, CASES, EXACTLY_ONE, ValueForm
from fhirpub.plugin_api.issuers import TokenHolder, TokenRejected
from fhirpub.plugin_api.operations import Operation, OperationParameter, OperationRequest
from fhirpub.plugin_api.search import SEARCH_TYPES

NEVER: Any = None


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


def test_the_words_of_declarations_are_those_that_are_documented() -> None:
    assert (BLANKS, CASES) == (("keep", "trim", "remove"), ("keep", "upper", "lower"))
    assert {*SEARCH_TYPES} == {
        *("token", "date", "reference", "quantity"),
        *("number", "string", "uri", "composite"),
    }


def test_an_operation_is_about_one_resource_and_follows_nothing() -> None:
    operation = Operation(
        type="X", code="c", title="t", description="d", media_type="text/plain", run=NEVER
    )

    assert operation.on_instance
    assert not any((operation.includes, operation.parameters))


def test_a_parameter_of_an_operation_may_be_left_out() -> None:
    assert not OperationParameter(name="a", type="code", meaning="m").required


def test_requests_share_no_parameters() -> None:
    first, second = OperationRequest(resource={}), OperationRequest(resource={})

    assert first.parameters is not second.parameters
    assert first.included is not second.included


def test_a_holder_has_no_scopes_unless_its_issuer_gives_them() -> None:
    assert TokenHolder(client="c", tenant="t").scopes == ()


def test_a_rejected_token_has_its_reason_for_the_log() -> None:
    assert TokenRejected("no group").reason == str(TokenRejected("no group")) == "no group"
