"""The effective settings are shown, without passwords."""

from __future__ import annotations

import pytest

from fhirpub.cli.settings import without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////var/lib/me@here/x.db", "sqlite:////var/lib/me@here/x.db"),
        ("mongodb://a:1,b:2/x?replicaSet=rs0", "mongodb://a:1,b:2/x?replicaSet=rs0"),
        ("mongodb://user@a/x", "mongodb://user@a/x"),
        ("mongodb://user:word@a:1,b/x?w=1", "mongodb://user:***@a:1,b/x?w=1"),
        ("mongodb+srv://user:word@a/x", "mongodb+srv://user:***@a/x"),
        ("mongodb://user:wo@rd:wo/rd?wo@a/x", "mongodb://user:***@a/x"),
        ("mongodb:user:word@a/x", ":***@a/x"),
        (
            "mongodb://a/x?tlscertificatekeyfilepassword=word&w=1",
            "mongodb://a/x?tlscertificatekeyfilepassword=***&w=1",
        ),
        (
            "mongodb://a/x?authMechanismProperties=AWS_SESSION_TOKEN:word",
            "mongodb://a/x?authMechanismProperties=***",
        ),
    ],
)
def test_the_url_of_a_store_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown
