"""``fhirpub check`` reports problems that a start would have."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from fhirpub.app.stores import open_with
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.storage.mongodb import schema as mongodb
from fhirpub.storage.reencryption import FIND_KEY
from fhirpub.tenant import Tenant
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from fhirpub.testing.store_contract import a_key
from tests.bodies import register_body
from tests.plugin_examples import example, install, write_metadata
from tests.storage.older_sqlite_files import to_version_11


def warnings_of(done: Any) -> list[str]:
    """Return the warnings of a check, without the one for a test whose folder is in memory."""
    findings = json.loads(done.stdout)
    texts = [finding["text"] for finding in findings if finding["level"] == "warning"]
    return [text for text in texts if "is on a file system (" not in text]


def test_a_fresh_folder_is_fine(run: Any) -> None:
    done = run("check", "--json")

    findings = json.loads(done.stdout)
    assert done.returncode == 0, findings
    assert [finding["subject"] for finding in findings] == [
        "configuration",
        "plugins",
        "store",
        "secrets",
        "webhooks",
        "schemas",
    ]
    assert {finding["level"] for finding in findings} == {"ok"}


def test_people_get_one_line_for_each_finding(run: Any) -> None:
    lines = run("check").stdout.splitlines()

    assert len(lines) == 6
    assert lines[0] == (
        "ok       configuration  built-in defaults, for a sandbox: what is unsafe in production "
        "only is not looked for"
    )


def test_the_command_that_creates_the_key_says_where_it_is(run: Any) -> None:
    first, second = (run("check").stdout.splitlines()[3] for _time in range(2))

    made = "created fhirpub-data/fhirpub.webhook-keys, the key of the secrets in the store"
    assert first == f"ok       secrets        {made}: keep a copy"
    assert "are encrypted" in second


@pytest.mark.parametrize(
    ("settings", "subject", "text"),
    [
        ("[sever]", "configuration", "did you mean server?"),
        (
            "[metrics]\nport = 8080",
            "configuration",
            "[metrics] port: must differ from that of [server]",
        ),
        ("[plugins]\nenabled = ['nothing-such']", "plugins", "there is no plugin nothing-such"),
        ("[storage]\nurl = 'sqlite:////proc/none/f.db'", "store", ""),
        ("[storage]\nurl = 'oracle://x'", "store", "must be sqlite:///"),
    ],
)
def test_trouble_is_found_and_named(
    run: Any, tmp_path: Path, settings: str, subject: str, text: str
) -> None:
    (tmp_path / "f.toml").write_text(settings)

    done = run("check", "--config", "f.toml", "--json")

    errors = [load for load in json.loads(done.stdout) if load["level"] == "error"]
    assert done.returncode == 1
    assert {error["subject"] for error in errors} == {subject}
    assert text in errors[0]["text"]


def test_production_without_tls_is_a_warning(run: Any) -> None:
    done = run("check", "--json", FHIRPUB_AUTH__ENVIRONMENT="production")

    assert done.returncode == 0
    assert [text.partition(" is ")[0].split(" should")[0] for text in warnings_of(done)] == [
        "[server] base_url",
        "[auth] audience",
        "[server] trusted_proxies",
        "[auth] enforce_scopes",
        "[fhir] hash_check",
        "fhirpub-data/fhirpub.webhook-keys, the key,",
    ]


def test_a_secret_that_ends_soon_is_a_warning(run: Any) -> None:
    tenant = json.loads(run("tenant", "add", "Lab", "--json").stdout)["id"]
    client = ("client", "add", "--tenant", tenant, "--json", "--valid-days")
    ending, _later = (json.loads(run(*client, days).stdout)["client_id"] for days in ("29", "31"))

    found = json.loads(run("check", "--json").stdout)

    warned = [finding["text"] for finding in found if finding["subject"] == "clients"]
    assert [text.partition(" ends on ")[0] for text in warned] == [f"the secret of {ending}"]
    assert warned[0].endswith(f": fhirpub client rotate {ending}")


def test_a_client_without_scopes_is_a_warning_where_they_are_enforced(run: Any) -> None:
    tenant = json.loads(run("tenant", "add", "Lab", "--json").stdout)["id"]
    client = ("client", "add", "--tenant", tenant, "--json")
    bare = json.loads(run(*client).stdout)["client_id"]
    run(*client, "--scope", "system/*.rs")

    enforced = run("check", FHIRPUB_AUTH__ENFORCE_SCOPES="true").stdout

    assert enforced.count("has no scopes") == 1
    assert f"has no scopes: fhirpub client scopes {bare}" in enforced
    assert "has no scopes" not in run("check").stdout


def test_an_endpoint_whose_sink_no_enabled_plugin_has_is_a_warning(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    install(home, "file", example("A sink that appends events to files"))
    monkeypatch.syspath_prepend(home)
    enabled = {"FHIRPUB_PLUGINS__ENABLED": "file", "FHIRPUB_FILE__FOLDER": str(tmp_path)}
    tenant = json.loads(run("tenant", "add", "Lab", "--json").stdout)["id"]
    run("endpoint", "add", "--tenant", tenant, "--url", "sink:file/all", "--json", **enabled)

    assert "no sink" not in run("check", **enabled).stdout
    assert "no sink sink:file: enable the plugin that has it" in run("check").stdout


def test_a_client_of_the_other_environment_is_not_warned_of(run: Any) -> None:
    tenant = json.loads(run("tenant", "add", "Lab", "--json").stdout)["id"]
    run("client", "add", "--tenant", tenant, "--valid-days", "1")

    found = json.loads(run("check", "--json", FHIRPUB_AUTH__ENVIRONMENT="production").stdout)

    (finding,) = [finding for finding in found if finding["subject"] == "clients"]
    assert finding["level"] == "warning"
    assert finding["text"].startswith("all clients (1) belong to another environment than prod")


def test_a_client_of_another_environment_is_no_warning_beside_one_of_this(run: Any) -> None:
    production = {"FHIRPUB_AUTH__ENVIRONMENT": "production"}
    tenant = json.loads(run("tenant", "add", "Lab", "--json").stdout)["id"]
    run("client", "add", "--tenant", tenant)
    run("client", "add", "--tenant", tenant, **production)

    found = json.loads(run("check", "--json", **production).stdout)

    assert [finding for finding in found if finding["subject"] == "clients"] == []


@pytest.mark.parametrize(
    ("environment_name", "strict", "status"),
    [("production", True, 1), ("production", False, 0), ("sandbox", True, 0)],
)
def test_a_strict_check_fails_at_a_warning(
    run: Any, environment_name: str, *, strict: bool, status: int
) -> None:
    words = ["check", "--strict"] if strict else ["check"]

    assert run(*words, FHIRPUB_AUTH__ENVIRONMENT=environment_name).returncode == status


@pytest.mark.parametrize("kind", ["sqlite", "mongodb"])
def test_a_store_of_an_older_release_is_reported_and_not_upgraded(
    request: pytest.FixtureRequest, run: Any, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "fhirpub-data" / "fhirpub.db"
    url = f"sqlite:///{path}"
    if kind == "mongodb":
        url = request.getfixturevalue("mongodb_url")
    run("check", FHIRPUB_STORAGE__URL=url)
    if kind == "mongodb":
        mark_as_older(url)
    else:
        to_version_11(path)

    first, second = (
        json.loads(run("check", "--json", FHIRPUB_STORAGE__URL=url).stdout) for _time in range(2)
    )

    assert first == second
    (finding,) = [one for one in first if one["level"] != "ok"]
    assert (finding["subject"], finding["level"]) == ("store", "warning")
    assert (
        "which the first start of this release, or another command of it, upgrades to"
        in (finding["text"])
    )
    assert "make a backup with the older release, or copy the stopped store" in finding["text"]


def mark_as_older(url: str) -> None:
    """Give a database the schema version before that of this release."""
    with MongoClient[dict[str, Any]](url) as client:
        older = {"$set": {"version": mongodb.SCHEMA_VERSION - 1}}
        client.get_default_database()[mongodb.STORE].update_one({"_id": mongodb.SCHEMA}, older)


def test_a_settings_file_with_a_password_that_all_can_read_is_a_warning_without_it(
    run: Any, tmp_path: Path
) -> None:
    file = tmp_path / "f.toml"
    file.write_text(
        "[storage]\ndeadline_seconds = 1\n"
        "url = 'mongodb://u:secret-word@127.0.0.1:1/x?serverSelectionTimeoutMS=200'"
    )
    file.chmod(0o644)

    done = run("check", "--config", "f.toml")

    assert "f.toml has the password of the store and can be read by all users" in done.stdout
    assert "secret-word" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("address", "warnings"),
    [
        ("https://fhir.example.org", 1),
        ("https://lab.example/x", 1),
        ("https://fhir.counterexample.org", 0),
    ],
)
def test_an_address_that_was_left_as_in_the_example_is_a_warning(
    run: Any, address: str, warnings: int
) -> None:
    settings = {"FHIRPUB_AUTH__ENVIRONMENT": "production", "FHIRPUB_SERVER__BASE_URL": address}

    assert run("check", **settings).stdout.count("is still an example") == warnings


def test_a_damaged_file_is_reported_in_words(run: Any, tmp_path: Path) -> None:
    run("tenant", "add", "Lab")
    file = tmp_path / "fhirpub-data" / "fhirpub.db"
    file.write_bytes(file.read_bytes()[: 2 * 4096])

    error = run("tenant", "list").stderr

    assert error == (
        "Error: the store cannot be used: the file is damaged: restore the backup "
        "(SQLITE_CORRUPT); see [storage] url\n"
    )
    assert "the file is damaged: restore the backup" in run("check").stdout


def test_what_starts_but_is_hardly_meant_is_a_warning(run: Any) -> None:
    done = run("check", "--json", FHIRPUB_SERVER__HOST="0.0.0.0", FHIRPUB_SERVER_PORT="9000")

    warnings = [load["text"] for load in json.loads(done.stdout) if load["level"] == "warning"]
    assert done.returncode == 0
    assert [warning.partition(":")[0] for warning in warnings] == [
        "FHIRPUB_SERVER_PORT is ignored",
        "[server] base_url is not set",
    ]


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_metrics_on_all_addresses_with_a_service_for_a_proxy_are_a_warning(
    run: Any, host: str, *, warned: bool
) -> None:
    server = {"FHIRPUB_SERVER__HOST": host, "FHIRPUB_SERVER__BASE_URL": "http://lab"}

    done = run("check", **server, FHIRPUB_METRICS__HOST="0.0.0.0", FHIRPUB_METRICS__PORT="9464")

    assert done.returncode == 0
    assert ("warning  configuration  [metrics] host 0.0.0.0:" in done.stdout) == warned


FAULTY = {
    "sheets": "import no_such_module_xyz",
    "boards": "from fhirpub.plugin_api import hookimpl\n@hookimpl\ndef fhirpub_types(): ...",
    "notes": """
from fhirpub.plugin_api import ResourceType, hookimpl

@hookimpl
def fhirpub_resource_types():
    fields = {"parts": (), "create_statuses": frozenset({"on"})}
    fields["update_statuses"] = frozenset({"off"})
    schema = {"type": "objekt"}
    return [
        ResourceType(name="Basic", schemas={"Basic": schema}, **fields),
        ResourceType(name="Observation", summary=("notes",), **fields),
    ]
""",
}


def test_faulty_plugins_are_explained_each_by_its_name(
    run_program: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    for name, source in FAULTY.items():
        write_metadata(tmp_path, name, {name: f"faulty_{name}"})
        (tmp_path / f"faulty_{name}.py").write_text(source)
    enabled = ["diagnosticreport", *FAULTY]
    (tmp_path / "f.toml").write_text(f"[plugins]\nenabled = {json.dumps(enabled)}")
    path = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"

    done = run_program("check", "--config", "f.toml", "--json", PYTHONPATH=path)

    findings = [load for load in json.loads(done.stdout) if load["subject"] == "plugins"]
    assert (done.returncode, done.stderr) == (1, "")
    assert [
        (finding["level"], finding["text"].split(": ")[0].split(" (")[0]) for finding in findings
    ] == [
        ("ok", "diagnosticreport adds DiagnosticReport"),
        ("error", "plugin sheets"),
        ("error", "plugin boards"),
        ("error", "plugin notes"),
        ("error", "plugin notes"),
        ("error", "plugin notes"),
        ("error", "plugin notes"),
    ]
    assert "faulty_sheets.py, line 1" in findings[1]["text"]
    assert "did you mean fhirpub_resource_types?" in findings[2]["text"]
    assert "not a JSON Schema at type" in findings[3]["text"]


def test_a_check_leaves_the_values_that_are_searched_to_the_next_start(tmp_path: Path) -> None:
    """Events that a running service adds afterwards must be found by the next one as well."""
    zone = {"fhir": {"default_timezone": "America/Lima"}}
    with ServiceProcess(tmp_path) as before:
        lab = before.integrator()
        after = ServiceProcess(tmp_path, settings=zone)
        after.command("check")
        lab.register(register_body("R-1", effectiveDateTime="2026-03-02"))
    with after:
        same = Integrator(after, lab.tenant, lab.client_id, lab.client_secret)
        same.log_in()
        found = same.get("/fhir/r4/DiagnosticReport?date=sa2026-03-02T01:00:00Z")

    assert found.json["total"] == 1


@pytest.mark.parametrize(
    ("environment_name", "tenants", "entry", "words"),
    [
        ("production", 2, "10.1.2.0/24", "is open to all tenants (2), on every port: add"),
        ("production", 2, "10.1.2.3 port=8443", "is open to all tenants (2): add tenant=ID"),
        ("production", 2, "10.1.2.3 tenant={first}", ""),
        ("production", 1, "10.1.2.0/24", ""),
        ("sandbox", 2, "10.1.2.0/24", ""),
        ("sandbox", 2, "10.1.2.3 tenant={second} tenant={first}", ""),
        ("sandbox", 1, "10.1.2.3 tenant={none}", "no tenant, or disabled: {none}"),
        ("sandbox", 1, "10.1.2.3 tenant={first} tenant={gone}", "or disabled: {gone}"),
        ("production", 1, "10.1.2.0/24 port=1", ""),
    ],
)
def test_an_entry_of_more_tenants_than_one_or_of_none_is_a_warning(
    run: Any, environment_name: str, tenants: int, entry: str, words: str
) -> None:
    variables = {
        "FHIRPUB_AUTH__ENVIRONMENT": environment_name,
        "FHIRPUB_SERVER__BASE_URL": "https://fhir.lab",
        "FHIRPUB_AUTH__AUDIENCE": "https://fhir.lab/fhir",
        "FHIRPUB_AUTH__ENFORCE_SCOPES": "true",
        "FHIRPUB_FHIR__HASH_CHECK": "strict",
        "FHIRPUB_SERVER__TRUSTED_PROXIES": "127.0.0.1",
        "FHIRPUB_STORE_KEYS": base64.b64encode(bytes(32)).decode(),
    }

    def added(name: str) -> str:
        done = run("tenant", "add", name, "--json", **variables)
        tenant_id: str = json.loads(done.stdout)["id"]
        return tenant_id

    first, gone = added("Lab"), added("Gone")
    second = added("Clinic") if tenants == 2 else ""
    run("tenant", "disable", gone, **variables)
    none = "00000000-0000-4000-8000-000000000000"
    names = {"first": first, "second": second, "gone": gone, "none": none}
    entry = entry.format_map(names)

    done = run("check", "--json", FHIRPUB_WEBHOOKS__ALLOW_NETWORKS=entry, **variables)

    assert done.returncode == 0
    if words:
        (warning,) = warnings_of(done)
        assert warning.startswith(f"[webhooks] allow_networks: {entry}")
        assert words.format_map(names) in warning
    else:
        assert warnings_of(done) == []


OIDC = {
    "FHIRPUB_PLUGINS__ENABLED": "diagnosticreport,oidc",
    "FHIRPUB_OIDC__ISSUERS": "corp https://login.corp.example",
    "FHIRPUB_OIDC__AUDIENCES": "corp https://fhir.lab",
    "FHIRPUB_OIDC__TENANTS": "corp * 00000000-0000-4000-8000-000000000000",
    "FHIRPUB_OIDC__SCOPES": "corp system/*.rs",
}


def about_issuers(run: Any, **changes: str) -> list[tuple[str, str]]:
    done = run("check", "--json", **{**OIDC, **changes})
    found = [one for one in json.loads(done.stdout) if one["subject"] == "issuers"]
    return [(one["level"], one["text"]) for one in found]


def test_an_issuer_whose_tenant_is_unknown_is_a_warning(run: Any) -> None:
    assert about_issuers(run) == [
        ("ok", "corp (https://login.corp.example) acts for 1 tenants"),
        ("warning", f"corp: no tenant, or disabled: {OIDC['FHIRPUB_OIDC__TENANTS'][7:]}"),
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"FHIRPUB_OIDC__ISSUERS": "corp http://login.corp.example"}, "begin with https://"),
        ({"FHIRPUB_OIDC__AUDIENCES": ""}, "has an audience that is not a text"),
        ({"FHIRPUB_OIDC__TENANTS": ""}, "has no tenant"),
        ({name: "" for name in OIDC if "OIDC" in name}, "has no issuer"),
    ],
)
def test_what_an_issuer_lacks_is_an_error(run: Any, changes: dict[str, str], words: str) -> None:
    ((level, text),) = about_issuers(run, **changes)

    assert level == "error"
    assert words in text


def test_a_key_of_webhooks_that_all_can_read_is_a_warning(run: Any, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_bytes(base64.b64encode(bytes(range(32))))
    keys.chmod(0o644)

    done = run("check", "--json", FHIRPUB_WEBHOOKS__KEYS_FILE=str(keys))

    (warning,) = [load for load in json.loads(done.stdout) if load["level"] == "warning"]
    assert warning["text"] == f"{keys} can be read by others: chmod o-rwx"


# The encryption of what the store holds


KEYS = [base64.b64encode(bytes([number]) * 32).decode() for number in range(2)]


def findings_about_secrets(run: Any, **variables: str) -> list[tuple[str, str]]:
    found = json.loads(run("check", "--json", **variables).stdout)
    return [(one["level"], one["text"]) for one in found if one["subject"] == "secrets"]


async def in_clear(tmp_path: Path) -> None:
    config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/fhirpub-data/fhirpub.db"))
    async with open_with(config, SecretCipher()) as store:
        await store.put_tenant(Tenant.new("Lab", created=1))
        await store.put_signing_key(a_key("k"))


def test_salts_and_signing_keys_in_clear_are_a_warning(run: Any, tmp_path: Path) -> None:
    asyncio.run(in_clear(tmp_path))

    (finding,) = findings_about_secrets(run, FHIRPUB_STORE_KEYS=KEYS[0])

    words = "the salt of 1 tenant and 1 signing key in the store: in clear: run `fhirpub secrets"
    assert finding[0] == "warning"
    assert finding[1].startswith(words)


def test_a_database_without_a_key_is_a_warning(run: Any, mongodb_url: str) -> None:
    url = {"FHIRPUB_STORAGE__URL": mongodb_url}
    run("tenant", "add", "Lab", **url)

    found = findings_about_secrets(run, **url)

    assert [level for level, _text in found] == ["warning", "warning"]
    assert found[0][1].startswith("there is no key for the secrets in the store: put what")
    assert found[1][1] == "the salt of 1 tenant in the store: in clear"


def test_an_older_key_is_a_warning_and_a_missing_one_an_error(run: Any) -> None:
    run("tenant", "add", "Lab", FHIRPUB_STORE_KEYS=KEYS[0])
    name = SecretCipher([bytes(32)]).names[0]

    older = findings_about_secrets(run, FHIRPUB_STORE_KEYS=f"{KEYS[1]} {KEYS[0]}")
    missing = findings_about_secrets(run, FHIRPUB_STORE_KEYS=KEYS[1])
    gone = findings_about_secrets(run)

    advice = "run `fhirpub secrets reseal`"
    assert older == [("warning", f"the salt of 1 tenant under an older key {name}: {advice}")]
    lost = f"the salt of 1 tenant cannot be decrypted: the key {name} is not here; {FIND_KEY}"
    assert missing == [("error", lost)]
    assert [level for level, _text in gone] == ["error"]
    assert gone[0][1].startswith("the salt of 1 tenant and 1 signing key cannot be decrypted: ")


def test_keys_that_cannot_be_read_are_an_error_and_not_quoted(run: Any) -> None:
    (finding,) = findings_about_secrets(run, FHIRPUB_STORE_KEYS="secret-word")

    assert finding[0] == "error"
    assert finding[1].startswith("FHIRPUB_STORE_KEYS: each line must be a key")
    assert "secret-word" not in finding[1]


def test_in_production_a_key_next_to_the_store_is_a_warning(run: Any) -> None:
    run("tenant", "add", "Lab")

    production = findings_about_secrets(run, FHIRPUB_AUTH__ENVIRONMENT="production")
    sandbox = findings_about_secrets(run)

    assert [level for level, _text in sandbox] == ["ok"]
    assert "is next to the store" in production[0][1]


def test_both_names_of_the_file_at_once_are_an_error(run: Any) -> None:
    both = {"FHIRPUB_STORAGE__KEYS_FILE": "/a", "FHIRPUB_WEBHOOKS__KEYS_FILE": "/b"}

    assert "an older name of [storage] keys_file" in run("check", **both).stdout
