"""The cost of each stage of a registration, measured separately: where to optimize first.

One process runs them stage by stage for the requests that `scripts/bench` sends, of 3 KB or with
a larger document, on a new SQLite store. The figures are microseconds of CPU for one registration,
of all threads, the minimum of several rounds. In the service, requests that arrive together run
each stage together too, but they are fewer.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import process_time
from typing import Any

from bench.payloads import SMALL_DOCUMENT, Caller, RegisterRequests
from fhirpub.app.services import build_services
from fhirpub.auth.tenants import add_tenant
from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import loads
from fhirpub.interactions import rules
from fhirpub.interactions.register import Candidate, build_candidate
from fhirpub.interactions.submission.cut import Cut, cut_documents, read_cut
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.validation.validation import take_documents, validate_submission
from fhirpub.runtime.stages import run_to_completion
from fhirpub.tenant import Tenant
from fhirpub.web.handlers.placement import LARGE
from fhirpub.web.services import Services

REPORTS = 500
LARGE_REPORTS = 20
TOGETHER = 20
"""The number of requests that arrive together in the service under 32 connections."""
TYPE = "DiagnosticReport"


class Stages:
    """The stages in their order; each takes the output of the previous one."""

    def __init__(self, service: Services, tenant: Tenant) -> None:
        self._context = service.context
        self._tenant = tenant

    async def cut_documents_out(self, bodies: Sequence[bytes]) -> list[Cut]:
        return [cut_documents(body, max_rest=LARGE) or (body, {}) for body in bodies]

    async def read_the_json(self, cut: Sequence[Cut]) -> list[Submission]:
        resource_type = self._context.types[TYPE]
        return [
            read_cut(loads(rest), resource_type, read=from_parameters, documents=documents)
            for rest, documents in cut
        ]

    async def validate_it(self, submissions: Sequence[Submission]) -> Sequence[Submission]:
        for submission in submissions:
            take_documents(submission)
            issues = run_to_completion(
                validate_submission(submission, self._context, self._tenant.id)
            )
            submission.remarks = rules.refuse([*submission.remarks, *issues], self._context)
        return submissions

    async def make_the_version(self, submissions: Sequence[Submission]) -> list[Candidate]:
        return [
            run_to_completion(build_candidate(submission, self._tenant, self._context))
            for submission in submissions
        ]

    async def store_it(self, candidates: Sequence[Candidate]) -> None:
        for start in range(0, len(candidates), TOGETHER):
            adding = (
                self._context.resources.add(self._tenant.id, candidate.version, candidate.blobs)
                for candidate in candidates[start : start + TOGETHER]
            )
            await asyncio.gather(*adding)


async def measured(service: Services, rounds: int, document: int) -> dict[str, float]:
    """Return the least CPU of each stage for one registration, in microseconds."""
    stages = Stages(service, await add_tenant(service.store, "Bench", clock=service.clock))
    in_order: dict[str, Callable[[Any], Awaitable[Any]]] = {
        "cut documents out": stages.cut_documents_out,
        "read the JSON": stages.read_the_json,
        "validate it": stages.validate_it,
        "make the version": stages.make_the_version,
        f"store it, {TOGETHER} at once": stages.store_it,
    }
    requests = RegisterRequests(Caller("127.0.0.1", "token"), document)
    reports = REPORTS if document < LARGE else LARGE_REPORTS
    least: dict[str, float] = {}
    gc.freeze()  # as the service does once it has started
    for number in range(rounds):
        serials = range(number * reports, (number + 1) * reports)
        made: Any = [
            b"".join(requests.request(serial)).partition(b"\r\n\r\n")[2] for serial in serials
        ]
        for name, stage in in_order.items():
            since = process_time()
            made = await stage(made)
            microseconds = (process_time() - since) * 1e6 / reports
            least[name] = min(microseconds, least.get(name, microseconds))
    return least


async def run(rounds: int, document: int) -> None:
    """Measure on a store of its own, and print."""
    with tempfile.TemporaryDirectory(prefix="fhirpub-bench-") as name:
        config = Config()
        storage = replace(config.storage, url=f"sqlite:///{name}/fhirpub.db")
        async with build_services(replace(config, storage=storage)) as service:
            least = await measured(service, rounds, document)
    for stage, microseconds in least.items():
        print(f"{stage:24}{microseconds:6.0f} us")
    print(f"{'all':24}{sum(least.values()):6.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--document", type=int, default=SMALL_DOCUMENT, help="its bytes")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.rounds, arguments.document))


if __name__ == "__main__":
    main()
