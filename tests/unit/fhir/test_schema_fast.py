"""Parts of resources are validated by one compiled schema, as by one that is compiled for each."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jsonschema_rs
import pytest

from fhirpub.fhir.definitions.schema_documents import ANY, URN, documents
from fhirpub.fhir.document import marker
from fhirpub.fhir.schema_fast import PartValidator, accepts, fast_validator
from tests.bodies import patient

KNOWN = documents({})
REGISTRY = jsonschema_rs.Registry(list(KNOWN.items()))
ENTRY = f"{URN}Bundle#/$defs/Bundle.entry"
PARAMETER = f"{URN}Parameters#/$defs/Parameters.parameter"
NAME = f"{URN}datatypes#/$defs/HumanName"
CODE = {"coding": [{"system": "http://loinc.org", "code": "2345-7"}]}
VALID: dict[str, list[Any]] = {
    NAME: [{"family": "a"}, {"given": ["a", "b"]}],
    ANY: [patient(), {"resourceType": "Basic", "code": {"text": "a"}}],
    f"{URN}Patient": [patient(), patient(id="a")],
    ENTRY: [{"fullUrl": "urn:a", "resource": patient()}, {"search": {"mode": "match"}}],
    PARAMETER: [{"name": "a", "resource": patient()}, {"name": "b", "valueString": "c"}],
}
WRONG: dict[str, list[Any]] = {
    NAME: [{"family": 1}, {}, "a"],
    ANY: [patient(unknown=1), {"resourceType": "Basic", "id": 1}, {}, "a"],
    f"{URN}Patient": [patient(gender="x"), {}, {"resourceType": "Basic", "id": "a"}, "a"],
    ENTRY: [{"resource": patient(unknown=1)}, {"unknown": 1}, {}, "a"],
    PARAMETER: [{"name": "a", "resource": {"resourceType": "Patient", "x": 1}}, {"name": 1}, "a"],
}
INSTANCES = [
    (reference, instance)
    for instances in (VALID, WRONG)
    for reference, some in instances.items()
    for instance in some
]

EXPLAINING = """
import resource
from fhirpub.fhir.schema import Schemas, own_schemas
schemas = own_schemas()
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
list(schemas.problems("Patient", {"resourceType": "Patient", "unknown": 1}))
before = peak()
for name in ("Observation", "Patient", "Practitioner", "Organization", "Encounter", "Bundle"):
    contained = [{"resourceType": name, "unknown": 1}] * 9
    assert list(schemas.problems("Patient", {"resourceType": "Patient", "contained": contained}))
print(peak() / before)
"""


@pytest.fixture(scope="module")
def parts() -> PartValidator:
    return PartValidator(KNOWN, REGISTRY, fast_validator({"$ref": ANY}, REGISTRY))


@pytest.mark.parametrize(("reference", "instance"), INSTANCES)
def test_the_verdict_is_that_of_a_schema_for_the_part_alone(
    parts: PartValidator, reference: str, instance: Any
) -> None:
    alone = fast_validator({"$ref": reference}, REGISTRY)

    assert parts.accepts(reference, instance) is alone.is_valid(instance)


@pytest.mark.parametrize("reference", VALID)
def test_a_list_is_valid_if_each_of_its_parts_is(parts: PartValidator, reference: str) -> None:
    valid, wrong = VALID[reference], WRONG[reference]

    assert parts.accepts(reference, valid, in_array=True)
    assert not any(parts.accepts(reference, [*valid, one], in_array=True) for one in wrong)


@pytest.mark.parametrize(
    ("schema", "valid", "wrong"),
    [
        ({"fhirInteger": True}, [0, -7, 2**70], [2.0, True, "2", None]),
        ({"fhirBase64": True}, ["QUJD", "", 7, None, marker("0" * 64, 5)], ["QUJ", "QR=="]),
        (
            {"fhirPaired": "given"},
            [{}, {"given": "A", "_given": {"id": "a"}}, {"given": ["A"], "_given": [None]}, "a"],
            [{"_given": {"id": "a"}}, {"given": ["A", "B"], "_given": [None]}],
        ),
        (
            {"fhirDistinct": "component"},
            [{"code": CODE}, {"code": CODE, "component": [{"code": {"text": "a"}}]}, [CODE]],
            [{"code": CODE, "component": [{}, {"code": CODE}]}],
        ),
    ],
)
def test_the_keywords_that_json_schema_does_not_have_decide(
    schema: dict[str, Any], valid: list[Any], wrong: list[Any]
) -> None:
    engine = fast_validator(schema)

    assert [value for value in valid if not accepts(engine, value)] == []
    assert [value for value in wrong if accepts(engine, value)] == []


def test_a_part_with_resources_that_no_resource_consists_of_is_not_known(
    parts: PartValidator,
) -> None:
    assert not parts.accepts(f"{ENTRY}.response", {"status": "200"})


def test_to_explain_what_is_wrong_with_contained_resources_compiles_nothing() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", EXPLAINING], capture_output=True, text=True, check=True
    )

    assert float(ran.stdout) < 1.2
