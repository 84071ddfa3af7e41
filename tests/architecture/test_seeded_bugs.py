"""Each seeded bug fits the sources as they are; scripts/seeded shows that tests catch it."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.seeded.patches import ROOT, SeededBug, Unusable, all_bugs

BUGS = all_bugs()
MIN_BUGS = 40
AREAS = frozenset(
    "administration amqp audit auth cli client console fhir hl7v2 interactions plugins".split()
    + "storage web webhooks".split()
)
FOLDERS = frozenset({"amqp", "client", "fhirpub", "hl7v2", "plugins"})


def test_there_are_many_bugs_in_every_area() -> None:
    assert len(BUGS) >= MIN_BUGS
    assert Counter(bug.name.partition("/")[0] for bug in BUGS).keys() == AREAS


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_applies_to_the_sources_and_leaves_a_module(bug: SeededBug, tmp_path: Path) -> None:
    for name in bug.files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    bug.apply(tmp_path)

    for name in bug.files:
        compile((tmp_path / name).read_text(), name, "exec")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_breaks_a_promise_of_ours_and_names_tests_that_exist(bug: SeededBug) -> None:
    tests = [argument for argument in bug.tests if argument.startswith("tests/")]

    assert bug.promise.endswith(".")
    assert {name.partition("/")[0] for name in bug.files} <= FOLDERS
    assert tests
    assert all((ROOT / name.partition("::")[0]).exists() for name in tests)


def test_a_patch_that_does_not_fit_or_does_not_say_what_it_is_is_refused(tmp_path: Path) -> None:
    diff = "--- a/one.py\n+++ b/one.py\n@@ -1,1 +1,1 @@\n-was = 1\n+was = 2\n"
    (tmp_path / "one.py").write_text("was = 3\n")
    patch = tmp_path / "bug.patch"
    patch.write_text(diff)
    with pytest.raises(Unusable, match="Promise"):
        SeededBug.read(patch)
    patch.write_text(f"Promise: One stays one.\nTests: tests/unit\n{diff}")

    with pytest.raises(Unusable, match="does not apply"):
        SeededBug.read(patch).apply(tmp_path)
