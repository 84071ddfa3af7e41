"""Writes the tables of docs/errors.md from those of the code: run it after a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from fhirpub.problems import (
    BatchProblem,
    ContentProblem,
    OperationProblem,
    PatientProblem,
    Problem,
    RequestProblem,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "errors.md"
_SECTIONS = (
    ("The request", RequestProblem),
    ("The body", ContentProblem),
    ("Patients", PatientProblem),
    ("Updates, searches and webhooks", OperationProblem),
    ("Batches", BatchProblem),
)


def page() -> str:
    """Return the whole page, with its introduction as it is."""
    introduction, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## ")
    parts = [introduction]
    for title, problems in _SECTIONS:
        parts.append(f"\n## {title}\n\n" + "\n".join(_table(problems)) + "\n")
    return "".join(parts)


def _table(problems: Iterable[Problem]) -> Iterator[str]:
    yield "| code | issue type | meaning | what to do |"
    yield "|---|---|---|---|"
    for problem in problems:
        types = ", ".join(f"`{name}`" for name in problem.types)
        named = f'<a id="{problem}"></a>`{problem}`'
        cells = (named, types, *(text.replace("|", "\\|") for text in _texts(problem)))
        yield f"| {' | '.join(cells)} |"


def _texts(problem: Problem) -> tuple[str, str]:
    return problem.meaning, problem.remedy


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
