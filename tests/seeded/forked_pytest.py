"""Runs tests of a copy of the sources in a forked process, which has all plugins loaded.

To load them takes several times as long as most tests that are nearest to a bug.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.seeded.patches import ROOT

_OPTIONS = ("-rfE", "-q", "--no-header", "--tb=no", "--assert=plain", "-p", "no:cacheprovider")
_FOLDERS = ("", "plugins", "hl7v2", "amqp", "client")
"""From which is imported, as in pyproject.toml."""
_NOT_USED = ("schemathesis",)
"""As in pyproject.toml."""
_LIBRARIES = (
    *("aiohttp", "hypothesis.strategies", "jose.jwt", "jsonschema", "jsonschema_rs", "lxml.etree"),
    *("motor.motor_asyncio", "orjson", "pluggy", "prometheus_client", "tornado.httpclient"),
)


def load_plugins() -> None:
    """Load pytest's plugins and the libraries that nearly every test needs, nothing of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests themselves say which they allow
        for point in entry_points(group="pytest11"):
            if point.name not in _NOT_USED:
                point.load()
        for name in _LIBRARIES:
            importlib.import_module(name)


def run_pytest(copy: Path, arguments: Sequence[str], *, output: Path) -> int:
    """Run tests of a copy, in this process from now on; return their exit status."""
    os.setsid()  # what they start ends with them
    os.chdir(copy)
    log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    folders = [str(copy / name) for name in _FOLDERS]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)  # noqa: TID251 - for its own processes
    ours = [ROOT / name for name in _FOLDERS]
    others = [path for path in sys.path if path and Path(path) not in ours]
    sys.path[:] = [*folders, *others]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "fhirpub")]:
        del sys.modules[name]
    return int(pytest.main([*_OPTIONS, *arguments]))
