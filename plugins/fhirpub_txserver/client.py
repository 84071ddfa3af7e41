"""Asks a server by ``CodeSystem/$validate-code`` in threads of its own, and keeps the answers."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
import urllib.request
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from fhirpub.plugin_api import CodeSource
from fhirpub_txserver.settings import ServerSettings

_MAX_ANSWERS = 100_000
_MAX_QUESTIONS = 1_000
_MAX_LENGTH = 1_000
_MAX_BYTES = 1_000_000
_THREADS = 2
_UNKNOWN_SYSTEM = ("x-caused-by-unknown-system", "x-unknown-system")

Question = tuple[str, str]
Answer = bool | None


class TerminologyServer(CodeSource):
    """A server, and what it has answered.

    A question beyond the thousand that wait is dropped, and asked again with the next resource.
    An old answer counts until there is another: a server that is away takes nothing back.
    """

    def __init__(
        self, settings: ServerSettings, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the settings. Threads begin with the first question, since processes fork."""
        self._settings = settings
        self._systems = frozenset(settings.systems)
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: OrderedDict[Question, tuple[bool | None, float]] = OrderedDict()
        self._questions: queue.Queue[Question] = queue.Queue(_MAX_QUESTIONS)
        self._waiting: set[Question] = set()
        self._threads: list[threading.Thread] = []

    def knows(self, system: str, code: str) -> bool | None:
        """Return what the server has answered; ask it if there is no answer, or an old one."""
        if self._systems and system not in self._systems:
            return None
        if len(system) + len(code) > _MAX_LENGTH:
            return None
        question = (system, code)
        with self._lock:
            answer, until = self._answers.get(question, (None, 0.0))
            if self._clock() >= until:
                self._ask_later(question)
            return answer

    def _ask_later(self, question: Question) -> None:
        if question in self._waiting or self._questions.full():
            return
        self._waiting.add(question)
        self._questions.put_nowait(question)
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._work, name="terminology", daemon=True)
                for _ in range(_THREADS)
            ]
            for thread in self._threads:
                thread.start()

    def _work(self) -> None:
        while True:
            question = self._questions.get()
            try:
                answer = self._ask(question)
            except (OSError, ValueError, RecursionError, http.client.HTTPException):
                answer = None
            with self._lock:
                self._waiting.discard(question)
                self._keep(question, answer)

    def _keep(self, question: Question, answer: Answer) -> None:
        settings = self._settings
        if answer is None:
            answer = self._answers.get(question, (None, 0.0))[0]
            seconds = settings.retry_seconds
        else:
            seconds = settings.cache_hours * 3600
        self._answers[question] = (answer, self._clock() + seconds)
        self._answers.move_to_end(question)
        if len(self._answers) > _MAX_ANSWERS:
            self._answers.popitem(last=False)

    def _ask(self, question: Question) -> bool | None:
        """Return the answer of the server; None if it does not know the code system."""
        system, code = question
        query = urlencode({"url": system, "code": code})
        headers = {"Accept": "application/fhir+json"}
        address = f"{self._settings.url.rstrip('/')}/CodeSystem/$validate-code?{query}"
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - http or https
        if self._settings.token:  # for this server, and none that it redirects to
            request.add_unredirected_header("Authorization", f"Bearer {self._settings.token}")
        timeout = self._settings.timeout_seconds
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            return _result_in(json.loads(response.read(_MAX_BYTES)))


def _result_in(answer: Any) -> bool | None:
    """Return ``result`` of the Parameters, unless it is that of a system that is not known."""
    entries = answer.get("parameter") if isinstance(answer, dict) else None
    named = {
        entry["name"]: entry
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    }
    result = named.get("result", {}).get("valueBoolean")
    if not isinstance(result, bool) or any(name in named for name in _UNKNOWN_SYSTEM):
        return None
    return result
