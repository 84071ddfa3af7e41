from __future__ import annotations

import base64
import hashlib
from typing import Any

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.interactions.register import Candidate, prepare_registration
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import run_to_completion
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.resource_type.harness import SYSTEM
from fhirpub.testing.resource_type_contract import ResourceTypeContract
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.message.content_negotiation import FHIR_XML
from fhirpub_documentreference import DOCUMENT_REFERENCE
from tests.bodies import PDF, document
from tests.clinical import document_reference, with_custodian
from tests.erasing import Operator
from tests.plugins.declared_details import paths_of

LARGE = PDF + bytes(range(256)) * 1_200  # cut out of the bytes, and kept apart


class TestDocumentReference(ResourceTypeContract):
    resource_type = DOCUMENT_REFERENCE

    def body(self, value: str, *, system: str = SYSTEM) -> dict[str, Any]:
        return with_custodian(document_reference(value, system=system))

    def with_documents(self, *documents: dict[str, Any]) -> dict[str, Any]:
        body = self.body(self.fresh_value())
        self.resource_in(body)["content"] = [{"attachment": one} for one in documents]
        return body

    def documents_in(self, answer: Answer) -> list[bytes]:
        return [base64.b64decode(one["attachment"]["data"]) for one in answer.json["content"]]

    def test_its_documents_are_read_back_as_they_were_sent(self, lab: Integrator) -> None:
        for data in (PDF, LARGE):
            answer = self.register(lab, self.with_documents(document(data), document(PDF + b"2")))

            path = self.path_of(answer)
            read = lab.get(path)
            in_xml = lab.get(path, Accept=FHIR_XML)

            assert self.documents_in(read) == [data, PDF + b"2"]
            assert base64.b64encode(data) in in_xml.body

    def test_a_list_names_the_address_of_each_document(self, lab: Integrator) -> None:
        answer = self.register(lab, self.with_documents(document(LARGE), document()))

        found = lab.get(f"/fhir/r4/DocumentReference?_id={self.resource_of(answer)['id']}")

        shown = found.json["entry"][0]["resource"]["content"]
        assert [one["attachment"].get("data") for one in shown] == [None, None]
        assert [one["attachment"]["size"] for one in shown] == [len(LARGE), len(PDF)]
        for one, data in zip(shown, (LARGE, PDF), strict=True):
            address = one["attachment"]["url"]
            binary = lab.get(address[address.index("/fhir") :], Accept="application/pdf")
            assert (binary.status, binary.body) == (200, data)

    def test_the_response_to_a_registration_has_addresses_and_no_marker(
        self, lab: Integrator
    ) -> None:
        answer = self.register(lab, self.with_documents(document()))

        (content,) = self.resource_of(answer)["content"]
        assert "/Binary/" in content["attachment"]["url"]
        assert b"\\u0000" not in answer.body

    def test_a_hash_that_is_not_that_of_the_data_is_reported(self, lab: Integrator) -> None:
        wrong = hashlib.sha256(b"other").hexdigest()

        answer = self.register(lab, self.with_documents(document(LARGE, hash=wrong)))

        remarks = answer.json["parameter"][-1]["resource"]["issue"]
        assert any(
            one.get("expression", [""])[0].endswith("content[0].attachment.hash")
            for one in remarks
        )

    def test_an_update_replaces_its_documents(self, lab: Integrator) -> None:
        path = self.path_of(self.register(lab, self.body(self.fresh_value())))
        content = [{"attachment": document(LARGE)}]

        answer = lab.patch(path, {"resourceType": "DocumentReference", "content": content})

        assert answer.status == 204, answer.body
        assert self.documents_in(lab.get(path)) == [LARGE]
        assert self.documents_in(lab.get(f"{path}/_history/1")) == [PDF]

    def test_in_xml_its_documents_are_taken_apart_too(self, lab: Integrator) -> None:
        body = self.with_documents(document(LARGE))

        answer = lab.request(
            "POST",
            "/fhir/r4/DocumentReference/$register",
            write_xml(body),
            {"Content-Type": FHIR_XML},
        )

        assert answer.status == 201, answer.body
        assert self.documents_in(lab.get(self.path_of(answer))) == [LARGE]

    def test_one_of_its_other_identifiers_finds_it_in_any_number(self, lab: Integrator) -> None:
        value = self.fresh_value()
        resource = self.resource_of(self.register(lab, self.body(value)))

        for other in (f"https://lab.example/letters%7C{value}-a", f"{value}-b"):
            found = self.ids_found(lab, f"DocumentReference?identifier={other}")
            assert found == {resource["id"]}

    def test_its_event_states_the_key(self, service: RunningService, lab: Integrator) -> None:
        value = self.fresh_value()
        path = self.path_of(self.register(lab, self.body(value)))
        self.update_status(lab, path)

        for number in (1, 2):
            resources = service.services.context.resources
            version = service.call(resources.version(lab.tenant.id, path[-36:], number))
            assert version is not None
            (event,) = loads_stored(version.events)
            assert event["data"]["identifier"] == {"system": SYSTEM, "value": value}

    def test_its_documents_are_erased_with_it(
        self, service: RunningService, lab: Integrator
    ) -> None:
        path = self.path_of(self.register(lab, self.with_documents(document(LARGE + b"gone"))))
        listed = lab.get(f"/fhir/r4/DocumentReference?_id={path[-36:]}").json["entry"][0]
        address = listed["resource"]["content"][0]["attachment"]["url"]
        binary = address[address.index("/fhir") :]
        assert lab.get(binary).status == 200

        erased = Operator(service, lab).erase(path.removeprefix("/fhir/r4/"))

        assert lab.get(path).status == 410
        assert lab.get(binary).status in (404, 410)
        sha256 = hashlib.sha256(LARGE + b"gone").hexdigest()
        resources = service.services.context.resources
        # MongoDB leaves what is new to the next sweep.
        assert erased.documents + erased.documents_later == 1
        left = service.call(resources.blobs(lab.tenant.id, [sha256]))
        assert len(left) == erased.documents_later

    def test_its_documents_count_as_bytes_of_a_registration(self, service: RunningService) -> None:
        body = self.with_documents(document(LARGE))

        prepared = self.prepared(body, service)

        assert prepared.version.documents == (hashlib.sha256(LARGE).hexdigest(),)
        assert len(LARGE) < prepared.size < len(LARGE) + 20_000

    def prepared(self, body: dict[str, Any], service: RunningService) -> Candidate:
        work = prepare_registration(
            service.services.context,
            dumps(body),
            is_xml=False,
            read_body=from_parameters,
            type_name="DocumentReference",
            tenant=Tenant.new("Lab", created=0),
        )
        found = run_to_completion(work)
        assert isinstance(found, Candidate)
        return found


def test_each_parameter_compares_the_elements_that_r4_names() -> None:
    assert paths_of(DOCUMENT_REFERENCE.search) == {
        "type": "token type",
        "category": "token category",
        "date": "date date",
        "period": "date context.period",
        "subject": "reference subject",
        "author": "reference author",
        "custodian": "reference custodian",
        "relatesto": "reference relatesTo.target",
    }


def test_the_short_form_has_what_tells_one_resource_from_another() -> None:
    assert " ".join(DOCUMENT_REFERENCE.summary) == (
        "docStatus type category subject date author custodian"
    )


def test_a_resource_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert DOCUMENT_REFERENCE.create_statuses == {*"current superseded".split()}
    assert DOCUMENT_REFERENCE.update_statuses - DOCUMENT_REFERENCE.create_statuses == {
        "entered-in-error"
    }


def test_a_document_reference_brings_a_document() -> None:
    assert DOCUMENT_REFERENCE.attachments == ("content.attachment",)
    assert DOCUMENT_REFERENCE.attachments_required
    assert DOCUMENT_REFERENCE.identifier.elements == ("masterIdentifier",)
