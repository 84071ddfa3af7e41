"""The files in conf/ match the code."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fhirpub.config.loader import load, reference

CONF = Path(__file__).parents[2] / "conf"


def test_the_reference_file_is_what_the_code_prints() -> None:
    written = (CONF / "fhirpub.toml").read_text(encoding="utf-8")

    assert written == reference(), "run: fhirpub config > conf/fhirpub.toml"


@pytest.mark.parametrize("name", ["fhirpub.toml", "development.toml", "production.toml"])
def test_every_file_can_be_loaded(name: str) -> None:
    load(CONF / name, environment={})


def test_production_is_strict() -> None:
    config = load(CONF / "production.toml", environment={})

    assert config.auth.environment == "production"
    assert config.auth.enforce_scopes
    assert config.fhir.hash_check == "strict"
    assert config.logs.format == "json"
    assert config.base_url.startswith("https://")


@pytest.mark.parametrize("name", ["development.toml", "production.toml"])
def test_a_file_names_only_what_differs_from_the_defaults_or_is_worth_naming(name: str) -> None:
    given = tomllib.loads((CONF / name).read_text(encoding="utf-8"))

    assert given.keys() <= tomllib.loads(reference()).keys()
