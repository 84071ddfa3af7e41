"""The operations that operators have in the console."""

from __future__ import annotations

from fhirpub.administration.table import OPERATIONS
from fhirpub.console.operators.catalogue import LEFT_OUT, OFFERED, secrets_in, subjects
from fhirpub.console.operators.fields import fields_of, read_given
from fhirpub.console.operators.shown import Shower

BY_COMMAND = {one.command: one for one in OPERATIONS}


def test_every_operation_has_a_page_or_is_left_out_for_a_reason() -> None:
    offered = {one.command for one in OFFERED.values()}

    assert offered | set(LEFT_OUT) == set(BY_COMMAND)
    assert not offered & set(LEFT_OUT)


def test_every_operation_that_has_a_page_is_listed_once() -> None:
    listed = [one.name for _title, operations in subjects() for one in operations]

    assert sorted(listed) == sorted(OFFERED)


def test_deliveries_are_listed_of_one_endpoint() -> None:
    required = [one.name for one in OFFERED["deliveriesList"].parameters if one.required]

    assert required == ["endpoint"]


def test_a_form_gives_what_the_parameters_declare() -> None:
    texts = {
        "scopes": [" a \r\n\r\nb"],
        "valid_days": ["7"],
        "jwks": ['{"keys": []}'],
        "name": ["  "],
        "other": ["x"],
    }

    assert read_given(BY_COMMAND["client add"], texts) == {
        "scopes": ["a", "b"],
        "valid_days": 7,
        "jwks": {"keys": []},
    }


def test_a_secret_has_a_field_that_hides_it() -> None:
    fields = fields_of(BY_COMMAND["endpoint add"], {}, {})

    hidden = [one.name for one in fields if one.control == "password"]
    assert hidden == ["signing_secret", "bearer_token"]


def test_the_link_of_an_invitation_is_a_secret_and_the_url_of_an_endpoint_is_none() -> None:
    result = {"name": "Ada", "url": "https://console.example/console/invitation?code=x"}

    for command, secrets in {"client invite": ["URL"], "endpoint add": []}.items():
        shower = Shower(secrets=secrets_in(BY_COMMAND[command]))
        assert [one.label for one in shower.show(result).secrets] == secrets


def test_what_an_operation_requires_its_page_requires_too() -> None:
    for one in OFFERED.values():
        required = {each.name for each in BY_COMMAND[one.command].parameters if each.required}
        offered = {each.name for each in one.parameters if each.required}
        assert offered - required <= {"endpoint"}, one.command
        assert required <= offered, one.command
