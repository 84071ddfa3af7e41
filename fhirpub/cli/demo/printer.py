"""Prints HTTP requests on a terminal: a sentence, the curl command, the response."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

import click
from tornado.httpclient import HTTPResponse

from fhirpub.cli.http_client import FHIR_JSON, Call

WIDTH = 100
_INDENT = "    "
_WIDEST = WIDTH - len(_INDENT)
_TELLING_HEADERS = ("Location", "ETag", "Last-Modified")
_TELLING_HEADERS_OF_WEBHOOKS = (
    "X-Webhook-Event",
    "X-Webhook-Sequence",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
)
_KEPT_OF_LONG_TEXT = 32
_LONG_TEXT = 160
_KEPT_OF_LONG_RUN = 2
_LONG_RUN = 3
_FIRST_REFUSAL = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request, as a curl command and as the equivalent call.

    ``file`` contains the body. ``if_match`` is the value that the call sends; ``if_match_shell``
    is its form in the command. ``then`` are further shell lines that store parts of the response.
    ``shown`` are the elements to display of each resource in a list or in Parameters; empty: all.
    """

    sentence: str
    path: str
    expected: int
    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    content_type: str = FHIR_JSON
    if_match: str = ""
    if_match_shell: str = ""
    prefer: str = ""
    then: Sequence[str] = ()
    shown: Sequence[str] = ()

    def call(self, base: str, token: str, body: bytes | None) -> Call:
        """Return the request to send."""
        headers = {"Authorization": f"Bearer {token}"}
        if self.file:
            headers["Content-Type"] = self.content_type
        if self.if_match:
            headers["If-Match"] = self.if_match
        if self.prefer:
            headers["Prefer"] = self.prefer
        query = f"?{urlencode(self.query)}" if self.query else ""
        url = f"{base}{self.path}{query}"
        if self.method == "POST" and body is None:
            body = b""
        return Call(method=self.method, url=url, headers=headers, body=body)

    def curl(self) -> str:
        """Return the equivalent command, for a shell with BASE and TOKEN set."""
        implied = self.method == "GET" or (self.method == "POST" and self.file)
        verb = "" if implied else f" -X {self.method}"
        get = " -G" if self.query else ""
        escaped = self.path.replace("$", "\\$")
        lines = [f'curl -sS -i{verb}{get} "$BASE{escaped}"', '-H "Authorization: Bearer $TOKEN"']
        if self.file:
            lines.append(f'-H "Content-Type: {self.content_type}" --data-binary @{self.file}')
        if self.if_match:
            lines.append(f"-H {self.if_match_shell or shlex.quote(f'If-Match: {self.if_match}')}")
        if self.prefer:
            lines.append(f'-H "Prefer: {self.prefer}"')
        for name, value in self.query.items():
            lines.append(f"--data-urlencode {shlex.quote(f'{name}={value}')}")
        return "\n".join([" \\\n  ".join(lines), *self.then])


class Transcript:
    """Prints numbered steps, at most ``WIDTH`` columns wide."""

    def __init__(self) -> None:
        self._steps = 0
        self._last_body = b""

    def sentence(self, text: str) -> None:
        """Start a step."""
        self._steps += 1
        click.echo()
        click.secho(f"{self._steps}. {text}", bold=True)

    def command(self, text: str) -> None:
        """Print the command to type."""
        click.echo()
        for line in text.splitlines():
            click.secho(f"{_INDENT}{line}", fg="cyan")
        click.echo()

    def answer(self, answer: HTTPResponse, *, shown: Sequence[str] = ()) -> None:
        """Print the status, the relevant headers, and the body unless it repeats the last one."""
        colour = "red" if answer.code >= _FIRST_REFUSAL else "green"
        click.secho(f"{_INDENT}{answer.code} {answer.reason}", fg=colour, bold=True)
        for name in _TELLING_HEADERS:
            if name in answer.headers:
                for line in _fold(name, answer.headers[name]):
                    click.echo(f"{_INDENT}{line}")
        known = bool(answer.body) and answer.body == self._last_body
        lines = (
            ["(the body is byte for byte the same as above)"]
            if known
            else pretty(answer.body, shown)
        )
        self._last_body = answer.body
        for line in lines:
            click.echo(f"{_INDENT}{line}")

    def webhook(self, headers: Mapping[str, str], body: bytes) -> None:
        """Print the relevant headers and the body of a received webhook."""
        click.echo()
        for name in _TELLING_HEADERS_OF_WEBHOOKS:
            click.echo(f"{_INDENT}{name}: {headers[name]}")
        for line in pretty(body):
            click.echo(f"{_INDENT}{line}")

    def note(self, text: str) -> None:
        """Explain the response."""
        click.secho(f"{_INDENT}=> {text}", bold=True)


def pretty(body: bytes | None, shown: Sequence[str] = ()) -> list[str]:
    """Return a body as lines for display: indented, with documents and tokens shortened.

    With ``shown``, resources in a Bundle or in Parameters are reduced to these elements, their id
    and version.
    """
    if not body:
        return []
    try:
        value = json.loads(body)
    except ValueError:
        return [body[:_LONG_TEXT].decode(errors="replace")]
    for entry in [*value.get("entry", []), *value.get("parameter", [])] if shown else []:
        if "resource" in entry:
            entry["resource"] = _reduce(entry["resource"], {"resourceType", "id", "meta", *shown})
    return list(_lines(_shorten(value), indent="", name="", end=""))


def _reduce(resource: dict[str, Any], shown: Collection[str]) -> dict[str, Any]:
    kept = {key: item for key, item in resource.items() if key in shown}
    if "meta" in kept:
        kept["meta"] = {key: item for key, item in kept["meta"].items() if key != "tag"}
    rest = len(resource) - len(kept)
    return {**kept, "…": f"{rest} more elements"} if rest else kept


def _lines(value: Any, *, indent: str, name: str, end: str) -> Iterator[str]:
    """Yield JSON with each value on one line if it fits, except for the outermost one."""
    line = f"{indent}{name}{json.dumps(value, ensure_ascii=False)}{end}"
    fits = len(line) <= _WIDEST and bool(indent)
    if fits or not isinstance(value, dict | list) or not value:
        yield _cut(line)
        return
    named = isinstance(value, dict)
    yield f"{indent}{name}{'{' if named else '['}"
    members = list(value.items()) if isinstance(value, dict) else [("", item) for item in value]
    for position, (key, member) in enumerate(members, start=1):
        yield from _lines(
            member,
            indent=f"{indent}  ",
            name=f"{json.dumps(key, ensure_ascii=False)}: " if named else "",
            end="," if position < len(members) else "",
        )
    yield f"{indent}{'}' if named else ']'}{end}"


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shorten(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(_shorten_list(value))
    if isinstance(value, str) and len(value) > _LONG_TEXT:
        return f"{value[:_KEPT_OF_LONG_TEXT]}… ({len(value)} characters)"
    return value


def _shorten_list(items: list[Any]) -> Iterator[Any]:
    """Yield items, of many in a row that look alike only the first."""
    for _form, alike in groupby(items, _form_of):
        run = list(alike)
        kept = run[:_KEPT_OF_LONG_RUN] if len(run) > _LONG_RUN and not _is_error(run[0]) else run
        yield from map(_shorten, kept)
        if len(kept) < len(run):
            yield f"… {len(run) - len(kept)} more"


def _form_of(item: Any) -> object:
    """Return what items that look alike have in common."""
    if isinstance(item, dict):
        return [item.get("name"), item.get("severity"), *item]
    return type(item)


def _is_error(item: Any) -> bool:
    return isinstance(item, dict) and item.get("severity") == "error"


def _cut(line: str) -> str:
    if len(line) <= _WIDEST:
        return line
    end = '…",' if line.endswith(",") else '…"'
    return line[: _WIDEST - len(end)] + end


def _fold(name: str, value: str) -> list[str]:
    line = f"{name}: {value}"
    if len(_INDENT) + len(line) <= WIDTH:
        return [line]
    return [f"{name}:", value]
