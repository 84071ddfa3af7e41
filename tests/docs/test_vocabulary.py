"""The project is written in the terms of its field and in plain English."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The modules that have been rewritten in these terms; a package or a document is added after that.
PROGRAMS = (
    "fhirpub/http/*.py",
    "fhirpub/runtime/*.py",
    "fhirpub/web/**/*.py",
    "fhirpub/webhooks/**/*.py",
    "fhirpub/storage/**/*.py",
    "fhirpub/plugin_api/*.py",
    "fhirpub/interactions/*.py",
    "fhirpub/fhir/**/*.py",
    "fhirpub/auth/*.py",
    "fhirpub/app/*.py",
    "fhirpub/plugin_host/*.py",
    "fhirpub/*.py",
    "fhirpub/testing/**/*.py",
    "fhirpub/cli/**/*.py",
    "fhirpub/config/*.py",
    "plugins/**/*.py",
    "amqp/**/*.py",
    "client/**/*.py",
    "hl7v2/**/*.py",
    "scripts/*.py",
    "tests/**/*.py",
    "bench/*.py",
)
SOURCES = sorted(path for pattern in PROGRAMS for path in ROOT.glob(pattern))
DOCUMENTS = sorted(
    path
    for pattern in (
        "README.md",
        "SECURITY.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "docs/glossary.md",
        "docs/operators.md",
        "docs/plugins.md",
        "docs/adr/*.md",
        "docs/behaviour/*.md",
        "docs/reference/*.md",
        "bench/README.md",
        "conf/*.toml",
    )
    for path in ROOT.glob(pattern)
)
ABANDONED = {
    r"tells?|told|telling|untold": "return, send, log, raise, notify or report",
    r"whoever|whom|nobody|somebody|anybody|everybody": "name the client, operator or process",
    r"he|him|his": "they, or the role",
    r"anew|lately|meanwhile|under way|so long as": "again, recently, in the meantime, in progress",
    r"by itself|by themselves": "by default, or on its own",
    r"judged?|judges|judging": "validate or check",
    r"let(?:s|ting)? go|h[au]ngs? up": "release, disconnect",
    r"stand-ins?|the wish": "placeholder, dead letter, preference",
}
WORDS = re.compile(rf"(?i)(?<![-\w`$/.\"'])(?:{'|'.join(ABANDONED)})(?![-\w`])")


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings and comments of a module."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def abandoned_in(texts: Iterator[tuple[int, str]]) -> list[str]:
    return [f"{line}: {found[0]}" for line, text in texts for found in WORDS.finditer(text)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_and_comments_use_no_abandoned_word(path: Path) -> None:
    assert not abandoned_in(prose_of(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_use_no_abandoned_word(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    assert not abandoned_in(iter(enumerate(lines, start=1)))


def test_the_glossary_gives_a_source_for_each_term() -> None:
    rows = re.findall(r"^\| \*\*([^*]+)\*\* \| (.+) \| (.+) \|$", glossary(), re.MULTILINE)
    terms = [term.casefold() for term, _, _ in rows]

    assert len(rows) >= 40
    assert terms == sorted(terms)
    assert all(source.strip() for _, _, source in rows)


def glossary() -> str:
    return (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
