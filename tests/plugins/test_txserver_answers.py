"""Answers of a terminology server: how they are read, for how long they count, what is asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fhirpub.plugin_api import PluginContext
from fhirpub.testing.plugin_contracts import CodeSourceContract
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub_txserver import client, fhirpub_settings, fhirpub_terminology
from fhirpub_txserver.client import TerminologyServer, _result_in
from fhirpub_txserver.settings import ServerSettings
from tests.plugins.terminology import NEVER, SYSTEM, Server, serving, unhurried

GLUCOSE = (SYSTEM, "glu")
learned = CodeSourceContract().learned


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for all tests: threads of one may still ask it while the next one runs."""
    with serving() as server:
        yield server


def asked_with(server: Server, code: str) -> dict[str, str]:
    """Return the headers of the only question about a code."""
    (headers,) = [headers for path, headers in server.asked if path.endswith(f"&code={code}")]
    return headers


class Silent:
    """A source that asks nothing, as its threads are taken to run, and a clock for it."""

    def __init__(self, **settings: Any) -> None:
        self.now = 1_000.0
        made = ServerSettings(url="http://tx.example", **settings)
        self.source = TerminologyServer(made, clock=lambda: self.now)
        self.source._threads = [threading.current_thread()]

    def asked(self, code: str = "glu") -> bool:
        """Return whether what is known of a code is asked for again."""
        before = self.source._questions.qsize()
        self.source.knows(SYSTEM, code)
        return self.source._questions.qsize() > before

    def learn(self, code: str = "glu", *, answer: bool | None) -> None:
        """Keep an answer as if the server had sent it."""
        self.source._keep((SYSTEM, code), answer)


# Reading an answer

YES = {"name": "result", "valueBoolean": True}


@pytest.mark.parametrize(
    ("entries", "result"),
    [
        ([YES], True),
        ([{"name": "result", "valueBoolean": False}], False),
        ([{"name": "message", "valueString": "x"}, YES], True),
        ([YES, {"name": "x-caused-by-unknown-system"}], None),
        ([{"name": "x-unknown-system"}, {"name": "result", "valueBoolean": False}], None),
        ([{"name": "result", "valueString": "true"}], None),
        ([{"name": "result", "valueBoolean": 1}], None),
        ([{"name": "display", "valueBoolean": True}], None),
        ([], None),
        (["result", None, YES], True),
    ],
)
def test_an_answer_is_its_result_unless_the_system_is_unknown(
    entries: list[Any], *, result: bool | None
) -> None:
    assert _result_in({"resourceType": "Parameters", "parameter": entries}) is result


@pytest.mark.parametrize(
    "answer",
    [
        *({}, [], None, "x", 7),
        {"parameter": 7},
        {"parameter": {"name": "result", "valueBoolean": True}},
        {"parameter": [{"name": ["result"], "valueBoolean": True}]},
    ],
)
def test_another_document_is_no_answer(answer: Any) -> None:
    assert _result_in(answer) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"parameter": 7}',
        b'{"parameter": [{"name": {}}]}',
        b"no JSON",
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_questions_go_on_after_an_answer_that_cannot_be_read(server: Server, body: bytes) -> None:
    codes = [f"bad-{len(body)}-{number}" for number in range(4)]
    server.answers |= dict.fromkeys(codes, body)
    source = TerminologyServer(unhurried(server))

    for code in codes:
        source.knows(SYSTEM, code)

    assert learned(source, *GLUCOSE) is True
    assert [source.knows(SYSTEM, code) for code in codes] == [None] * 4


def test_an_answer_that_is_too_long_is_not_read_to_its_end(server: Server) -> None:
    whole = b'{"parameter": [{"name": "result", "valueBoolean": true}]}'
    longer = whole + b" " * 1_000_000 + b"}"
    server.answers |= {"long": whole.ljust(1_000_000), "longer": longer}
    source = TerminologyServer(unhurried(server))

    assert source._ask((SYSTEM, "long")) is True
    assert source._ask((SYSTEM, "longer")) is True


# What is asked


def test_the_server_is_asked_for_json(server: Server) -> None:
    TerminologyServer(unhurried(server))._ask((SYSTEM, "json"))

    assert asked_with(server, "json")["Accept"] == "application/fhir+json"


def test_without_a_token_none_is_sent(server: Server) -> None:
    TerminologyServer(unhurried(server))._ask((SYSTEM, "open"))

    assert "Authorization" not in asked_with(server, "open")


def test_a_token_is_sent_as_a_bearer_token(server: Server) -> None:
    settings = unhurried(server, token="a-word")

    TerminologyServer(settings)._ask((SYSTEM, "closed"))

    assert asked_with(server, "closed")["Authorization"] == "Bearer a-word"


def test_a_redirect_takes_no_token_to_another_server(server: Server) -> None:
    with Receiver() as elsewhere:
        location = f"{server.url}/CodeSystem/$validate-code?url={SYSTEM}&code=moved"
        elsewhere.answer(Reply(status=302, headers={"Location": location}))
        settings = unhurried(server, url=elsewhere.url, token="a-word")

        TerminologyServer(settings)._ask((SYSTEM, "moved"))

        (asked,) = elsewhere.received
    assert asked.headers["authorization"] == "Bearer a-word"
    assert "Authorization" not in asked_with(server, "moved")


@pytest.mark.parametrize("end", ["", "/"])
def test_the_base_may_end_with_a_slash(server: Server, end: str) -> None:
    code = f"a&b c{len(end)}"

    TerminologyServer(unhurried(server, url=server.url.rstrip("/") + end))._ask((SYSTEM, code))

    path = "/r4/CodeSystem/$validate-code?url=https%3A%2F%2Fcodes.example%2Ftests&code=a%26b+c"
    assert [path for path, _headers in server.asked].count(f"{path}{len(end)}") == 1


def test_two_answers_that_never_come_do_not_keep_others_from_being_asked(server: Server) -> None:
    settings = ServerSettings(url=server.url, timeout_seconds=0.2, retry_seconds=0.01)
    source = TerminologyServer(settings)

    assert source.knows(SYSTEM, NEVER) is None
    assert source.knows("https://codes.example/others", NEVER) is None

    assert learned(source, *GLUCOSE) is True


def test_its_threads_do_not_keep_the_process_alive(server: Server) -> None:
    source = TerminologyServer(unhurried(server))
    assert source._threads == []
    source.knows(*GLUCOSE)

    assert [(thread.name, thread.daemon) for thread in source._threads] == [
        ("terminology", True)
    ] * 2


def test_a_question_that_waits_is_not_asked_twice() -> None:
    silent = Silent()

    assert [silent.asked(), silent.asked(), silent.asked("hb")] == [True, False, True]


def test_a_question_beyond_those_that_may_wait_is_dropped_and_asked_later() -> None:
    silent = Silent()
    asked = [silent.asked(f"c{number}") for number in range(1_001)]
    silent.source._questions.get()

    assert asked == [True] * 1_000 + [False]
    assert silent.asked("c1000")


@pytest.mark.parametrize(("length", "asked"), [(1_000, True), (1_001, False)])
def test_a_code_that_is_too_long_is_not_asked_for(length: int, *, asked: bool) -> None:
    assert Silent().asked("x" * (length - len(SYSTEM))) is asked


def test_systems_that_are_not_named_are_not_asked_for() -> None:
    assert not Silent(systems=["http://loinc.org"]).asked()
    assert Silent(systems=["http://loinc.org", SYSTEM]).asked()


# For how long an answer counts


@pytest.mark.parametrize("answer", [True, False])
def test_an_answer_counts_for_its_hours(*, answer: bool) -> None:
    silent = Silent(cache_hours=2.0)
    silent.learn(answer=answer)

    silent.now += 7_199.0
    assert not silent.asked()
    silent.now += 1.0
    assert silent.asked()
    assert silent.source.knows(*GLUCOSE) is answer


def test_a_question_without_an_answer_is_asked_again_after_its_seconds() -> None:
    silent = Silent(retry_seconds=30.0)
    silent.learn(answer=None)

    silent.now += 29.0
    assert not silent.asked()
    silent.now += 1.0
    assert silent.asked()


def test_a_failure_takes_no_answer_back_and_is_tried_again_soon() -> None:
    silent = Silent(cache_hours=2.0, retry_seconds=30.0)
    silent.learn(answer=True)
    silent.learn(answer=None)

    assert silent.source.knows(*GLUCOSE) is True
    silent.now += 30.0
    assert silent.asked()


def test_a_new_answer_replaces_the_old_one() -> None:
    silent = Silent()
    silent.learn(answer=True)
    silent.learn(answer=False)

    assert silent.source.knows(*GLUCOSE) is False


def test_the_oldest_answer_makes_room_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert client._MAX_ANSWERS == 100_000
    monkeypatch.setattr(client, "_MAX_ANSWERS", 3)
    silent = Silent()
    for code in ("first", "second", "third", "first", "new"):
        silent.learn(code, answer=True)

    known = {code: silent.source.knows(SYSTEM, code) for code in ("first", "second", "third")}

    assert known == {"first": True, "second": None, "third": True}
    assert silent.source.knows(SYSTEM, "new") is True


# Settings


def test_the_plugin_asks_a_server_if_there_is_one() -> None:
    def sources(url: str) -> int:
        groups = {ServerSettings: ServerSettings(url=url)}
        context = PluginContext(base_url="", environment="sandbox", groups=groups)
        return len(fhirpub_terminology(context))

    assert fhirpub_settings() is ServerSettings
    assert (sources(""), sources("https://tx.example")) == (0, 1)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"url": "https://"}, "url must begin with http:// or https://, and name a host"),
        ({"url": "ftp://x"}, "url must begin with http:// or https://, and name a host"),
        ({"url": "tx.example"}, "url must begin with http:// or https://, and name a host"),
        ({"cache_hours": 0.0}, "cache_hours must be above 0"),
        ({"retry_seconds": 0.0}, "retry_seconds must be above 0"),
        ({"timeout_seconds": 0.0}, "timeout_seconds must be above 0"),
    ],
)
def test_settings_that_cannot_be_used_are_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        ServerSettings(**changes)


@pytest.mark.parametrize("url", ["http://tx.example", "https://tx.example/r4"])
def test_a_server_may_be_reached_with_and_without_tls(url: str) -> None:
    assert ServerSettings(url=url).url == url


def test_the_token_is_not_shown() -> None:
    assert "word" not in repr(ServerSettings(token="a-word"))
