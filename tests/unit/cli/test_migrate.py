"""``fhirpub migrate`` as an operator meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_a_store_is_copied_into_another_and_can_be_used_there(run: Any, tmp_path: Path) -> None:
    tenant = json.loads(run("tenant", "add", "Lab Uno", "--json").stdout)["id"]

    done = run("migrate", "--to", "sqlite:///other/copy.db", "--json")
    listed = run("tenant", "list", "--json", FHIRPUB_STORAGE__URL="sqlite:///other/copy.db")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["versions"] == 0
    assert [each["id"] for each in json.loads(listed.stdout)] == [tenant]


def test_the_other_store_may_be_named_by_a_file_of_settings(run: Any, tmp_path: Path) -> None:
    (tmp_path / "new.toml").write_text('[storage]\nurl = "sqlite:///new.db"\n')
    run("tenant", "add", "Lab Uno")

    done = run(
        "migrate", "--to", "new.toml", FHIRPUB_STORAGE__URL="sqlite:///fhirpub-data/fhirpub.db"
    )

    assert done.returncode == 0, done.stderr
    assert "0 versions are in the other store" in done.stdout
    assert (tmp_path / "new.db").exists()


def test_a_store_is_not_copied_into_itself(run: Any) -> None:
    done = run("migrate", "--to", "sqlite:///fhirpub-data/fhirpub.db")

    assert done.returncode == 1
    assert "the store that the configuration names already" in done.stderr
    assert "Traceback" not in done.stderr
