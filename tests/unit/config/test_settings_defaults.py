"""What a service does whose settings are empty: the defaults of each group."""

from __future__ import annotations

import dataclasses

from fhirpub.config.settings import (
    ENVIRONMENTS,
    AuthConfig,
    FhirConfig,
    LimitsConfig,
    ServerConfig,
    TerminologyConfig,
    TypeConfig,
)


def test_there_are_two_environments() -> None:
    assert ENVIRONMENTS == ("sandbox", "production")


def test_one_process_listens_on_this_machine_and_trusts_no_proxy() -> None:
    assert dataclasses.asdict(ServerConfig()) == {
        "host": "127.0.0.1",
        "port": 8080,
        "base_url": "",
        "workers": 1,
        "drain_seconds": 30.0,
        "trusted_proxies": [],
        "certificate_header": "",
        "gzip_requests": True,
        "compress_from_bytes": 16384,
    }


def test_tokens_last_a_day_and_scopes_are_not_required() -> None:
    assert dataclasses.asdict(AuthConfig()) == {
        "issuer": "",
        "audience": "https://fhirpub.local/fhir",
        "environment": "sandbox",
        "token_seconds": 86400,
        "assertion_token_seconds": 300,
        "leeway_seconds": 0,
        "tenant_claim": "org_id",
        "algorithm": "ES256",
        "secret_grace_seconds": 86400,
        "secret_days": 0,
        "enforce_scopes": False,
    }


def test_every_status_may_follow_and_no_further_element_is_updatable() -> None:
    assert dataclasses.asdict(TypeConfig()) == {"state_flow": "open", "updatable": []}


def test_what_fhir_leaves_open_is_strict_where_data_could_be_lost() -> None:
    assert dataclasses.asdict(FhirConfig()) == {
        "metadata_public": False,
        "default_timezone": "UTC",
        "hash_check": "warn",
        "empty_values": "refuse",
        "time_forms": "fhir",
        "other_content": "replay",
        "last_modified_style": "by-route",
        "allow_gender_unknown": False,
        "organization_namespaces": [],
        "page_size": 20,
        "page_size_max": 100,
    }


def test_sizes_times_and_rates_are_limited() -> None:
    assert dataclasses.asdict(LimitsConfig()) == {
        "attachment_bytes": 5242880,
        "request_bytes": 33554432,
        "drain_bytes": 134217728,
        "compute_processes": 2,
        "large_bodies_bytes": 67108864,
        "large_answers_bytes": 33554432,
        "resource_bytes": 8388608,
        "body_seconds": 30.0,
        "idle_seconds": 75.0,
        "head_seconds": 15.0,
        "connections": 4096,
        "connections_per_address": 512,
        "requests_per_client": 0,
        "search_values": 1000,
        "search_seconds": 4.0,
        "token_failures": 10,
    }


def test_no_code_system_is_taken_for_correct() -> None:
    assert dataclasses.asdict(TerminologyConfig()) == {"value_set_directories": [], "assume": []}
