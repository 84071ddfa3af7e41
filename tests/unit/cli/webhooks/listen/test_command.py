"""``fhirpub webhooks listen`` with a real service and real receivers."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.retries import PAUSES
from fhirpub.cli.webhooks.listen.command import _Patience
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.webhooks import verify
from tests.bodies import register_body
from tests.listening import SECRET, environment_of, listening, service_words
from tests.waiting import wait_until

ENDPOINTS = "/webhooks/v1/endpoints"


def register(lab: Integrator, *numbers: int) -> None:
    for number in numbers:
        lab.register(register_body(f"R-{number}"))


def values(receiver: Receiver) -> list[str]:
    return [each.json["data"]["identifier"]["value"] for each in receiver.received]


def test_events_are_forwarded_in_order_and_signed_with_the_local_secret(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    with listening(lab, tmp_path, "--forward-to", receiver.url):
        register(lab, 1, 2, 3)
        sent = receiver.wait(3)

    assert values(receiver) == ["R-1", "R-2", "R-3"]
    for number, each in enumerate(sent, start=1):
        verify(each.headers, each.body, SECRET, now=now_ms() / 1000)
        assert each.headers["x-webhook-sequence"] == str(number)


def test_what_is_forwarded_is_the_body_that_an_endpoint_gets(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    with listening(lab, tmp_path, "--forward-to", receiver.url):
        register(lab, 1)
        (sent,) = receiver.wait(1)

    (endpoint,) = lab.get(ENDPOINTS).json["endpoints"]
    stored = lab.get(f"{ENDPOINTS}/{endpoint['id']}/deliveries/{sent.headers['webhook-id']}")
    assert b'"body":' + sent.body in stored.body


def test_without_a_receiver_events_are_printed(lab: Integrator, tmp_path: Path) -> None:
    with listening(lab, tmp_path) as run:
        register(lab, 1)
        assert wait_until(lambda: "diagnostic_report.created" in run.output)

    assert re.match(
        r"1  \S+Z  diagnostic_report.created  DiagnosticReport/[0-9a-f-]{36}\n", run.output
    )


def test_programs_get_one_line_of_json_for_each_event(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    with listening(lab, tmp_path, "--json", "--forward-to", receiver.url) as run:
        register(lab, 1, 2)
        assert wait_until(lambda: run.output.count("\n") == 2)

    first, _second = map(json.loads, run.output.splitlines())
    assert first.items() >= {"sequence": 1, "attempt": 1, "accepted": True, "status": 204}.items()
    assert first["body"] == receiver.received[0].json


def test_only_the_events_that_are_named_come(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    words = ("--events", "diagnostic_report.updated,*.erased", "--forward-to", receiver.url)
    with listening(lab, tmp_path, *words):
        path = lab.register(register_body("R-1")).headers["location"].partition("/_history")[0]
        lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})
        (sent,) = receiver.wait(1)

    assert sent.json["event_type"] == "diagnostic_report.updated"
    assert sent.json["sequence"] == 1


def test_the_next_run_continues_where_this_one_stopped(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    words = ("--forward-to", receiver.url)
    with listening(lab, tmp_path, *words) as run:
        register(lab, 1, 2)
        receiver.wait(2)
        assert run.end() == 0
        assert "Stopped after event 2." in run.notes
    register(lab, 3)
    with listening(lab, tmp_path, *words):
        receiver.wait(3)

    assert values(receiver) == ["R-1", "R-2", "R-3"]
    assert len(lab.get(ENDPOINTS).json["endpoints"]) == 1


def test_a_signal_amid_an_attempt_lets_it_end(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer(Reply(delay=1.0))
    with listening(lab, tmp_path, "--forward-to", receiver.url) as run:
        register(lab, 1)
        receiver.wait(1)

        assert run.end() == 0

    assert "Stopped after event 1." in run.notes
    assert "-> 204" in run.output


def test_of_two_queues_of_one_name_the_one_of_the_last_run_is_read(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    words = ("--name", "desk", "--forward-to", receiver.url)
    with listening(lab, tmp_path, *words) as run:
        register(lab, 1)
        receiver.wait(1)
        assert run.end() == 0
    lab.request("POST", ENDPOINTS, {"url": "pull:desk"})
    first, second = lab.get(ENDPOINTS).json["endpoints"]
    file = next((tmp_path / "state" / "fhirpub").glob("listen-desk-*.json"))
    file.write_text(json.dumps({"endpoint": second["id"], "sequence": 0}))
    register(lab, 2)

    with listening(lab, tmp_path, *words):
        sent = receiver.wait(2)

    assert [each.json["sequence"] for each in sent] == [1, 1]
    assert first["id"] != second["id"]


def test_a_queue_that_was_removed_is_added_again_with_a_note(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    words = ("--forward-to", receiver.url)
    with listening(lab, tmp_path, *words) as run:
        register(lab, 1)
        receiver.wait(1)
        assert run.end() == 0
    (endpoint,) = lab.get(ENDPOINTS).json["endpoints"]
    lab.request("DELETE", f"{ENDPOINTS}/{endpoint['id']}")

    with listening(lab, tmp_path, *words) as again:
        register(lab, 2)
        receiver.wait(2)

    assert "events since then may be missing" in again.notes


@pytest.mark.parametrize("place", ["2", "1h"])
def test_events_can_be_handled_again_from_a_place_on(
    place: str, lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    words = ("--forward-to", receiver.url)
    with listening(lab, tmp_path, *words):
        register(lab, 1, 2, 3)
        receiver.wait(3)
    receiver.received.clear()

    with listening(lab, tmp_path, *words, "--replay-from", place):
        again = receiver.wait(2 if place == "2" else 3)

    assert [each.json["sequence"] for each in again] == ([2, 3] if place == "2" else [1, 2, 3])


def test_an_event_that_the_receiver_refuses_is_sent_again_before_the_next(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer(Reply(status=500), Reply())
    with listening(lab, tmp_path, "--forward-to", receiver.url) as run:
        register(lab, 1, 2)
        sent = receiver.wait(3)

    assert [each.json["sequence"] for each in sent] == [1, 1, 2]
    assert [each.headers["x-webhook-attempt"] for each in sent] == ["1", "2", "1"]
    assert "the answer was 500, not 2xx" in run.output


def test_refused_events_can_be_left_out(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer(Reply(status=500))
    with listening(lab, tmp_path, "--forward-to", receiver.url, "--skip-refused"):
        register(lab, 1, 2)
        sent = receiver.wait(2)

    assert [each.json["sequence"] for each in sent] == [1, 2]


def test_an_event_that_the_receiver_wants_no_more_is_left_out(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer(Reply(status=422, headers={"webhook-delivery": "abort-message"}))
    with listening(lab, tmp_path, "--forward-to", receiver.url):
        register(lab, 1, 2)
        sent = receiver.wait(2)

    assert [each.json["sequence"] for each in sent] == [1, 2]


def test_events_wait_for_a_receiver_that_is_not_there_yet(lab: Integrator, tmp_path: Path) -> None:
    with Receiver() as gone:
        url = gone.url
    with listening(lab, tmp_path, "--forward-to", url) as run:
        register(lab, 1)
        run.wait_for_notes("Sending event 1 again in 1 s.")

    assert "no connection could be made" in run.output


def test_another_tenant_gets_nothing(
    service: RunningService, lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    stranger = service.integrator()
    with listening(lab, tmp_path, "--forward-to", receiver.url):
        register(stranger, 1)
        register(lab, 2)
        receiver.wait(1)

    assert values(receiver) == ["R-2"]
    assert stranger.get(ENDPOINTS).json == {"endpoints": []}


def test_two_runs_of_one_name_do_not_disturb_each_other(lab: Integrator, tmp_path: Path) -> None:
    with listening(lab, tmp_path):
        second = tmp_path / "second"
        second.mkdir()
        state = {"XDG_STATE_HOME": str(tmp_path / "state")}
        with listening(lab, second, is_ready=False, **state) as run:
            assert run.process.wait(timeout=30) == 1
            assert "give this one another --name" in run.notes


# How long a service is waited for


def test_a_service_that_has_never_answered_is_given_up() -> None:
    assert list(islice(_Patience().pauses(), 100)) == list(PAUSES)


def test_a_service_that_has_answered_once_is_waited_for_without_an_end() -> None:
    patience = _Patience()
    patience.extend()

    assert list(islice(patience.pauses(), 100))[-90:] == [30.0] * 90


# What is wrong is explained


def ran(run_program: Any, lab: Integrator, folder: Path, *words: str, **variables: str) -> Any:
    known = environment_of(lab, folder, **variables)
    return run_program("webhooks", "listen", *words, *service_words(lab), **known)


def test_a_secret_of_its_own_is_printed_at_the_start(
    lab: Integrator, receiver: Receiver, tmp_path: Path
) -> None:
    words = ("--forward-to", receiver.url)
    with listening(lab, tmp_path, *words, FHIRPUB_SIGNING_SECRET="") as run:
        register(lab, 1)
        (sent,) = receiver.wait(1)

    (secret,) = re.findall(r"whsec_\S+", run.notes)
    verify(sent.headers, sent.body, secret, now=now_ms() / 1000)


@pytest.mark.parametrize(
    ("words", "variables", "reason"),
    [
        (("--events", "diagnostic_report.create"), {}, "did you mean diagnostic_report.created?"),
        (("--name", "My laptop"), {}, "lower-case letters"),
        (("--replay-from", "yesterday"), {}, "must be a time such as"),
        (("--forward-to", "localhost:9000"), {}, "must be an absolute https URL"),
        (
            ("--forward-to", "http://127.0.0.1:9"),
            {"FHIRPUB_SIGNING_SECRET": "whsec_AAAA"},
            "FHIRPUB_SIGNING_SECRET: ",
        ),
        ((), {"FHIRPUB_CLIENT_SECRET": "wrong"}, "no token: 401 invalid_client"),
    ],
)
def test_what_is_wrong_is_explained(
    words: tuple[str, ...],
    variables: dict[str, str],
    reason: str,
    run: Any,
    lab: Integrator,
    tmp_path: Path,
) -> None:
    refused = ran(run, lab, tmp_path, *words, **variables)

    assert refused.returncode in (1, 2)
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_client_without_the_scope_is_explained_which_one_it_needs(
    run: Any, tmp_path: Path
) -> None:
    config = Config(auth=AuthConfig(enforce_scopes=True))
    with RunningService(tmp_path, config=config) as strict:
        reader = strict.integrator(scopes=("webhooks.read",))
        stranger = strict.integrator(scopes=("system/*.cruds",))

        refused = [ran(run, each, tmp_path) for each in (reader, stranger)]

    assert [each.returncode for each in refused] == [1, 1]
    assert "needs the scope webhooks.write" in refused[0].stderr
    assert "needs the scope webhooks.read" in refused[1].stderr
