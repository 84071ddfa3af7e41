from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.identity.identification import Form
from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub.testing.service import Integrator
from fhirpub_imagingstudy import IMAGING_STUDY
from tests.clinical import DICOM, imaging_study, with_author
from tests.plugins.declared_details import paths_of


class TestImagingStudy(ResourceTypeContract):
    resource_type = IMAGING_STUDY
    system = DICOM

    @staticmethod
    def fresh_value() -> str:
        _, _, number = ResourceTypeContract.fresh_value().partition("-")
        return f"2.999.1.{number}"

    def body(self, value: str, *, system: str = DICOM) -> dict[str, Any]:
        return with_author(imaging_study(value, system=system))

    def test_a_uid_is_the_same_with_and_without_its_urn(self, lab: Integrator) -> None:
        uid = self.fresh_value()
        first = self.register(lab, self.body(uid))

        again = self.register(lab, self.body(f"urn:oid:{uid}"))

        assert (first.status, again.status) == (201, 201)
        assert self.resource_of(again)["id"] == self.resource_of(first)["id"]

    def test_what_is_no_uid_is_refused_in_words(self, lab: Integrator) -> None:
        for wrong in ("2.999.01", "2", "4.1", "2.999." + "1" * 60, "urn:uuid:x"):
            answer = self.register(lab, self.body(wrong))

            assert answer.status == 400, wrong
            assert "DICOM UID" in answer.issues[0]["diagnostics"]
            assert answer.issues[0]["expression"][0].endswith("identifier[1].value")


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(IMAGING_STUDY.search) == {
        "modality": "token modality series.modality",
        "started": "date started",
        "subject": "reference subject",
        "basedon": "reference basedOn",
        "interpreter": "reference interpreter",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(IMAGING_STUDY.summary) == (
        "modality subject started interpreter numberOfSeries numberOfInstances description"
    )


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert IMAGING_STUDY.create_statuses == {*"available cancelled registered unknown".split()}
    assert IMAGING_STUDY.update_statuses - IMAGING_STUDY.create_statuses == {"entered-in-error"}


@pytest.mark.parametrize(
    "written", ["1.2", "urn:oid:1.2", " 1.2 ", " urn:oid:1.2", "urn:oid: 1.2"]
)
def test_a_uid_is_one_however_it_is_written(written: str) -> None:
    (form,) = IMAGING_STUDY.identifier.forms

    assert Form(form).normal(written) == "1.2"


@pytest.mark.parametrize(
    ("uid", "is_right"),
    [
        ("1." + "2" * 62, True),
        ("1." + "2" * 63, False),
        ("2.999.0", True),
        ("3.1", False),
        ("1", False),
        ("1.02", False),
    ],
)
def test_a_uid_has_the_form_that_dicom_gives_it(uid: str, *, is_right: bool) -> None:
    (form,) = IMAGING_STUDY.identifier.forms

    assert Form(form).accepts(uid) is is_right
