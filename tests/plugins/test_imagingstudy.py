from __future__ import annotations

from typing import Any

from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub.testing.service import Integrator
from fhirpub_imagingstudy import IMAGING_STUDY
from tests.clinical import DICOM, imaging_study, with_author


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
