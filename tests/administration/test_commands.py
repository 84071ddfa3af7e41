"""The command line says the same on a store and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner

from fhirpub.administration.table import OPERATIONS
from fhirpub.cli.commands import fhirpub
from tests.administration.conftest import COMMAND, Administered
from tests.api.test_erasure import publish
from tests.waiting import wait_until

LOCAL = {
    "serve",
    "dispatch",
    "demo",
    "publish",
    "check",
    "transfer",
    "plugins",
    "plugin",
    "config",
    "admin",
    "sample",
    "console",
    "secrets new-key",
    "endpoint verify",
    "webhooks listen",
    "webhooks trigger",
}
"""Commands that start something, look at files, or are of another side."""

_UNUSED = "https://93.184.216.34/hooks"


@pytest.fixture(scope="module")
def tenant(administered: Administered) -> str:
    """A tenant with something of everything."""
    lab = administered.service.integrator("Lab Uno")
    tenant = lab.tenant.id
    published = publish(lab)
    for words in (
        ("client", "add", "--tenant", tenant, "--key", "ward", "--name", "ward"),
        ("quota", "set", "--tenant", tenant, "--bytes-per-day", "5000"),
        ("endpoint", "add", "--tenant", tenant, "--url", _UNUSED, "--event", "endpoint.failing"),
        ("hold", "add", published.report, "--tenant", tenant, "--reason", "case 7"),
    ):
        administered.json(*words)

    def is_counted() -> bool:
        shown = administered.run("quota", "show", "--tenant", tenant, "--json")
        return bool(json.loads(shown.stdout)["quotas"][-1]["used"])

    wait_until(is_counted)  # other processes learn of stored bytes within two seconds
    # Otherwise written some time within a quarter of a minute, perhaps between two commands.
    administered.service.call(administered.service.services.tokens._uses.record(at_once=True))
    return tenant


def leaves(group: click.Command, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command below a group, with its words."""
    if not isinstance(group, click.Group):
        yield " ".join(words), group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from leaves(command, *words, name)


def is_local(words: str) -> bool:
    return words in LOCAL or words.partition(" ")[0] in LOCAL


def test_each_command_of_operators_is_an_operation_and_takes_a_url() -> None:
    done = {" ".join(one.command.split(" --")[0].split()) for one in OPERATIONS}
    for words, command in leaves(fhirpub):
        if not is_local(words):
            options = {name for one in command.params for name in one.opts}
            assert {"--admin-url", "--admin-key"} <= options, words
            assert words in done | {"erase patient", "erase expired", "erase export"}, words


def test_the_help_of_what_is_final_says_so() -> None:
    final = {one.command for one in OPERATIONS if one.is_final and " --" not in one.command}
    commands = dict(leaves(fhirpub))
    for words in final - {"restore", "erase resume"}:
        text = " ".join(str(commands[words].help).split())
        assert "cannot be undone" in text or "stays so" in text, words


@pytest.mark.parametrize(
    "words",
    [
        "tenant list",
        "tenant show TENANT",
        "tenant show unknown",
        "client list --tenant TENANT",
        "client list --tenant unknown",
        "client show unknown",
        "client disable unknown --yes",
        "quota show --tenant TENANT",
        "keys list",
        "endpoint list --tenant TENANT",
        "endpoint show unknown",
        "endpoint set unknown --ordering none",
        "deliveries list --tenant TENANT",
        "deliveries show evt_nothing",
        "deliveries replay --dead --tenant TENANT",
        "hold list --tenant TENANT",
        "hold release Patient/00000000-0000-4000-8000-000000000000 --tenant TENANT",
        "erase list",
        "erase report 00000000-0000-4000-8000-000000000000 --tenant TENANT --reason x --dry-run",
        "erase expired --tenant TENANT --dry-run",
        "patient conflicts --tenant TENANT",
        "patient show unknown --tenant TENANT",
        "audit list --tenant TENANT --action register",
        "secrets reseal --dry-run",
        "tenant add ' '",
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_command_says_the_same_here_and_there(
    administered: Administered, tenant: str, words: str, *, as_json: bool
) -> None:
    named = [word.strip("'").replace("TENANT", tenant) for word in words.split(" ")]
    if words == "tenant add ' '":
        named = ["tenant", "add", " "]
    named += ["--json"] * as_json

    here, there = administered.run(*named), administered.run_there(*named)

    assert (here.exit_code, here.stdout, here.stderr) == (
        there.exit_code,
        there.stdout,
        there.stderr,
    )


def test_a_chain_is_verified_here_and_there(administered: Administered, tenant: str) -> None:
    words = ("audit", "verify", "--tenant", tenant, "--json")

    for done in (administered.run(*words), administered.run_there(*words)):
        assert done.exit_code == 0, done.stderr
        assert [one["verdict"] for one in json.loads(done.stdout)] == ["right"]


def test_names_are_taken_for_ids(administered: Administered, tenant: str) -> None:
    name = administered.json("tenant", "show", tenant)["name"]
    others = [one for one in administered.json("tenant", "list") if one["name"] == name]

    shown = administered.run_there("tenant", "show", name)

    assert (shown.exit_code == 0) is (len(others) == 1)
    assert administered.json("client", "show", "ward")["tenant"] == tenant


def test_a_name_that_several_have_is_refused_with_their_ids(administered: Administered) -> None:
    ids = [administered.json("tenant", "add", "Twins")["id"] for _ in range(2)]

    refused = administered.run_there("tenant", "disable", "Twins")

    assert refused.exit_code == 1
    assert all(id_ in refused.stderr for id_ in ids)


def test_a_report_is_erased_over_http(administered: Administered) -> None:
    lab = administered.service.integrator("Lab Dos")
    published = publish(lab)
    words = ("--tenant", lab.tenant.id, "--reason", "order 7", "--operator", "Ana", "--yes")

    done = administered.json("erase", "report", published.report, *words)

    assert [f"{one['type']}/{one['id']}" for one in done["erased"]] == [published.report]
    assert lab.get(f"/fhir/r4/{published.report}").status == 410
    (order,) = administered.json("erase", "list", "--tenant", lab.tenant.id)
    assert (order["operator"], order["reason"]) == ("Ana", "order 7")


def test_what_is_exported_over_http_is_the_same_as_from_the_store(
    administered: Administered, tenant: str
) -> None:
    words = ("audit", "export", "--tenant", tenant)
    administered.run_there(*words)  # which is recorded

    here, there = administered.run(*words), administered.run_there(*words)

    lines = here.stdout.splitlines()
    assert len(lines) > 5
    assert there.stdout.splitlines()[: len(lines)] == lines


def test_a_long_list_of_records_is_read_in_pages(administered: Administered, tenant: str) -> None:
    def page(query: str) -> dict[str, Any]:
        answer = administered.request("GET", f"/audit/{tenant}/records?{query}")
        return cast("dict[str, Any]", answer.json)

    at_once = page("limit=1000")["records"]
    assert len(at_once) > 5
    pages = [page("limit=2")]
    while place := pages[-1]["following"]:
        pages.append(page(f"limit=2&from={place}"))
    assert {len(each["records"]) for each in pages[:-1]} == {2}
    found = [record for each in pages for record in each["records"]]

    # A read is recorded some seconds later, with its own time, and may have come in between.
    assert [record for record in found if record in at_once] == at_once


def test_without_a_key_the_command_says_what_to_set(administered: Administered) -> None:
    environment = {"FHIRPUB_ADMIN_URL": administered.url, "FHIRPUB_ADMIN_KEY": ""}

    done = CliRunner().invoke(COMMAND, ["tenant", "list"], env=environment)

    assert done.exit_code == 1
    assert "--admin-key" in done.stderr
    assert "FHIRPUB_ADMIN_KEY" in done.stderr


def test_a_private_key_in_a_file_authenticates(administered: Administered) -> None:
    file = administered.folder / "terraform.key.json"
    file.write_text(json.dumps({"name": "terraform", **administered.private_key}))
    words = ["tenant", "list", "--admin-url", administered.url, "--admin-key", str(file), "--json"]

    done = CliRunner().invoke(COMMAND, words)

    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:1", "cannot be reached"),
        ("ftp://localhost", "is no URL"),
        ("localhost:8090", "is no URL"),
    ],
)
def test_a_url_that_leads_nowhere_is_explained(url: str, said: str) -> None:
    words = ["tenant", "list", "--admin-url", url]

    done = CliRunner().invoke(COMMAND, words, env={"FHIRPUB_ADMIN_KEY": "x"})

    assert done.exit_code == 1
    assert said in done.stderr


def test_the_url_of_the_service_itself_is_recognized(administered: Administered) -> None:
    words = ["tenant", "list", "--admin-url", administered.service.base_url]

    done = CliRunner().invoke(COMMAND, words, env={"FHIRPUB_ADMIN_KEY": "x"})

    assert done.exit_code == 1
    assert "Traceback" not in done.stderr
