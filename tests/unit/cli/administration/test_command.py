"""``fhirpub admin``: the keys that it creates are those that the service accepts."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fhirpub.auth.assertions.key_set import read_key_set
from fhirpub.cli.administration.command import admin
from fhirpub.config.administration import AdminConfig, admin_callers, admin_contradictions


def run(*words: str) -> Result:
    return CliRunner().invoke(admin, words)


def json_of(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def test_the_setting_of_a_bootstrap_key_is_its_hash() -> None:
    made = json_of("new-key")

    digest = hashlib.sha256(made["key"].encode()).hexdigest()
    assert made["setting"] == f'bootstrap_key_hash = "{digest}"'
    assert not list(admin_contradictions(AdminConfig(port=1, bootstrap_key_hash=digest)))


def test_each_bootstrap_key_has_32_random_bytes() -> None:
    keys = {json_of("new-key")["key"] for _ in range(2)}

    assert [len(key) for key in keys] == [43, 43]


def test_the_next_steps_after_a_bootstrap_key_are_printed() -> None:
    text = run("new-key").stdout

    assert text.startswith("Key created.\n")
    assert "The key is shown only once: store it in a safe place." in text
    assert "set FHIRPUB_ADMIN_KEY to the key, and FHIRPUB_ADMIN_URL" in text


def test_a_caller_gets_a_private_key_that_others_cannot_read(tmp_path: Path) -> None:
    made = json_of("new-caller", "ana", "--folder", str(tmp_path))

    file = tmp_path / "ana.key.json"
    assert made["private_key"] == str(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = json.loads(file.read_bytes())
    assert key["name"] == "ana"
    assert "d" in key


def test_the_public_keys_of_a_caller_are_a_set_without_private_parts(tmp_path: Path) -> None:
    made = json_of("new-caller", "ana", "--folder", str(tmp_path))

    public = json.loads((tmp_path / "ana.jwks.json").read_bytes())
    private = json.loads((tmp_path / "ana.key.json").read_bytes())
    assert made["public_keys"] == str(tmp_path / "ana.jwks.json")
    assert [one["kid"] for one in public["keys"]] == [private["kid"]]
    assert "d" not in public["keys"][0]
    assert read_key_set((tmp_path / "ana.jwks.json").read_bytes())


def test_the_setting_of_a_caller_names_its_public_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    setting = json_of("new-caller", "a.b_c-9")["setting"]

    text = setting.removeprefix('callers = ["').removesuffix('"]')
    assert admin_callers(AdminConfig(callers=[text])) == {
        "a.b_c-9": tmp_path.resolve() / "a.b_c-9.jwks.json"
    }


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 65])
def test_a_name_that_no_caller_can_have_is_refused(tmp_path: Path, name: str) -> None:
    result = run("new-caller", "--folder", str(tmp_path), "--", name)

    assert result.exit_code == 2
    assert "must be 1 to 64 letters, digits, dots, hyphens and underscores" in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_name_may_have_64_characters(tmp_path: Path) -> None:
    assert run("new-caller", "x" * 64, "--folder", str(tmp_path)).exit_code == 0


@pytest.mark.parametrize("name", ["ana.key.json", "ana.jwks.json"])
def test_no_file_is_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("kept")

    result = run("new-caller", "ana", "--folder", str(tmp_path))

    assert result.exit_code == 1
    assert f"{tmp_path / name} exists: remove it, or choose another name" in result.output
    assert [file.read_text() for file in tmp_path.iterdir()] == ["kept"]
