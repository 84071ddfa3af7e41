"""The published process runner applies its configuration."""

from __future__ import annotations

from pathlib import Path

from fhirpub.testing.process import ServiceProcess


def test_its_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "größe 測試 🩺"
    folder.mkdir()

    assert ServiceProcess(folder).config.storage.url == f"sqlite:///{folder}/fhirpub.db"
