"""Which words of ``fhirpub publish`` belong together, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from fhirpub.cli.publish.command import _Words
from fhirpub.cli.publish.service import ServiceOptions
from fhirpub.config.settings import Config

OUT, FOLDER = Path("out.ndjson"), Path("folder")


@pytest.fixture(autouse=True)
def files_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.json", "b.json", "a.ndjson"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


def words(*files: str, **given: Any) -> _Words:
    usual: dict[str, Any] = {
        "documents": (),
        "service_options": ServiceOptions(url="https://a.example", audience="a", cacert=None),
        "jobs": None,
        "report": None,
        "resume": False,
        "all_lines": False,
        "documents_from": None,
        "watched": None,
        "settle": 2.0,
        "config": Config(),
        "as_json": False,
    }
    return _Words(files=files, **usual | given)


@pytest.mark.parametrize(
    ("files", "given", "is_load"),
    [
        (["a.json"], {}, False),
        (["a.json", "b.json"], {}, False),
        (["-"], {}, False),
        (["a.json"], {"jobs": 1}, True),
        (["a.json"], {"report": OUT}, True),
        (["a.json"], {"all_lines": True}, True),
        (["a.json", "*.json"], {}, True),
        (["a.ndjson"], {}, True),
        (["a.json"], {"documents_from": FOLDER}, False),
    ],
)
def test_many_reports_are_loaded_in_parallel(
    files: list[str], given: dict[str, Any], *, is_load: bool
) -> None:
    assert words(*files, **given).is_load == is_load


@pytest.mark.parametrize(
    ("files", "given"),
    [
        (["a.json"], {}),
        (["a.json"], {"documents": (Path("a.pdf"),)}),
        (["a.json", "b.json"], {}),
        (["a.ndjson"], {"report": OUT, "resume": True}),
        (["-"], {}),
        (["-"], {"all_lines": True}),
        (["-", "a.ndjson"], {"all_lines": True, "jobs": 2}),
        ([], {"watched": FOLDER}),
        ([], {"watched": FOLDER, "jobs": 2, "documents_from": FOLDER}),
    ],
)
def test_words_that_belong_together_are_taken(files: list[str], given: dict[str, Any]) -> None:
    words(*files, **given).check()


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        ([], {}, "Missing argument 'FILE.json...'."),
        ([], {"report": OUT}, "Missing argument 'FILE.json...'."),
        (["a"], {"watched": FOLDER}, "--watch takes no files"),
        ([], {"watched": FOLDER, "documents": (OUT,)}, "--watch takes no files"),
        ([], {"watched": FOLDER, "report": OUT}, "--watch takes no files"),
        ([], {"watched": FOLDER, "all_lines": True}, "--watch takes no files"),
        (["a", "b"], {"documents": (OUT,)}, "--document belongs to one FILE.json"),
        (["a"], {"documents": (OUT,), "jobs": 2}, "--document belongs to one FILE.json"),
        (["a.ndjson"], {"documents": (OUT,)}, "--document belongs to one FILE.json"),
        (["a.json"], {"resume": True}, "--resume needs the --report"),
        (["-"], {"jobs": 2}, "with many reports, - needs --ndjson"),
        (["a.ndjson", "-"], {}, "with many reports, - needs --ndjson"),
    ],
)
def test_words_that_do_not_belong_together_are_refused(
    files: list[str], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(click.UsageError) as refused:
        words(*files, **given).check()

    assert str(refused.value).startswith(message)


def test_the_folder_of_documents_is_one_of_the_service() -> None:
    service = words("a.json", documents_from=FOLDER).service

    assert (service.documents_from, service.url, service.audience) == (
        FOLDER,
        "https://a.example",
        "a",
    )
    assert words("a.json").service.documents_from is None
