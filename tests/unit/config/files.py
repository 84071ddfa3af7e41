"""Settings of a file, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fhirpub.config.loader import load
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError


def loaded(folder: Path, text: str, **variables: str) -> Config:
    """Return the settings of a text, and of environment variables."""
    file = folder / "fhirpub.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, environment=variables)


def problems_of(folder: Path, text: str, **variables: str) -> list[str]:
    """Return why settings are refused, line by line."""
    with pytest.raises(ConfigurationError) as refusal:
        loaded(folder, text, **variables)
    return str(refusal.value).splitlines()
