"""What a provider, or who comes in its name, can and cannot make the console do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.testing.service import Answer, RunningService
from tests.console.crowd import add_crowd
from tests.console.sign_in.conftest import Site, config_in
from tests.console.sign_in.issuer import CLIENT, SECRET, Issuer, running_issuer
from tests.console.sign_in.visitor import Visitor
from tests.console.turns import measured

OPERATOR = "op@hospital.example"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


@pytest.fixture(scope="module")
def hospital(
    issuer: Issuer, store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A console whose operators sign in at the provider."""
    folder = tmp_path_factory.mktemp("provider")
    config, key = config_in(
        folder,
        oidc_issuer=issuer.url,
        oidc_client_id=CLIENT,
        oidc_client_secret=SECRET,
        oidc_operators=[OPERATOR],
    )
    with RunningService(folder, config=config, store_url=store_url("provider")) as running:
        yield Site(service=running, operator_key=key)


@pytest.fixture(autouse=True)
def _well(issuer: Issuer) -> None:
    issuer.claims, issuer.forged, issuer.key = {}, "", issuer.private


def leave(visitor: Visitor) -> dict[str, str]:
    """Leave for the provider; return what it is asked for."""
    answer = visitor.get("/console/sign-in/leave")
    assert answer.status == 303, answer.body
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    return {name: values[0] for name, values in query.items()}


def come_back(visitor: Visitor, asked: dict[str, str], code: str = "c") -> Answer:
    return visitor.get(f"/console/sign-in/provider?code={code}&state={asked['state']}")


def test_an_operator_of_the_provider_signs_in(hospital: Site, issuer: Issuer) -> None:
    visitor = Visitor(hospital.service)
    asked = leave(visitor)
    issuer.claims = {"email": OPERATOR, "nonce": asked["nonce"]}

    assert come_back(visitor, asked).status == 303
    assert visitor.is_signed_in()


@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"nonce": "another"},
        {"nonce": None},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email": None},
        {"email": [OPERATOR]},
        {"email": "bootstrap"},
        {"email": "ana"},
    ],
    ids=str,
)
def test_a_wrong_token_signs_nobody_in(
    wrong: dict[str, Any], hospital: Site, issuer: Issuer
) -> None:
    visitor = Visitor(hospital.service)
    asked = leave(visitor)
    issuer.claims = {"email": OPERATOR, "nonce": asked["nonce"], **wrong}

    assert come_back(visitor, asked).status == 403
    assert not visitor.is_signed_in()


def test_a_token_without_a_signature_of_the_provider_signs_nobody_in(
    hospital: Site, issuer: Issuer
) -> None:
    visitor = Visitor(hospital.service)
    asked = leave(visitor)
    issuer.claims = {"email": OPERATOR, "nonce": asked["nonce"]}
    payload = issuer.token().split(".")[1]
    issuer.forged = f"eyJhbGciOiJub25lIn0.{payload}."
    assert come_back(visitor, asked).status == 403

    issuer.forged = ""
    issuer.key = {**new_key_pair()[0]}
    asked = leave(visitor)
    issuer.claims["nonce"] = asked["nonce"]
    assert come_back(visitor, asked).status == 403


def test_a_code_counts_in_the_browser_alone_that_asked_for_it(
    hospital: Site, issuer: Issuer
) -> None:
    attacker, victim = Visitor(hospital.service), Visitor(hospital.service)
    asked, _own = leave(attacker), leave(victim)
    issuer.claims = {"email": OPERATOR, "nonce": asked["nonce"]}

    assert come_back(victim, asked).status == 403
    assert not victim.is_signed_in()


def test_the_way_back_is_gone_once(hospital: Site, issuer: Issuer) -> None:
    visitor = Visitor(hospital.service)
    asked = leave(visitor)
    issuer.claims = {"email": OPERATOR, "nonce": asked["nonce"]}
    copy = Visitor(hospital.service, cookies=dict(visitor.cookies))
    come_back(visitor, asked)

    assert come_back(copy, asked).status == 403
    assert not copy.is_signed_in()


def test_a_link_to_the_provider_ends_no_session(hospital: Site, issuer: Issuer) -> None:
    visitor = Visitor(hospital.service)
    asked = leave(visitor)
    issuer.claims = {"email": OPERATOR, "nonce": asked["nonce"]}
    come_back(visitor, asked)

    answer = visitor.get("/console/sign-in/leave?next=/console/help")

    assert answer.headers["location"] == "/console/help"
    assert visitor.is_signed_in()


def test_the_provider_is_asked_once_for_its_configuration(hospital: Site, issuer: Issuer) -> None:
    leave(Visitor(hospital.service))
    issuer.asked.clear()

    for _ in range(20):
        leave(Visitor(hospital.service))

    assert not issuer.asked


def test_the_store_records_no_way_back_that_proves_nothing(hospital: Site, issuer: Issuer) -> None:
    visitor = Visitor(hospital.service)
    asked = leave(visitor)
    issuer.claims = {"email": OPERATOR, "nonce": "another"}
    assert come_back(visitor, asked).status == 403
    issuer.claims = {"email": OPERATOR, "nonce": asked["nonce"]}

    assert come_back(visitor, asked).status == 303


def test_the_way_to_a_page_fits_into_the_cookie(hospital: Site) -> None:
    visitor = Visitor(hospital.service)

    visitor.get(f"/console/sign-in/leave?next=/console/{'x' * 6000}")

    assert len(visitor.set_cookie) < 4096


def test_to_look_for_a_person_leaves_the_event_loop_to_others(
    hospital: Site, issuer: Issuer
) -> None:
    add_crowd(hospital.service, hospital.tenant(), 150)
    visitor = Visitor(hospital.service)
    asked = leave(visitor)
    issuer.claims = {"email": "eve@lab.example", "nonce": asked["nonce"]}

    with measured(hospital.service) as turns:
        answer = come_back(visitor, asked)

    assert answer.status == 403
    assert turns.longest < 20
