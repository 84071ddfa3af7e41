"""Settings at their limits are accepted, and refused one beyond."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import pytest

from fhirpub.config import loader
from fhirpub.config.webhooks import WebhooksConfig
from tests.unit.config.files import loaded, problems_of
from tests.unit.config.limits import WEBHOOKS_ABOVE_ZERO


@pytest.mark.parametrize(
    "text",
    [
        "[server]\nport = 65535",
        "[server]\nworkers = 1",
        "[admin]\nport = 65535\ncallers = ['a=b']",
        f"[admin]\nport = 8090\nbootstrap_key_hash = '{'0f' * 32}'",
        "[admin]\ncallers = ['a=b', 'c=b']",
        "[admin]\ntoken_seconds = 1",
        "[console]\nport = 65535",
        "[console]\nsession_hours = 1\nidle_minutes = 1",
        "[console]\noidc_issuer = 'https://a.example'\noidc_client_id = 'x'",
        "[console]\noidc_issuer = 'http://127.0.0.1:1'\noidc_client_id = 'x'",
        "[auth]\nsecret_days = 36500",
        "[auth]\ntoken_seconds = 3153600000",
        "[auth]\ntoken_seconds = 1\nassertion_token_seconds = 1",
        "[storage]\ndeadline_seconds = 0.1",
        "[metrics]\nport = 65535",
        "[server]\nworkers = 2\n[metrics]\nport = 65534",
        "[metrics]\nport = 8079",
        "[metrics]\nport = 8081",
        "[server]\nworkers = 3\n[metrics]\nport = 8077",
        "[metrics]\nport = 8080\nhost = '127.0.0.2'",
        "[admin]\nport = 8080\nhost = '127.0.0.2'\ncallers = ['a=b']",
        "[webhooks]\nlease_seconds = 0.5",
        "[webhooks]\nbreaker_share = 1.0",
        "[webhooks]\nconnect_seconds = 15.0",
        "[webhooks]\nports = [1, 65535]",
        "[fhir]\npage_size = 100",
        "[fhir]\npage_size = 1\npage_size_max = 1",
        "[tracing]\nsample_ratio = 0.0",
        "[tracing]\nsample_ratio = 1.0",
        "[limits]\nrequest_bytes = 7\ndrain_bytes = 7",
        "[server]\ncertificate_header = 'X-Client-Cert'\ntrusted_proxies = ['10.0.0.0/8']",
        "[storage]\nkeys_file = 'a'\n[webhooks]\nkeys_file = 'a'",
        "[webhooks]\nkeys_file = 'a'",
        "[retention]\nerasures_per_minute = 1",
        "[server]\ndrain_seconds = 9007199254740992",
        "[plugins]\nenvironment = 'development'\n[auth]\nenvironment = 'sandbox'",
    ],
)
def test_a_setting_at_its_limit_is_accepted(tmp_path: Path, text: str) -> None:
    loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[console]\nport = 65536", "[console] port must be at most 65535"),
        (
            "[console]\noidc_issuer = 'http://a.example'\noidc_client_id = 'x'",
            "[console] oidc_issuer must begin with https://",
        ),
        (
            "[console]\noidc_issuer = 'https://a.example'",
            "[console] oidc_issuer needs oidc_client_id",
        ),
        ("[console]\nport = 8080", "[console] port: must differ from that of [server]"),
        (
            "[console]\nport = 8090\n[admin]\nport = 8090\ncallers = ['a=b']",
            "[console] port: must differ from that of [admin]",
        ),
        (
            "[server]\nworkers = 2\n[metrics]\nport = 8090\n[admin]\nport = 8091\ncallers=['a=b']",
            "[admin] port: must differ from that of [metrics]; each worker takes the next one",
        ),
        (
            "[metrics]\nport = 8090\n[console]\nport = 8091\n[server]\nworkers = 2",
            "[console] port: must differ from that of [metrics]; each worker takes the next one",
        ),
        ("[tracing]\nsample_ratio = 1.01", "[tracing] sample_ratio must be from 0 to 1"),
        (
            "[tracing]\nendpoint = 'a.example'",
            "[tracing] endpoint must start with http:// or https://, and name a host",
        ),
        (
            "[server]\ncertificate_header = 'X Cert'\ntrusted_proxies = ['10.0.0.0/8']",
            "[server] certificate_header must be the name of a header, such as X-Client-Cert",
        ),
        (
            "[server]\ncertificate_header = 'X-Cert'",
            "[server] certificate_header needs trusted_proxies: it counts only from these",
        ),
        (
            "[storage]\nkeys_file = 'a'\n[webhooks]\nkeys_file = 'b'",
            "[webhooks] keys_file is an older name of [storage] keys_file: set only one",
        ),
        (
            "[plugins]\nenvironment = 'development'\n[auth]\nenvironment = 'production'",
            "[plugins] environment: development writes what exceptions say to the log, and must",
        ),
        (
            "[auth]\nassertion_token_seconds = 3153600001",
            "[auth] assertion_token_seconds must be at",
        ),
        (
            "[server]\ndrain_seconds = 9007199254740993",
            "drain_seconds in [server]: must be at most 90071",
        ),
        (
            "[fhir]\npage_size_max = 49\npage_size = 50",
            "[fhir] page_size must be between 1",
        ),
        ("[console]\nhost = ''", "[console] host must not be empty"),
        ("[metrics]\nhost = ' '", "[metrics] host must not be empty"),
        ("[console]\nbase_url = 'x'", "[console] base_url must start with http:// or https://"),
        ("[server]\nbase_url = 'https://a.example:0'", "[server] base_url must start with"),
        ("[server]\nbase_url = 'https://a.example/?b'", "[server] base_url must start with"),
        ("[webhooks]\nports = [65536]", "[webhooks] ports must be between 1 and 65535"),
        (f"[admin]\nbootstrap_key_hash = '{'0' * 63}'", "[admin] bootstrap_key_hash must be 64"),
    ],
)
def test_a_setting_beyond_its_limit_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (line,) = problems_of(tmp_path, text)

    assert line.removeprefix(f"{tmp_path / 'fhirpub.toml'}: ").startswith(problem)


ABOVE_ZERO = [
    ("admin", ["token_seconds"]),
    ("console", ["idle_minutes", "session_hours"]),
    ("auth", ["token_seconds", "assertion_token_seconds"]),
    ("retention", ["erasures_per_minute"]),
    ("storage", ["deadline_seconds"]),
    (
        "limits",
        [
            "attachment_bytes",
            "resource_bytes",
            "body_seconds",
            "idle_seconds",
            "head_seconds",
            "connections",
            "search_values",
            "search_seconds",
        ],
    ),
    ("webhooks", WEBHOOKS_ABOVE_ZERO),
]


@pytest.mark.parametrize(("group", "keys"), ABOVE_ZERO)
def test_what_would_refuse_every_request_must_be_above_zero(
    tmp_path: Path, group: str, keys: list[str]
) -> None:
    text = "\n".join([f"[{group}]", *(f"{key} = 0" for key in keys)])

    assert problems_of(tmp_path, text) == [f"[{group}] {key} must be above 0" for key in keys]


def test_every_limit_of_webhooks_may_be_as_small_as_one() -> None:
    hints = get_type_hints(WebhooksConfig)
    keys: dict[str, Any] = dict.fromkeys(WEBHOOKS_ABOVE_ZERO, 1)

    assert keys.keys() <= hints.keys()
    assert WebhooksConfig(**keys).held_days == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Patient",
        "patient after 1 days",
        "Patient after 0 days",
        "Patient after 1000000 days",
        "Patient after 01 days",
        "Patient after 1 day",
        "Patient?status= after 1 days",
        "Patient?code=x after 1 days",
        " Patient after 1 days",
    ],
)
def test_a_policy_in_another_form_is_refused(tmp_path: Path, text: str) -> None:
    (line,) = problems_of(tmp_path, f"[retention]\npolicies = ['{text}']")

    assert line.startswith(f"[retention] policies: {text!r} must be like 'DiagnosticReport?status")


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "é"])
def test_the_name_of_a_caller_is_short_and_plain(tmp_path: Path, name: str) -> None:
    (line,) = problems_of(tmp_path, f"[admin]\ncallers = ['{name}=c']")

    assert line.startswith("[admin] callers: ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("1", True),
        ("TRUE", True),
        ("false", False),
        ("0", False),
        ("False", False),
    ],
)
def test_a_variable_is_true_or_false_in_four_forms(text: str, *, value: bool) -> None:
    found = loader.load(environment={"FHIRPUB_AUDIT__ENABLED": text})

    assert found.audit.enabled is value


def test_a_list_in_a_variable_is_separated_by_commas_without_its_blanks() -> None:
    variables = {"FHIRPUB_PATIENTS__PERSON_SYSTEMS": " urn:x:1 ,, urn:x:2,"}

    assert loader.load(environment=variables).patients.person_systems == ["urn:x:1", "urn:x:2"]
