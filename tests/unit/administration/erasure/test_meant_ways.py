"""The one way by which an order names what it means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.administration.erasure.meant import WAYS, find_meant
from fhirpub.administration.erasure.work import Work
from fhirpub.config.retention import RetentionConfig
from fhirpub.errors import ConfigurationError, InvalidContent
from fhirpub.interactions.erasure.patients import patients_by_identifier
from fhirpub.plugin_api import ValueForm
from fhirpub.runtime.clock import DAY_MS
from tests.panels import panel
from tests.unit.administration.erasure.test_meant import of_patient
from tests.unit.administration.office import Office
from tests.unit.interactions.erasure.registered import registered
from tests.unit.interactions.erasure.test_patients import KEY


async def issues_of(work: Work, **given: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidContent) as refused:
        await find_meant(work, given)
    return [(issue.expression, issue.diagnostics) for issue in refused.value.issues]


async def test_none_and_several_ways_are_refused_with_all_there_are(
    office: Office, lab: str
) -> None:
    rule = f"name resources by exactly one of {', '.join(WAYS)}"
    work = await Work.on(office.administration, lab)
    wrong: list[dict[str, Any]] = [
        {},
        {"expired": False},
        {"reports": []},
        {"reports": [], "expired": False},
        {"reports": ["a"], "patients": ["b"]},
        {"reports": ["a"], "expired": True},
        {"patient_identifier": "s|v", "expired": True},
    ]

    assert rule.startswith("name resources by exactly one of reports, ")
    for given in wrong:
        assert await issues_of(work, **given) == [("", rule)]


async def test_each_report_is_meant_once_in_the_order_of_the_names(
    office: Office, lab: str
) -> None:
    meant = await find_meant(
        await Work.on(office.administration, lab), {"reports": ["DiagnosticReport/b", "a", "b"]}
    )

    assert (meant.ids, meant.moved, meant.leaves_out_holds) == (["b", "a"], {}, False)


async def test_an_identifier_needs_the_type_it_is_of(office: Office, lab: str) -> None:
    work = await Work.on(office.administration, lab)

    for named in ("urn:s|R-1", "s|v"):
        assert await issues_of(work, report_identifier=named) == [
            ("type", "is required with report_identifier")
        ]


async def test_an_identifier_is_the_one_of_its_type_and_tenant(
    office: Office, lab: str, other: str
) -> None:
    found = set()
    for tenant in (lab, other):
        for type_name in ("DiagnosticReport", "Unknown"):
            given = {"report_identifier": "urn:s|R-1", "type": type_name}
            meant = await find_meant(await Work.on(office.administration, tenant), given)
            owner = await office.administration.tenant(tenant)
            assert meant.ids == [owner.resource_id(type_name, "urn:s", "R-1")]
            found.update(meant.ids)

    assert len(found) == 4


async def test_an_identifier_means_what_was_registered_in_another_form(
    office: Office, lab: str
) -> None:
    work = await Work.on(office.administration, lab)
    declared = work.context.types["DiagnosticReport"]
    rule = replace(declared.identifier, forms=(ValueForm(case="upper"),))
    types = {"DiagnosticReport": replace(declared, identifier=rule)}
    given = {"report_identifier": "urn:s|r-1", "type": "DiagnosticReport"}

    meant = await find_meant(replace(work, context=replace(work.context, types=types)), given)

    owner = await office.administration.tenant(lab)
    assert meant.ids == [owner.resource_id("DiagnosticReport", "urn:s", "R-1")]


async def test_what_has_expired_by_any_of_the_policies_is_meant_once(
    office: Office, lab: str
) -> None:
    owner, store = await office.administration.tenant(lab), office.store
    statuses = ["preliminary", "final"]
    reports = [
        await registered(store, panel(status, status=status), tenant=owner)  # type: ignore[arg-type]
        for status in statuses
    ]
    policies = [f"DiagnosticReport?status={status} after 1 days" for status in statuses]
    policies.append("DiagnosticReport after 2 days")
    office.clock.now = reports[-1].updated + 4 * DAY_MS

    later = office.with_config(retention=RetentionConfig(policies=policies))
    meant = await find_meant(await Work.on(later.administration, lab), {"expired": True})

    assert (meant.ids, meant.leaves_out_holds) == ([one.id for one in reports], True)


async def test_what_has_expired_by_a_policy_is_meant_though_the_last_names_others(
    office: Office, lab: str
) -> None:
    owner, store = await office.administration.tenant(lab), office.store
    statuses = ["preliminary", "final", "partial"]
    reports = [
        await registered(store, panel(status, status=status), tenant=owner)  # type: ignore[arg-type]
        for status in statuses
    ]
    policies = [f"DiagnosticReport?status={status} after 1 days" for status in statuses[:2]]
    office.clock.now = reports[-1].updated + 4 * DAY_MS

    later = office.with_config(retention=RetentionConfig(policies=policies))
    meant = await find_meant(await Work.on(later.administration, lab), {"expired": True})

    assert meant.ids == [one.id for one in reports[:2]]


async def test_without_policies_nothing_can_have_expired(office: Office, lab: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^\[retention\] policies has none$"):
        await find_meant(await Work.on(office.administration, lab), {"expired": True})


async def test_patients_are_meant_by_ids(office: Office, lab: str) -> None:
    report = await of_patient(office, lab, "R-1", KEY[1])
    await of_patient(office, lab, "R-2", "AAB999999")
    work = await Work.on(office.administration, lab)
    (id_,) = await patients_by_identifier(KEY, tenant=work.tenant, context=work.context)

    assert (await find_meant(work, {"patients": [f"Patient/{id_}"]})).ids == [report.id]
