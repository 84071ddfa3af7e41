"""What forwards events to a receiver signs and sends as the service does."""

from __future__ import annotations

import click
import pytest

from fhirpub.cli.webhooks.forwarding import LocalSecret, forwarding
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.receiver import Receiver
from fhirpub.webhooks import verify
from fhirpub.webhooks.transport.signing import key_of, new_secret

SECRET = new_secret()
SETTINGS = WebhooksConfig(timeout_seconds=5)


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FHIRPUB_SIGNING_SECRET", SECRET)
    monkeypatch.delenv("FHIRPUB_ENDPOINT_TOKEN", raising=False)


async def test_an_event_is_signed_with_the_secret_of_the_environment(receiver: Receiver) -> None:
    async with forwarding(receiver.url, SETTINGS) as forwarder:
        outcome = await forwarder.send("evt_1", "a.created", b'{"a":1}', sequence=7, number=2)

    (received,) = receiver.received
    assert outcome.delivered
    verify(received.headers, received.body, SECRET, now=now_ms() / 1000)
    assert received.body == b'{"a":1}'
    sent = {name.lower(): value for name, value in received.headers.items()}
    assert (sent["webhook-id"], sent["x-webhook-event"]) == ("evt_1", "a.created")
    assert sent["authorization"].startswith("Bearer ")
    assert "2" in {value for name, value in sent.items() if "attempt" in name}


async def test_the_token_of_the_environment_is_sent(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FHIRPUB_ENDPOINT_TOKEN", "t" * 40)

    async with forwarding(receiver.url, SETTINGS) as forwarder:
        await forwarder.send("evt_1", "a.created", b"{}", sequence=1)

    headers = {name.lower(): value for name, value in receiver.received[0].headers.items()}
    assert headers["authorization"] == f"Bearer {'t' * 40}"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "x", "http://127.0.0.1:1/#a"])
async def test_a_url_that_no_event_can_be_sent_to_is_refused(url: str) -> None:
    with pytest.raises(click.BadParameter) as refusal:
        async with forwarding(url, SETTINGS):
            pass

    assert refusal.value.message.startswith(f"{url} ")
    assert refusal.value.param_hint == "--forward-to"


def test_the_secret_of_the_environment_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    secret = LocalSecret.find()
    secret.announce("http://a")

    assert (secret.text, secret.is_new) == (SECRET, False)
    assert capsys.readouterr().err == (
        "Signing for http://a with the secret of FHIRPUB_SIGNING_SECRET\n"
    )


def test_a_secret_that_is_made_is_printed_so_that_it_can_be_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FHIRPUB_SIGNING_SECRET")

    secret = LocalSecret.find()
    secret.announce("http://a")

    assert secret.is_new
    assert key_of(secret.text)
    assert LocalSecret.find().text != secret.text
    assert capsys.readouterr().err == (
        f"Signing for http://a with {secret.text} "
        "(made for this run; FHIRPUB_SIGNING_SECRET sets one that stays)\n"
    )


def test_a_secret_that_cannot_sign_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FHIRPUB_SIGNING_SECRET", "whsec_?hidden")

    with pytest.raises(click.ClickException, match=r"^FHIRPUB_SIGNING_SECRET: ") as refusal:
        LocalSecret.find()

    assert "hidden" not in refusal.value.message


async def test_neither_secret_nor_token_are_in_what_python_prints(receiver: Receiver) -> None:
    async with forwarding(receiver.url, SETTINGS) as forwarder:
        text = repr(forwarder)

    assert SECRET not in text
    assert forwarder.token not in text


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "10.1.2.3", "[fd00::1]"])
async def test_a_receiver_may_be_on_this_machine_or_near_it_with_any_address(host: str) -> None:
    async with forwarding(f"http://{host}:9/hook", SETTINGS) as forwarder:
        assert forwarder.url == f"http://{host}:9/hook"
