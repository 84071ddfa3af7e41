"""Tests and challenges of endpoints: four at a time for a tenant, and what a fifth costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator, RunningService
from tests.audit_trail import read_chain
from tests.gate import Gate, gate
from tests.waiting import wait_until

ENDPOINTS = "/webhooks/v1/endpoints"
TIMEOUT_SECONDS = 50.0
AT_A_TIME = 4


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("trials")
    keys = folder / "keys"
    keys.write_text("A" * 43 + "=\n")
    webhooks = WebhooksConfig(
        allow_networks=["127.0.0.1/32"], timeout_seconds=TIMEOUT_SECONDS, keys_file=str(keys)
    )
    config = Config(webhooks=webhooks)
    with RunningService(folder, config=config, store_url=store_url("trials")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator(scopes=("webhooks.read", "webhooks.write"))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def add(lab: Integrator, receiver: Receiver | Gate) -> str:
    """Add an endpoint; return the path of what can be done with it."""
    answer = lab.request("POST", ENDPOINTS, {"url": receiver.url})
    assert answer.status == 201
    return f"{ENDPOINTS}/{answer.json['id']}"


@contextmanager
def running_trials(lab: Integrator) -> Iterator[None]:
    """Run as many trials as may run; they have reached a receiver, and end with the block."""
    with ThreadPoolExecutor(AT_A_TIME) as threads, gate() as receiver:
        path = add(lab, receiver)
        for _ in range(AT_A_TIME):
            threads.submit(lab.request, "POST", f"{path}/verify")
        assert wait_until(lambda: len(receiver.received) == AT_A_TIME)
        yield


def records(lab: Integrator, action: str) -> list[int]:
    """Return the statuses in the tenant's audit records of an action; 102 announces it."""
    found = read_chain(lab, lab.tenant.id)
    return [record["status"] for record in found if record["action"] == action]


@pytest.mark.parametrize("verb", ["test", "verify"])
def test_a_fifth_trial_is_refused_until_one_has_ended(
    lab: Integrator, receiver: Receiver, verb: str
) -> None:
    path = add(lab, receiver)

    with running_trials(lab):
        refused = lab.request("POST", f"{path}/{verb}")
    receiver.answer(Reply(status=200, echo=True))

    assert (refused.status, refused.issues[0]["code"]) == (429, "throttled")
    assert refused.headers["retry-after"] == "50"
    assert lab.request("POST", f"{path}/{verb}").status == 200


@pytest.mark.parametrize("verb", ["test", "verify"])
def test_a_refused_trial_leaves_no_durable_record_before_its_refusal(
    lab: Integrator, receiver: Receiver, verb: str
) -> None:
    path = add(lab, receiver)
    with running_trials(lab):
        lab.request("POST", f"{path}/{verb}")

    statuses = records(lab, f"endpoint.{verb}")

    assert statuses.count(429) == 1
    assert statuses.count(102) == statuses.count(200)


def test_of_many_trials_at_once_only_those_that_run_leave_a_durable_record(
    lab: Integrator,
) -> None:
    with ThreadPoolExecutor(12) as threads, gate() as receiver:
        path = add(lab, receiver)
        answers = [threads.submit(lab.request, "POST", f"{path}/test") for _ in range(12)]
        assert wait_until(lambda: sum(answer.done() for answer in answers) == 8)
        assert wait_until(lambda: len(receiver.received) == AT_A_TIME)

    assert sorted(answer.result().status for answer in answers) == [200] * AT_A_TIME + [429] * 8
    assert records(lab, "endpoint.test").count(102) == AT_A_TIME


def test_the_trials_of_a_tenant_take_no_place_of_another(
    service: RunningService, lab: Integrator
) -> None:
    clinic = service.integrator(scopes=("webhooks.read", "webhooks.write"))
    with Receiver() as of_clinic:
        of_clinic.answer(Reply(status=200, echo=True))
        elsewhere = add(clinic, of_clinic)

        with running_trials(lab):
            answer = clinic.request("POST", f"{elsewhere}/test")

    assert (answer.status, answer.json["passed"]) == (200, True)
