"""The examples of the guide for plugin authors, installed as plugins."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[1] / "docs" / "plugins.md"


def example(title: str) -> str:
    """Return the example of the guide whose docstring begins with a title."""
    pattern = rf'^```py\n("""{re.escape(title)}.*?)^```$'
    (found,) = re.findall(pattern, GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return str(found)


def install(home: Path, name: str, source: str, *, group: str = "fhirpub.plugins.v2") -> str:
    """Install a plugin into a folder of the path for modules; return its module."""
    module = f"example_{name}"
    metadata = home / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (home / f"{module}.py").write_text(source, encoding="utf-8")
    (metadata / "METADATA").write_text(f"Name: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")
    return module
