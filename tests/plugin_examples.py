"""Plugins installed for tests, such as the examples of the guide for plugin authors."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    write_metadata(home, module, {name: module}, group=group)
    (home / f"{module}.py").write_text(source, encoding="utf-8")
    return module


def write_metadata(
    home: Path,
    distribution: str,
    modules: Mapping[str, str],
    *,
    version: str = "1.0",
    group: str = "fhirpub.plugins",
) -> None:
    """Write what an installation leaves in a folder, by which plugins are found.

    ``modules`` are those of the plugins, by the names of the plugins.
    """
    name_in_path = distribution.replace("-", "_")  # what follows a hyphen is the version
    metadata = home / f"{name_in_path}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")
    points = [f"{name} = {module}\n" for name, module in modules.items()]
    (metadata / "entry_points.txt").write_text("".join([f"[{group}]\n", *points]))
