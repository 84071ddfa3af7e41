"""An interface for administration with prepared answers, which notes what commands ask of it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import click
from click.testing import CliRunner, Result

from fhirpub.administration.operation import Operation
from fhirpub.administration.table import OPERATIONS
from fhirpub.cli.commands import Reporting
from tests.unit.cli.prepared import Reply

KEY = "bootstrap-key"
BASE = "/admin/v1"


@dataclass(frozen=True)
class Asked:
    """One request: the operation that it names, with its arguments."""

    command: str
    arguments: Mapping[str, Any]
    headers: Mapping[str, str] = field(repr=False)
    path: str = ""
    body: bytes = b""


class Bureau:
    """Answers operations by the words of their commands."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[Asked] = []
        self.tokens: list[Asked] = []
        """Requests for a token."""
        self.token: Reply = Reply(200, {"access_token": "a.b.c"})
        self._answers: defaultdict[str, list[Any]] = defaultdict(list)

    def answer(self, operation: Operation, *answers: Any) -> None:
        """Prepare answers to an operation, in turn; the last one is repeated."""
        self._answers[operation.command] = list(answers)

    def run(self, group: click.Command, *words: str, stdin: str = "", **variables: str) -> Result:
        """Run a command of a group on this interface."""
        env = {"FHIRPUB_ADMIN_KEY": KEY, "FHIRPUB_ADMIN_URL": self.url, **variables}
        return CliRunner().invoke(
            Reporting(commands=[group]), [group.name or "", *words], input=stdin, env=env
        )

    def json(self, group: click.Command, *words: str, **more: str) -> Any:
        """Run a command with ``--json`` and return what it prints."""
        result = self.run(group, *words, "--json", **more)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def only(self) -> tuple[str, Mapping[str, Any]]:
        """Return the only operation that was asked for, with its arguments."""
        (asked,) = self.asked
        return asked.command, asked.arguments

    def take(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Note a request and return its answer."""
        address = urlsplit(path)
        below = address.path.removeprefix(BASE)
        if below == "/token":
            fields = {name: texts[-1] for name, texts in parse_qs(body.decode()).items()}
            self.tokens.append(Asked("token", fields, headers, path, body))
            return self.token
        operation, arguments = _find(method, below)
        known = {one.name: one for one in operation.parameters}
        texts = parse_qs(address.query, keep_blank_values=True)
        arguments |= {name: known[name].from_texts(given) for name, given in texts.items()}
        arguments |= json.loads(body) if body else {}
        self.asked.append(Asked(operation.command, arguments, headers, path, body))
        answers = self._answers[operation.command] or [{}]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer if isinstance(answer, Reply) else Reply(operation.status, answer)


def run_without_store(folder: Path, group: click.Command, *words: str) -> Path:
    """Run a command on a store file that is missing, which it refuses; return that file."""
    store, settings = folder / "none.db", folder / "none.toml"
    settings.write_text(f'[storage]\nurl = "sqlite:///{store}"\n')
    own = [group.name or "", *words, "--config", str(settings)]
    result = CliRunner().invoke(Reporting(commands=[group]), own, env={"FHIRPUB_ADMIN_URL": ""})
    assert result.exit_code == 1, result.output
    return store


def _find(method: str, path: str) -> tuple[Operation, dict[str, Any]]:
    for operation in sorted(OPERATIONS, key=lambda one: len(one.blanks)):
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(operation.path))
        match = re.fullmatch(pattern, path)
        if match and operation.method == method:
            return operation, {name: unquote(text) for name, text in match.groupdict().items()}
    raise AssertionError(f"there is no operation {method} {path}")
