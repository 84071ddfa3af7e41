"""Hooks of the documentation site: pages outside docs/, and links between all of them.

The documents are written for a reader of the repository, whose links lead from file to file.
Here the same files become pages, and each link leads to the page of its file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

# From files of the repository to pages of the site. Files below docs/ keep their path there.
# A README becomes a page with a name: as index.md or README.md it would become the page of its
# whole section in the navigation.
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "bench/README.md": "bench/benchmarks.md",
    "bench/RESULTS.md": "bench/RESULTS.md",
    "bench/RESULTS-mongodb.md": "bench/RESULTS-mongodb.md",
    "bench/RESULTS-neighbours.md": "bench/RESULTS-neighbours.md",
    "conf/fhirpub.toml": "conf/fhirpub.md",
    "conf/production.toml": "conf/production.md",
    "fhirpub/http/README.md": "fhirpub/http.md",
}
SOURCES = {page: source for source, page in PAGES.items()}

_LINK = re.compile(r"(?P<bang>!?)\[(?P<text>[^\]]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_NUMBERED = re.compile(r"[0-9]+\. ")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace each folder in the navigation by its pages."""
    config.nav = [_expanded(entry) for entry in config.nav or []]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source.endswith(".toml"):
            text = f"# `{source}`\n\n```toml\n{text}```\n"
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links between files of the repository to their pages.

    A link to a file that is no page, such as source code, becomes plain text.
    """
    del config
    here = page.file.src_uri
    source = SOURCES.get(here, f"docs/{here}")

    def redirect(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["path"]))
        uri = PAGES.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(uri) is not None:
            relative = posixpath.relpath(uri, posixpath.dirname(here) or ".")
            return f"{link['bang']}[{link['text']}]({relative}{link['anchor'] or ''})"
        if (ROOT / target).exists():
            return link["text"]
        return link[0]  # reported by the strict build

    return _LINK.sub(redirect, _indented(markdown))


def _indented(markdown: str) -> str:
    """Return Markdown whose numbered items Python-Markdown reads as GitHub does.

    It needs four blanks in front of a paragraph of an item, where GitHub needs three, and an
    empty line between such a paragraph and the next item.
    """
    lines: list[str] = []
    in_block = in_item = has_paragraphs = False
    for line in markdown.split("\n"):
        in_block ^= line.startswith("```")
        if in_item and line.startswith("   "):
            has_paragraphs |= not lines[-1]
            lines.append(f" {line}")
            continue
        if line:
            in_item = not in_block and _NUMBERED.match(line) is not None
            lines += [""] * (in_item and has_paragraphs)
            has_paragraphs = False
        lines.append(line)
    return "\n".join(lines)


def _expanded(entry: Any) -> Any:
    """Return an entry of the navigation with its folders expanded."""
    if isinstance(entry, dict):
        return {title: _expanded(content) for title, content in entry.items()}
    if isinstance(entry, list):
        return [_expanded(child) for child in entry]
    if not entry.endswith("/"):
        return entry
    folder = ROOT / "docs" / entry
    first = ("index.md", "README.md")
    names = sorted(path.name for path in folder.glob("*.md"))
    return [entry + name for name in sorted(names, key=lambda name: (name not in first, name))]
