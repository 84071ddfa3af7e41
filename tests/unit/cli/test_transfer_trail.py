"""``fhirpub transfer`` copies the audit trail, whatever else there is to copy."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

KEYS = {"FHIRPUB_STORE_KEYS": base64.b64encode(b"k" * 32).decode()}


def actions_in(run: Any, url: str) -> list[str]:
    listed = json.loads(run("audit", "list", "--json", FHIRPUB_STORAGE__URL=url, **KEYS).stdout)
    return [one["action"] for one in listed if not one["action"].startswith("audit.")]


def test_records_that_wait_are_copied_also_of_a_store_without_versions(run: Any) -> None:
    run("tenant", "add", "Lab Uno", **KEYS)

    assert run("transfer", "--to", "sqlite:///copy.db", **KEYS).returncode == 0

    assert actions_in(run, "sqlite:///copy.db").count("tenant.add") == 2


def test_a_repetition_copies_the_records_that_have_been_added(run: Any) -> None:
    run("tenant", "add", "Lab Uno", **KEYS)
    run("transfer", "--to", "sqlite:///copy.db", **KEYS)
    run("tenant", "add", "Lab Dos", **KEYS)

    run("transfer", "--to", "sqlite:///copy.db", **KEYS)

    assert actions_in(run, "sqlite:///copy.db").count("tenant.add") == 4


def test_the_key_is_named_only_to_a_store_without_one(run: Any, tmp_path: Path) -> None:
    run("tenant", "add", "Lab Uno")
    (tmp_path / "keys").write_text(base64.b64encode(b"t" * 32).decode())
    (tmp_path / "new.toml").write_text("[storage]\nurl = 'sqlite:///new.db'\nkeys_file = 'keys'\n")

    with_key = run("transfer", "--to", "new.toml").stdout
    without = run("transfer", "--to", "sqlite:///copy.db").stdout

    named = "The secrets in the other store are encrypted under the key of this one"
    assert (named in with_key, named in without) == (False, True)
