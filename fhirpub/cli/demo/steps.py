"""The steps of the demo over HTTP: the life of a report, and resources of other types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from fhirpub.cli.demo import blood_count, compositions
from fhirpub.cli.demo.printer import Step, Transcript
from fhirpub.cli.demo.receiver import DemoReceiver
from fhirpub.cli.http_client import Call, json_of, send
from fhirpub.runtime.clock import now_ms
from fhirpub.webhooks import NotVerified, verify

_REPORTS = "/fhir/r4/DiagnosticReport"
_REGISTER = f"{_REPORTS}/$register"
_ENDPOINTS = "/webhooks/v1/endpoints"
_CREATED = "diagnostic_report.created"
_UPDATED = "diagnostic_report.updated"
_FIRST = "Publish a blood count in one call: its 12 results, their specimen and its PDF."
_MAX_WAIT = 15.0
_ETAG_IN_SHELL = '"If-Match: $ETAG"'
_TOKEN_COMMAND = r"""TOKEN=$(curl -sS "$BASE/oauth/token" -d grant_type=client_credentials \
  -d "client_id=$CLIENT_ID" -d "client_secret=$CLIENT_SECRET" -d "audience=$AUDIENCE" |
  sed -E 's/.*"access_token" *: *"([^"]+)".*/\1/')"""  # noqa: S105 - gets a token


@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """Runs the steps. ``folder`` contains the bodies that the commands send."""

    client: AsyncHTTPClient
    base: str
    folder: Path
    credentials: Mapping[str, str]
    transcript: Transcript
    mailbox: DemoReceiver

    async def walk(self) -> None:
        """Run all steps in order; stop at the first unexpected response."""
        token = await self._token()
        secret = await self._subscribe(token)
        first = await self._take(_register(_FIRST), token)
        self.transcript.sentence("The service has notified the receiver: this webhook arrived.")
        await self._show_webhook(_CREATED, secret)
        await self._resubmit(first, token)
        path = f"{_REPORTS}/{_read_id(first)}"
        read = await self._take(_read(path), token)
        etag = read.headers["ETag"]
        revised = await self._take(_revise(path, etag), token)
        self.transcript.sentence("The webhook names what has changed, without its value.")
        await self._show_webhook(_UPDATED, secret)
        await self._take(_stale_update(path, etag), token)
        await self._take(_update(path, revised.headers["ETag"]), token)
        identifier = json_of(read)["subject"]["identifier"]
        patient = json_of(await self._take(_find_patient(identifier), token))
        patient_id = patient["entry"][0]["resource"]["id"]
        found = json_of(await self._take(_find_result(patient_id), token))
        await self._take(_find_report(found["entry"][0]["resource"]["id"]), token)
        await self._take(_history(path), token)
        await self._take(_show_refusal(), token)
        for step, event in compositions.steps():
            await self._take(step, token)
            await self._show_webhook(event, secret)

    async def _token(self) -> str:
        self.transcript.sentence(
            "Exchange the credentials for an access token, valid for 24 hours."
        )
        self.transcript.command(_TOKEN_COMMAND)
        form = {"grant_type": "client_credentials", **self.credentials}
        answer = await send(self.client, Call.form(f"{self.base}/oauth/token", form))
        self.transcript.answer(answer)
        _expect(answer, 200)
        return str(json_of(answer)["access_token"])

    async def _subscribe(self, token: str) -> str:
        """Add the demo's receiver as an endpoint; return the secret that signs."""
        _write(self.folder / "endpoint.json", {"url": self.mailbox.url, "event_types": ["*"]})
        answer = json_of(await self._take(_add_endpoint(), token))
        await self._take(_verify(answer["id"]), token)
        self.transcript.note("the receiver of this demo has repeated the challenge")
        return str(answer["signing_secret"])

    async def _show_webhook(self, event: str, secret: str) -> None:
        try:
            letter = await self.mailbox.wait_for(event, seconds=_MAX_WAIT)
            verify(letter.headers, letter.body, secret, now=now_ms() / 1000)
        except (TimeoutError, NotVerified):
            raise click.ClickException(
                "the demo expected a webhook with a valid signature here"
            ) from None
        self.transcript.webhook(letter.headers, letter.body)
        self.transcript.note(
            "the webhook arrived; its signature verifies with the endpoint's secret"
        )

    async def _resubmit(self, first: HTTPResponse, token: str) -> None:
        again = await self._take(
            _register("Publish it again, as after a lost connection. No duplicate is created."),
            token,
        )
        if again.headers["Location"] != first.headers["Location"]:
            raise click.ClickException("the repeated registration got another id")
        self.transcript.note(f"the same id as before: {_read_id(again)}")

    async def _take(self, step: Step, token: str) -> HTTPResponse:
        self.transcript.sentence(step.sentence)
        self.transcript.command(step.curl())
        body = (self.folder / step.file).read_bytes() if step.file else None
        answer = await send(self.client, step.call(self.base, token, body))
        self.transcript.answer(answer, shown=step.shown)
        _expect(answer, step.expected)
        return answer


def write_files(folder: Path) -> None:
    """Write the documents, and the bodies that the commands send."""
    submission = blood_count.first_submission(folder)
    _write(folder / "register.json", submission.body)
    _write(folder / "revise.json", blood_count.revised_submission(folder).body)
    _write(folder / "wrong.json", _body_with_mistakes(folder))
    for name, body in compositions.bodies(submission.body).items():
        _write(folder / name, body)
    _write(
        folder / "update.json",
        {
            "resourceType": "DiagnosticReport",
            "status": "amended",
            "conclusion": "Leukocytes and neutrophils slightly raised. Repeat in a week.",
        },
    )


def _add_endpoint() -> Step:
    return Step(
        sentence="Subscribe to all events: add an endpoint. Its secret is shown only once.",
        method="POST",
        path=_ENDPOINTS,
        file="endpoint.json",
        content_type="application/json",
        expected=201,
    )


def _verify(endpoint_id: str) -> Step:
    return Step(
        sentence="Verify the endpoint: it must repeat a challenge before it gets any events.",
        method="POST",
        path=f"{_ENDPOINTS}/{endpoint_id}/verify",
        expected=200,
    )


def _register(sentence: str) -> Step:
    return Step(
        sentence=sentence,
        method="POST",
        path=_REGISTER,
        file="register.json",
        shown=("identifier", "status", "subject", "conclusion", "issue"),
        expected=201,
    )


def _read(path: str) -> Step:
    return Step(
        sentence="Read it back; its ETag is the version that the next update names.",
        path=path,
        expected=200,
        then=_keep_etag(path),
    )


def _keep_etag(path: str) -> tuple[str, ...]:
    """Return the shell lines that store the current ETag."""
    header = '-H "Authorization: Bearer $TOKEN"'
    return (
        f'ETAG=$(curl -sS -o /dev/null -D - \\\n  "$BASE{path}" \\',
        f"  {header} | tr -d '\\r' | awk 'tolower($1) == \"etag:\" {{print $2}}')",
    )


def _revise(path: str, etag: str) -> Step:
    return Step(
        sentence="Correct one result, unless something has changed since (If-Match).",
        method="POST",
        path=f"{path}/$revise",
        file="revise.json",
        if_match=etag,
        if_match_shell=_ETAG_IN_SHELL,
        then=_keep_etag(path),
        shown=("status", "conclusion"),
        expected=200,
    )


def _stale_update(path: str, etag: str) -> Step:
    return Step(
        sentence="Update with the old ETag: refused as it should be, so that no change is lost.",
        method="PATCH",
        path=path,
        file="update.json",
        if_match=etag,
        expected=412,
    )


def _update(path: str, etag: str) -> Step:
    return Step(
        sentence="Update the conclusion alone, with the new ETag.",
        method="PATCH",
        path=path,
        file="update.json",
        if_match=etag,
        if_match_shell=_ETAG_IN_SHELL,
        expected=204,
    )


def _find_patient(identifier: Mapping[str, str]) -> Step:
    return Step(
        sentence="Find it as a reader does: first the patient, by an identifier ...",
        path="/fhir/r4/Patient",
        query={"identifier": f"{identifier['system']}|{identifier['value']}"},
        shown=("name", "birthDate"),
        expected=200,
    )


def _find_result(patient: str) -> Step:
    return Step(
        sentence="... then the patient's newest platelets ...",
        path="/fhir/r4/Observation",
        query={"patient": patient, "code": blood_count.CORRECTED_CODE, "_sort": "-date"},
        shown=("status", "valueQuantity", "note"),
        expected=200,
    )


def _find_report(result_id: str) -> Step:
    return Step(
        sentence="... and to their report. Lists have a link in place of the document's data.",
        path=_REPORTS,
        query={"result": f"Observation/{result_id}"},
        shown=("identifier", "status", "conclusion", "presentedForm"),
        expected=200,
    )


def _history(path: str) -> Step:
    return Step(
        sentence="Read its history: every version is kept.",
        path=f"{path}/_history",
        shown=("status", "conclusion"),
        expected=200,
    )


def _show_refusal() -> Step:
    return Step(
        sentence="Publish one with mistakes: refused as it should be, with all of them listed.",
        method="POST",
        path=_REGISTER,
        file="wrong.json",
        expected=400,
    )


def _body_with_mistakes(folder: Path) -> dict[str, Any]:
    """Return a registration with several mistakes."""
    wrong = blood_count.first_submission(folder)
    report = wrong.entry["resource"]
    report["status"] = "amended"
    del report["category"]
    del report["code"]["text"]
    del report["presentedForm"][0]["hash"]
    next(blood_count.results_in(wrong.body))["specimen"] = {"reference": "Specimen/urine"}
    return wrong.body


def _read_id(answer: HTTPResponse) -> str:
    return answer.headers["Location"].partition("/_history/")[0].rpartition("/")[2]


def _expect(answer: HTTPResponse, status: int) -> None:
    if answer.code != status:
        raise click.ClickException(f"the demo expected {status} here, not {answer.code}")


def _write(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
