"""Documents and keys that are taken out of a body before it is validated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import TooLarge
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Candidate, Rejected
from fhirpub.interactions.submission.cut import MisplacedCut, cut_documents, read_cut
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.validation.validation import take_documents
from fhirpub.plugin_api import IdentifierRule, ValueForm
from tests.bodies import SYSTEM, document, register_body
from tests.unit.interactions import registering
from tests.unit.interactions.updating import CONTEXT
from tests.unit.interactions.validation.test_acceptance import FAST, SLOW, TENANT, TYPE

both_ways = pytest.mark.parametrize("context", [FAST, SLOW], ids=["fast", "slow"])
UPPER = IdentifierRule(most=3, forms=(ValueForm(case="upper"),))


def taken(value: str, rule: IdentifierRule = UPPER, **changes: Any) -> Submission:
    """Return a submission whose documents are taken out, by a rule of its key."""
    declared = replace(CONTEXT.types[TYPE], identifier=rule)
    submission = from_parameters(loads(dumps(register_body(value, **changes))), declared)
    take_documents(submission)
    return submission


def test_the_key_is_in_the_form_in_which_it_is_compared() -> None:
    assert taken("a-1").key == (SYSTEM, "A-1")


def test_a_resource_keeps_its_identifier_as_it_was_sent() -> None:
    assert taken("a-1").entry.resource["identifier"][0]["value"] == "a-1"


def test_the_same_in_another_form_of_its_key_has_the_same_digest() -> None:
    assert taken("a-1").digest == taken("A-1").digest != taken("A-2").digest


def test_without_forms_each_spelling_is_a_key_of_its_own() -> None:
    one, other = (taken(value, CONTEXT.types[TYPE].identifier) for value in ("a-1", "A-1"))

    assert (one.key, other.key) == ((SYSTEM, "a-1"), (SYSTEM, "A-1"))
    assert one.digest != other.digest


def test_documents_are_taken_out_of_the_resource() -> None:
    submission = taken("a-1", presentedForm=[document(b"%PDF-1"), document(b"%PDF-2")])

    assert [bytes(one.data) for one in submission.documents] == [b"%PDF-1", b"%PDF-2"]
    assert not submission.undecodable


@both_ways
@pytest.mark.parametrize("data", ["%%%", "!!!!"])
def test_a_document_that_cannot_be_decoded_is_refused_at_its_place(
    context: Context, data: str
) -> None:
    body = register_body("a-1", presentedForm=[document(hash=None) | {"data": data}])

    found = registering.prepared(context, body, tenant=TENANT)

    assert isinstance(found, Rejected)
    assert [issue.expression for issue in found.refusal.issues] == [
        "Parameters.parameter[2].resource.presentedForm[0].data"
    ]


@both_ways
def test_a_report_that_is_right_is_accepted_in_both_ways(context: Context) -> None:
    assert isinstance(
        registering.prepared(context, register_body("a-1"), tenant=TENANT), Candidate
    )


def test_what_was_cut_out_and_is_no_document_is_to_be_read_whole() -> None:
    submission = from_parameters(loads(dumps(register_body("a-1"))), CONTEXT.types[TYPE])
    submission.cut = {"token": b"elsewhere"}

    with pytest.raises(MisplacedCut):
        take_documents(submission)


@pytest.mark.parametrize(
    ("element", "is_taken"), [("presentedForm", True), ("media", False)], ids=["its own", "other"]
)
def test_what_was_cut_out_is_a_document_of_the_resource(element: str, *, is_taken: bool) -> None:
    data = bytes(range(256)) * 64
    body = register_body("a-1", **{element: [document(data)]})
    cut = cut_documents(dumps(body), max_rest=100_000)
    assert cut is not None
    submission = read_cut(
        loads(cut[0]), CONTEXT.types[TYPE], read=from_parameters, documents=cut[1]
    )

    if is_taken:
        take_documents(submission)
        assert [bytes(one.data) for one in submission.documents] == [data]
    else:
        with pytest.raises(MisplacedCut):
            take_documents(submission)


@both_ways
@pytest.mark.parametrize(("more", "is_refused"), [(0, False), (1, True)])
def test_a_document_may_have_as_many_bytes_as_the_settings_allow(
    context: Context, more: int, *, is_refused: bool
) -> None:
    data = b"%PDF-1.4 " + b"x" * 91
    limits = replace(context.config.limits, attachment_bytes=100)
    small = replace(context, config=replace(context.config, limits=limits))
    body = register_body("a-1", presentedForm=[document(data + b"x" * more)])

    found = registering.prepared(small, body, tenant=TENANT)

    assert isinstance(found, Rejected) is is_refused
    if isinstance(found, Rejected):
        assert isinstance(found.refusal, TooLarge)
