"""The exit status of several messages, and what is printed of each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fhirpub.testing.receiver import Receiver, Reply
from fhirpub_hl7v2.__main__ import main
from fhirpub_hl7v2.delivery import Delivery, Result
from fhirpub_hl7v2.publishing import _print, _publish_all, map_all
from tests.canned import conflicting, issue, stored
from tests.hl7v2.answering import CREATED, granting, requests_of, service_at
from tests.hl7v2.messages import SETTINGS, message, obr, obx, pid

WRONG = message(pid())
REFUSED = Reply(status=403)
CONFLICT = Reply(status=409, body=conflicting().body)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def status_of(receiver: Receiver, raw: bytes, *replies: Reply, as_json: bool = False) -> int:
    receiver.answer_by(granting(*replies))
    service = service_at(receiver.url.removesuffix("/webhook"))
    return asyncio.run(_publish_all(service, [*map_all(raw, SETTINGS)], as_json=as_json))


@pytest.mark.parametrize(
    ("raw", "replies", "status"),
    [
        (message(), [CREATED], 0),
        (message() + message(), [REFUSED, CREATED], 1),
        (message() + message(), [CREATED, REFUSED], 1),
        (WRONG + message(), [CREATED], 1),
        (message() + WRONG, [CREATED], 1),
    ],
)
def test_of_several_reports_the_highest_status_counts(
    receiver: Receiver, raw: bytes, replies: list[Reply], status: int
) -> None:
    assert status_of(receiver, raw, *replies) == status


def test_a_report_of_a_later_state_has_a_status_of_its_own(receiver: Receiver) -> None:
    resource = stored(status="entered-in-error")
    page = Reply(status=200, body=json.dumps({"entry": [{"resource": resource}]}).encode())

    assert status_of(receiver, message(), CONFLICT, page) == 3
    assert status_of(receiver, message() + message(), REFUSED, CONFLICT, page) == 3


def test_what_cannot_be_published_stops_no_other(receiver: Receiver) -> None:
    status_of(receiver, WRONG + message() + message(), REFUSED, CREATED)

    assert len(requests_of(receiver.received)) == 2


def test_without_a_token_nothing_is_published(
    receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.answer(Reply(status=401, body=b'{"error":"invalid_client"}'))
    service = service_at(receiver.url.removesuffix("/webhook"))

    status = asyncio.run(
        _publish_all(service, [*map_all(message() + message(), SETTINGS)], as_json=False)
    )

    assert (status, len(receiver.received)) == (1, 1)
    assert "Error: " in capsys.readouterr().err


def test_all_problems_of_a_message_are_printed_where_others_are_published(
    receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = message(pid(), obr({4: "", 25: "?"}), obx())

    status_of(receiver, message() + wrong, CREATED)

    lines = [line for line in capsys.readouterr().err.splitlines() if "message 2" in line]
    assert [line.partition(": OBR[1]")[0] for line in lines] == ["Error: message 2"] * 2


def test_messages_and_reports_are_counted_from_one(
    receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    two = message(pid(), obr(), obx(), obr({3: "2^LIS"}), obx())

    status_of(receiver, message() + two, CREATED)

    starts = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert starts == ["message 1, report 1", "message 2, report 1", "message 2, report 2"]


@pytest.mark.parametrize("raw", [WRONG + message(), message() + WRONG])
def test_a_dry_run_fails_if_any_message_cannot_be_mapped(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "m.hl7").write_bytes(raw)
    (tmp_path / "mapping.toml").write_text(
        '[authorities]\n"*" = "https://a.example/"\n[message]\ntime_zone = "Europe/Madrid"\n'
    )

    words = [str(tmp_path / "m.hl7"), "--mapping", str(tmp_path / "mapping.toml"), "--dry-run"]
    done = CliRunner().invoke(main, ["publish", *words])

    assert done.exit_code == 1
    assert done.stdout.count('"Parameters"') == 1
    assert done.stderr.count("no OBR follows") == 1


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    ("delivery", "starts"),
    [
        (Delivery(result="revised", kept=("patient",)), "Warning: message 2: "),
        (Delivery(result="superseded"), "Error: message 2, report 1: "),
        (Delivery(result="refused"), "Error: message 2, report 1: "),
    ],
)
def test_what_a_person_has_to_know_is_on_standard_error_in_either_form(
    capsys: pytest.CaptureFixture[str], delivery: Any, starts: str, *, as_json: bool
) -> None:
    _print(delivery, 2, 1, as_json=as_json)

    assert capsys.readouterr().err.startswith(starts)


def test_remarks_on_a_report_are_printed_below_it_until_it_is_published_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    remark = issue("code-unknown", "code", severity="warning")
    results: tuple[Result, Result] = ("created", "replayed")
    for result in results:
        _print(Delivery(result=result, id="d-1", issues=[remark]), 1, 1, as_json=False)

    heading, said, *others = capsys.readouterr().out.splitlines()
    assert heading.startswith("message 1, report 1: published as DiagnosticReport d-1")
    assert said.split() == ["warning", "code:", "It", "is", "wrong.", "(code-unknown)"]
    assert [line.partition(":")[0] for line in others] == ["message 1, report 1"]
