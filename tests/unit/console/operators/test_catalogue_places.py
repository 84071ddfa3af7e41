"""Where operations and records have their pages."""

from __future__ import annotations

import pytest

from fhirpub.administration.table import OPERATIONS
from fhirpub.console.operators.catalogue import (
    OFFERED,
    SECRETS,
    by_command,
    form_of,
    home_of,
    needs_confirmation,
    secrets_in,
    section_of,
    shows_values_of,
    subject_of,
    subjects,
)


@pytest.mark.parametrize(
    ("name", "value", "subject", "path"),
    [
        ("tenant", "t", "", "tenants/t"),
        ("client", "c", "", "clients/c"),
        ("endpoint", "e", "", "endpoints/e"),
        ("Client", "c", "", "clients/c"),
        ("client_id", "c", "", "clients/c"),
        ("endpoint_id", "e", "tenant", "endpoints/e"),
        ("id", "t", "tenant", "tenants/t"),
        ("id", "e", "Endpoint", "endpoints/e"),
        ("tenant", "service", "", "audit/service"),
        ("id", "service", "tenant", "audit/service"),
        ("client", "service", "", "clients/service"),
    ],
)
def test_a_record_leads_to_its_page(name: str, value: str, subject: str, path: str) -> None:
    assert home_of(name, value, subject) == f"/console/operations/{path}"


@pytest.mark.parametrize(
    ("name", "value", "subject"),
    [
        ("tenant", "", ""),
        ("id", "x", ""),
        ("id", "x", "keys"),
        ("kid", "x", "client"),
        ("DiagnosticReport", "x", ""),
        ("event", "service", ""),
    ],
)
def test_a_record_without_a_page_leads_nowhere(name: str, value: str, subject: str) -> None:
    assert home_of(name, value, subject) == ""


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        ("client edit", "client show"),
        ("client scopes", "client show"),
        ("endpoint set", "endpoint show"),
        ("tenant rename", "tenant show"),
    ],
)
def test_a_change_of_values_begins_with_those_there_are(command: str, shows: str) -> None:
    assert shows_values_of(by_command(command)) is by_command(shows)


@pytest.mark.parametrize("command", ["client add", "client show", "tenant disable"])
def test_other_operations_begin_empty(command: str) -> None:
    assert shows_values_of(by_command(command)) is None


@pytest.mark.parametrize(
    ("command", "section"),
    [
        ("tenant add", "tenants"),
        ("quota show", "tenants"),
        ("client list", "clients"),
        ("token revoke", "keys"),
        ("keys list", "keys"),
        ("endpoint add", "endpoints"),
        ("deliveries list", "endpoints"),
        ("audit list", "audit"),
        ("erase report", "erasures"),
        ("hold list", "erasures"),
    ],
)
def test_an_operation_belongs_to_a_part_of_the_navigation(command: str, section: str) -> None:
    assert section_of(by_command(command)) == section


def test_a_subject_is_the_first_word_of_a_command() -> None:
    assert subject_of(by_command("client add-person")) == "client"


def test_each_subject_has_operations_and_only_its_own() -> None:
    for _title, operations in subjects():
        assert len({subject_of(one) for one in operations}) == 1


def test_what_is_final_or_deletes_is_asked_about() -> None:
    for command, asks in {
        "client disable": True,
        "endpoint rm": True,
        "hold release": True,
        "client edit": False,
        "tenant list": False,
    }.items():
        assert needs_confirmation(by_command(command)) == asks, command


@pytest.mark.parametrize("command", ["client add-person", "client invite"])
def test_an_invitation_has_the_link_as_a_secret_besides_the_usual(command: str) -> None:
    assert secrets_in(by_command(command)) == SECRETS | {"url"}
    assert secrets_in(by_command("endpoint add")) == SECRETS


def test_only_the_deliveries_that_pages_list_need_an_endpoint() -> None:
    (declared,) = [one for one in OPERATIONS if one.command == "deliveries list"]
    assert not any(one.required for one in declared.parameters if one.name == "endpoint")

    for one in OPERATIONS:
        if one.name in OFFERED and one.command != "deliveries list":
            assert OFFERED[one.name] == one


def test_a_form_is_filled_with_values() -> None:
    assert form_of("client add", tenant="a b") == "/console/operations/run/clientAdd?tenant=a+b"
