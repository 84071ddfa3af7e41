"""What the commands print of each report, and the options that they have."""

from __future__ import annotations

import ipaddress
import json
import ssl
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from fhirpub_hl7v2.__main__ import main
from fhirpub_hl7v2.delivery import Delivery, Result
from fhirpub_hl7v2.listening import _NetworkType, _tls, listen
from fhirpub_hl7v2.publishing import _print, _status, map_all
from tests.canned import issue
from tests.hl7v2.conftest import MAPPING
from tests.hl7v2.messages import SETTINGS, message, obr, obx, pid


def stored(result: Result, **more: Any) -> Delivery:
    return Delivery(result=result, id="d-1", version="4", **more)


def printed(
    capsys: pytest.CaptureFixture[str], delivery: Delivery, *, as_json: bool = False
) -> tuple[str, str]:
    """Return what is on standard output, and on standard error."""
    _print(delivery, 2, 1, as_json=as_json)
    found = capsys.readouterr()
    return found.out, found.err


@pytest.mark.parametrize(
    ("delivery", "line"),
    [
        (stored("created"), "published as DiagnosticReport d-1 version 4"),
        (stored("revised"), "published as DiagnosticReport d-1 version 4"),
        (
            stored("replayed"),
            "already published as DiagnosticReport d-1 version 4, nothing new was stored",
        ),
    ],
)
def test_a_report_that_is_stored_is_a_line_on_standard_output(
    capsys: pytest.CaptureFixture[str], delivery: Delivery, line: str
) -> None:
    assert printed(capsys, delivery) == (f"message 2, report 1: {line}\n", "")


@pytest.mark.parametrize(
    ("delivery", "line"),
    [
        (
            stored("superseded"),
            "DiagnosticReport d-1 version 4 is of a later state: what you sent was not stored",
        ),
        (Delivery(result="refused", reason="403 Forbidden"), "refused: 403 Forbidden"),
    ],
)
def test_a_report_that_is_not_stored_is_an_error(
    capsys: pytest.CaptureFixture[str], delivery: Delivery, line: str
) -> None:
    assert printed(capsys, delivery) == ("", f"Error: message 2, report 1: {line}\n")


def test_problems_of_the_service_stand_below_a_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    issues = [issue("value-required", "DiagnosticReport.code")]

    _out, err = printed(capsys, Delivery(result="refused", reason="422", issues=issues))

    assert err.splitlines()[1].startswith("  ")
    assert "value-required" in err
    assert "DiagnosticReport.code" in err


def test_remarks_on_a_registration_stand_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    issues = [issue("code-system-unknown", severity="warning")]

    out, err = printed(capsys, stored("created", issues=issues))

    assert "code-system-unknown" in out.splitlines()[1]
    assert err == ""


def test_what_stays_as_registered_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    delivery = stored("revised", kept=("patient",))

    _out, err = printed(capsys, delivery)

    assert err == (
        "Warning: message 2: stored, but for patient: what differs there stays as it was "
        "registered\n"
    )


def test_a_stored_report_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    delivery = stored("revised", kept=("patient",))

    out, _err = printed(capsys, delivery, as_json=True)

    assert json.loads(out) == {
        "message": 2,
        "report": 1,
        "result": "revised",
        "id": "d-1",
        "version": "4",
        "issues": [],
        "kept": ["patient"],
    }
    assert out.count("\n") == 1


def test_a_refusal_is_a_line_of_json_and_a_line_for_people(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, err = printed(capsys, Delivery(result="refused", reason="403"), as_json=True)

    assert json.loads(out)["result"] == "refused"
    assert err == "Error: message 2, report 1: refused: 403\n"


@pytest.mark.parametrize(
    ("result", "status"),
    [("created", 0), ("replayed", 0), ("revised", 0), ("superseded", 3), ("refused", 1)],
)
def test_a_report_has_its_exit_status(result: Any, status: int) -> None:
    assert _status(Delivery(result=result)) == status


def test_messages_are_counted_from_one_whether_they_can_be_used_or_not() -> None:
    raw = message() + message(pid()) + message(pid(), obr(), obx(), obr({3: "2^LIS"}), obx())

    found = [*map_all(raw, SETTINGS)]

    assert [(one.number, len(one.reports), one.problem is None) for one in found] == [
        (1, 1, True),
        (2, 0, False),
        (3, 2, True),
    ]


@pytest.mark.parametrize(("raw", "status"), [(message(), 0), (message() + message(pid()), 1)])
def test_a_dry_run_fails_if_a_message_cannot_be_mapped(
    tmp_path: Path, raw: bytes, status: int
) -> None:
    (tmp_path / "m.hl7").write_bytes(raw)
    (tmp_path / "mapping.toml").write_text(MAPPING)

    words = [str(tmp_path / "m.hl7"), "--mapping", str(tmp_path / "mapping.toml"), "--dry-run"]
    done = CliRunner().invoke(main, ["publish", *words])

    assert done.exit_code == status
    assert ("Error: message 2: MSH[1]: no OBR follows\n" in done.stderr) is bool(status)
    assert json.loads(done.stdout)["resourceType"] == "Parameters"


# The listener


def test_the_listener_has_limits_by_default() -> None:
    made = listen.make_context("listen", ["--mapping", __file__]).params

    names = ("host", "port", "message_bytes", "connections", "idle_seconds", "arrival_seconds")
    assert {name: made[name] for name in names} == {
        "host": "127.0.0.1",
        "port": 2575,
        "message_bytes": 16 * 1024 * 1024,
        "connections": 64,
        "idle_seconds": 600.0,
        "arrival_seconds": 30.0,
    }
    assert (made["deadline_seconds"], made["allowed"]) == (20.0, ())


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.1.0.0/16", "10.1.0.0/16"),
        ("10.1.2.3/16", "10.1.0.0/16"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("fd00::/8", "fd00::/8"),
    ],
)
def test_a_network_or_an_address_may_be_allowed(text: str, network: str) -> None:
    found = _NetworkType().convert(text, None, None)

    assert found == ipaddress.ip_network(network)


@pytest.mark.parametrize("text", ["lab.example", "10.1.0.0/33", "10.1", ""])
def test_a_name_is_no_network(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is neither an address nor a network"):
        _NetworkType().convert(text, None, None)


def tls(**files: Path) -> ssl.SSLContext | None:
    return _tls({"tls_cert": None, "tls_key": None, "tls_client_ca": None, **files})


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls() is None


@pytest.mark.parametrize("name", ["tls_key", "tls_client_ca"])
def test_a_part_of_tls_without_a_certificate_is_wrong_usage(name: str) -> None:
    with pytest.raises(click.UsageError, match="need --tls-cert"):
        tls(**{name: Path(__file__)})


def test_a_file_that_is_no_certificate_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match=r"^--tls-cert, --tls-key, --tls-client-ca: "):
        tls(tls_cert=Path(__file__))
