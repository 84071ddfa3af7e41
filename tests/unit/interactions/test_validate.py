"""A trial of a registration: everything that it would be answered with, and nothing stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config, FhirConfig
from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.submission.held import Held
from fhirpub.interactions.validate import Asked, Trial, add_verdict, try_registration
from fhirpub.problems import ContentProblem, OperationProblem
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.tombstones import Tombstone, husk_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import new_id, new_member_id
from tests.bodies import SYSTEM, parameters, register_body, report, self_contained
from tests.unit.interactions.erasure.registered import (
    OTHER_TENANT,
    TENANT,
    context_of,
    registered,
)

TYPE = "DiagnosticReport"
CANONICAL = "http://hl7.org/fhir/StructureDefinition/DiagnosticReport"


def tried(store: SqliteStore, body: Any, tenant: Tenant = TENANT, **asked: str) -> Trial:
    return run_to_completion(
        try_registration(
            context_of(store),
            dumps(body),
            is_xml=False,
            asked=Asked({"mode": "", "profile": "", **asked}),
            type_name=TYPE,
            tenant=tenant,
        )
    )


def refused(store: SqliteStore, body: Any, **asked: str) -> list[Issue]:
    with pytest.raises(InvalidContent) as caught:
        tried(store, body, TENANT, **asked)
    return [*caught.value.issues]


async def compared(_known: Version, _new: Version) -> Sequence[str]:
    return ["conclusion"]


async def verdict(
    store: SqliteStore, trial: Trial, *, context: Context | None = None, tenant: Tenant = TENANT
) -> list[tuple[str, str]]:
    issues = await add_verdict(
        trial,
        tenant=tenant,
        type_name=TYPE,
        context=context or context_of(store),
        compare=compared,
    )
    return [
        (one.severity, one.diagnostics)
        for one in issues
        if one.details in (ContentProblem.ACCEPTED, ContentProblem.IDENTIFIER_IN_USE)
    ]


PERSON = new_member_id()


def referring(patient_id: str) -> dict[str, Any]:
    """Return a body that refers to a patient instead of bringing it."""
    body = register_body("R-1", subject={"reference": f"Patient/{patient_id}"})
    body["parameter"] = body["parameter"][1:]
    return body


WOULD = ("information", f"the {TYPE} would be registered; nothing was stored")


async def test_what_is_right_would_be_registered(store: SqliteStore) -> None:
    trial = tried(store, register_body("R-1"))

    assert trial.version is not None
    assert trial.id == trial.version.id == TENANT.resource_id(TYPE, SYSTEM, "R-1")
    assert await verdict(store, trial) == [WOULD]
    assert await store.latest(TENANT.id, trial.id) is None


async def test_a_trial_reads_all_three_forms_alike(store: SqliteStore) -> None:
    wrapped = parameters(resource=self_contained("R-1"))

    bodies = (register_body("R-1"), self_contained("R-1"), wrapped)

    assert len({tried(store, body).id for body in bodies}) == 1
    assert all(tried(store, body).version is not None for body in bodies)


async def test_what_is_wrong_is_found_and_not_built(store: SqliteStore) -> None:
    trial = tried(store, register_body("R-1", status="done", issued="yesterday"))

    errors = {one.expression for one in trial.found if one.severity == "error"}
    assert {place.rpartition(".")[2] for place in errors} == {"status", "issued"}
    assert trial.version is None
    assert trial.id == TENANT.resource_id(TYPE, SYSTEM, "R-1")
    assert await verdict(store, trial) == []


async def test_the_same_content_would_be_answered_as_at_first(store: SqliteStore) -> None:
    first = await registered(store, register_body("R-1"))

    found = await verdict(store, tried(store, register_body("R-1")))

    said = f"{TYPE}/{first.id} has this identifier with the same content: its first answer"
    assert found == [("information", f"{said} would be returned")]


@pytest.mark.parametrize(("setting", "severity"), [("conflict", "error"), ("replay", "warning")])
async def test_other_content_is_named_with_what_differs(
    store: SqliteStore, setting: Any, severity: str
) -> None:
    first = await registered(store, register_body("R-1"))
    config = replace(Config(), fhir=FhirConfig(other_content=setting))
    context = replace(context_of(store), config=config)
    trial = tried(store, register_body("R-1", conclusion="other"))

    [(found, said)] = await verdict(store, trial, context=context)

    assert found == severity
    assert f"{TYPE}/{first.id}" in said
    assert "conclusion" in said
    assert said.endswith(". Its first answer would be returned") is (setting == "replay")


async def test_wrong_content_of_a_known_identifier_is_only_what_was_found(
    store: SqliteStore,
) -> None:
    await registered(store, register_body("R-1"))
    trial = tried(store, register_body("R-1", status="done"))

    found = await add_verdict(
        trial, tenant=TENANT, type_name=TYPE, context=context_of(store), compare=compared
    )

    assert found == trial.found


async def test_an_identifier_without_a_digest_is_only_named(store: SqliteStore) -> None:
    version = await registered(store, register_body("R-1"))
    trial = replace(tried(store, register_body("R-2")), id="")
    assert await verdict(store, trial) == [WOULD]

    known = replace(tried(store, register_body("R-1")), digest=b"")
    found = await verdict(store, known)

    assert all(f"{TYPE}/{version.id}" in said for _severity, said in found)


async def test_the_identifier_of_another_tenant_is_not_known(store: SqliteStore) -> None:
    await registered(store, register_body("R-1"), tenant=OTHER_TENANT)

    assert await verdict(store, tried(store, register_body("R-1"))) == [WOULD]


@pytest.mark.parametrize("allows_reuse", [True, False])
async def test_what_was_erased_may_be_registered_as_its_order_says(
    store: SqliteStore,
    allows_reuse: bool,  # noqa: FBT001
) -> None:
    trial = tried(store, register_body("R-1"))
    assert trial.version is not None
    stands = Tombstone(version=1, at=5, allows_reuse=allows_reuse)
    await store.add(TENANT.id, husk_of(trial.version, stands))

    found = await add_verdict(
        trial, tenant=TENANT, type_name=TYPE, context=context_of(store), compare=compared
    )

    if allows_reuse:
        assert (found[0].severity, found[0].diagnostics) == WOULD
    else:
        assert (found[0].severity, found[0].details) == (
            "error",
            ContentProblem.IDENTIFIER_ERASED,
        )


@pytest.mark.parametrize("mode", ["update", "delete", "Create", "profile"])
def test_only_create_can_be_tried(store: SqliteStore, mode: str) -> None:
    [in_url] = refused(store, register_body("R-1"), mode=mode)
    body = register_body("R-1")
    body["parameter"].append({"name": "mode", "valueCode": mode})
    [in_body] = refused(store, body)

    problem = OperationProblem.PARAMETER_INVALID
    said = "only create can be tried"
    assert in_url == Issue.error(problem, said, "mode", code="not-supported")
    at = "Parameters.parameter.where(name='mode')"
    assert in_body == Issue.error(problem, said, at, code="not-supported")


@pytest.mark.parametrize("profile", [CANONICAL, f"{CANONICAL}|4.0.1"])
def test_the_profile_that_the_type_is_held_to_may_be_named(
    store: SqliteStore, profile: str
) -> None:
    assert tried(store, register_body("R-1"), profile=profile, mode="create").version is not None


@pytest.mark.parametrize("profile", [f"{CANONICAL}|5.0.0", f"{CANONICAL}x", "urn:x"])
def test_another_profile_is_refused(store: SqliteStore, profile: str) -> None:
    [issue] = refused(store, register_body("R-1"), profile=profile)

    assert (issue.expression, issue.diagnostics) == ("profile", "the type is held to another")


@pytest.mark.parametrize("name", ["resource", "mode", "profile"])
def test_an_entry_of_the_operation_stands_there_once(store: SqliteStore, name: str) -> None:
    body = {"resourceType": "Parameters", "parameter": [{"name": name}, {"name": name}]}

    assert refused(store, body) == [
        Issue.error(
            ContentProblem.ENTRY_REPEATED,
            f"the entry {name} stands here more than once",
            "Parameters.parameter",
        )
    ]


def test_all_entries_that_are_repeated_are_named_in_order(store: SqliteStore) -> None:
    names = ["resource", "mode", "resource", "mode"]
    body = {"resourceType": "Parameters", "parameter": [{"name": name} for name in names]}

    said = [one.diagnostics for one in refused(store, body)]

    assert [one.split()[2] for one in said] == ["mode", "resource"]


@pytest.mark.parametrize("entries", [None, 7, "a", [], [7, None, {"name": 7}]])
def test_entries_that_are_none_are_found_by_the_schema(store: SqliteStore, entries: Any) -> None:
    trial = tried(store, {"resourceType": "Parameters", "parameter": entries})

    assert any(one.severity == "error" for one in trial.found)
    assert (trial.id, trial.version) == ("", None)


def test_a_resource_alone_without_its_parts_is_wrong(store: SqliteStore) -> None:
    trial = tried(store, report("R-1"))

    assert any(one.severity == "error" for one in trial.found)
    assert trial.version is None


def test_a_patient_that_is_missing_is_one_that_the_tenant_may_hold(store: SqliteStore) -> None:
    found = tried(store, referring(PERSON))

    assert found.held is not None
    assert (found.held.part, found.held.literal) == ("patient", f"Patient/{PERSON}")
    assert found.version is None


def test_without_a_reference_of_ours_no_patient_is_held(store: SqliteStore) -> None:
    assert tried(store, referring("elsewhere")).held is None
    assert tried(store, register_body("R-1")).held is None


def test_a_patient_that_is_held_need_not_be_sent(store: SqliteStore) -> None:
    one = {"resourceType": "Patient", "id": PERSON, "meta": {"versionId": f"{new_id()}.1"}}
    held = Held("patient", f"Patient/{PERSON}", "DiagnosticReport", dumps(one))

    found = run_to_completion(
        try_registration(
            context_of(store),
            dumps(referring(PERSON)),
            is_xml=False,
            asked=Asked({"mode": "", "profile": ""}, held),
            type_name=TYPE,
            tenant=TENANT,
        )
    )

    assert found.held is None
    assert found.version is not None
    assert [one.diagnostics for one in found.found if one.severity == "error"] == []


def test_what_would_be_corrected_is_found(store: SqliteStore) -> None:
    lenient = create_context(
        replace(Config(), fhir=FhirConfig(empty_values="drop")), clock=context_of(store).clock
    )

    found = run_to_completion(
        try_registration(
            lenient,
            dumps(register_body("R-1", language="")),
            is_xml=False,
            asked=Asked({"mode": "", "profile": ""}),
            type_name=TYPE,
            tenant=TENANT,
        )
    )

    assert found.version is not None
    assert (found.found[0].severity, found.found[0].details) == ("warning", "value-empty")


def test_without_an_identifier_there_is_no_id(store: SqliteStore) -> None:
    trial = tried(store, register_body("R-1", identifier=None))

    assert (trial.id, trial.version) == ("", None)
    assert any("identifier" in one.expression for one in trial.found)


@pytest.mark.parametrize("body", [[], "text", 7, None])
def test_a_body_that_is_no_object_is_wrong(store: SqliteStore, body: Any) -> None:
    trial = tried(store, body)

    assert {one.severity for one in trial.found} == {"error"}
    assert (trial.id, trial.version) == ("", None)


@pytest.mark.parametrize("digest", [b"", None])
async def test_remarks_stand_behind_what_a_registration_would_lead_to(
    store: SqliteStore, digest: bytes | None
) -> None:
    version = await registered(store, register_body("R-1"))
    remark = Issue.warning(ContentProblem.CODE_UNKNOWN, "a remark", "at")
    trial = replace(tried(store, register_body("R-1")), found=[remark])
    trial = trial if digest is None else replace(trial, digest=digest)

    first, *others = await add_verdict(
        trial, tenant=TENANT, type_name=TYPE, context=context_of(store), compare=compared
    )

    assert first.severity == "information"
    assert f"{TYPE}/{version.id} has this identifier" in first.diagnostics
    assert others == [remark]
