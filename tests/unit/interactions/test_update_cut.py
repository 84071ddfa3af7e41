"""An update whose large documents are cut out of its bytes is that of the whole body (ADR 32)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.errors import Refused
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.patch_formats import Form
from fhirpub.interactions.submission.cut import MisplacedCut, cut_documents
from fhirpub.interactions.update import Update, prepare_cut
from fhirpub.runtime.stages import run_to_completion
from tests.bodies import document
from tests.unit.interactions.updating import LATER, TENANT, registered, updated

LARGE = bytes(range(256)) * 100
BASE64 = base64.b64encode(LARGE).decode()
FIRST = registered(presentedForm=[document(LARGE + b"first")])
FORMS: tuple[Form, ...] = ("fhir", "merge-patch")


def updated_without_documents(raw: bytes, form: Form) -> Update:
    cut = cut_documents(raw, max_rest=len(raw))
    assert cut is not None
    return run_to_completion(prepare_cut(LATER, *cut, form=form, latest=FIRST, tenant=TENANT))


def outcome(work: Callable[[], Update]) -> Any:
    """Return the update, or the issues of its refusal."""
    try:
        return work()
    except Refused as refusal:
        return type(refusal), refusal.issues


def body(**fields: Any) -> bytes:
    return dumps({"resourceType": "DiagnosticReport", **fields})


@pytest.mark.parametrize("form", FORMS)
def test_a_large_document_is_cut_out_and_stored_alike(form: Form) -> None:
    raw = body(status="amended", presentedForm=[document(LARGE)])

    found = updated_without_documents(raw, form)

    assert [blob.data for blob in (*found.version.attached, *found.blobs)] == [LARGE]
    assert found == updated(FIRST, raw, form=form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("more", [{"data": BASE64}, {}], ids=["beside a document", "alone"])
def test_what_is_no_document_of_the_resource_is_to_be_read_whole(
    form: Form, more: dict[str, Any]
) -> None:
    extension = {"url": "urn:x", "valueAttachment": {"data": BASE64}}
    raw = body(presentedForm=[{"contentType": "image/png", "extension": [extension], **more}])

    with pytest.raises(MisplacedCut):
        updated_without_documents(raw, form)


@given(
    form=st.sampled_from(FORMS),
    forms=st.lists(
        st.fixed_dictionaries(
            {
                "data": st.sampled_from(
                    [BASE64, base64.b64encode(LARGE + b"!").decode(), "AAA", ""]
                )
            },
            optional={
                "contentType": st.sampled_from(["image/png", "nothing", 3]),
                "size": st.sampled_from([len(LARGE), 1]),
                "title": st.just("of the heart"),
            },
        ),
        max_size=3,
    ).map(lambda forms: [{"data": BASE64}, *forms]),
    fields=st.fixed_dictionaries(
        {},
        optional={
            "status": st.sampled_from(["amended", "complete", None]),
            "issued": st.just("2026-03-02T10:00:00+01:00"),
            "conclusion": st.text(max_size=3),
        },
    ),
)
def test_whatever_stands_beside_it_the_verdict_is_that_of_the_whole_body(
    form: Form, forms: list[dict[str, Any]], fields: dict[str, Any]
) -> None:
    raw = body(presentedForm=forms, **fields)

    assert outcome(lambda: updated_without_documents(raw, form)) == outcome(
        lambda: updated(FIRST, raw, form=form)
    )
