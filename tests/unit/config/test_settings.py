"""Settings are read from a file and the environment, and every mistake is named."""

from __future__ import annotations

import dataclasses
import re
import tomllib
import typing
from pathlib import Path

import pytest

from fhirpub.config.loader import load, misspelt_variables, reference, variable
from fhirpub.config.settings import Config, TypeConfig
from fhirpub.errors import ConfigurationError
from tests.unit.config.files import loaded, problems_of


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    assert loaded(tmp_path, "") == Config()


def test_without_a_file_the_one_in_the_working_directory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    without = load(environment={})
    (tmp_path / "fhirpub.toml").write_text("[server]\nport = 9\n")

    assert without == Config()
    assert load(environment={}).server.port == 9


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "fhirpub.toml"
    file.write_bytes(b"\xef\xbb\xbf[server]\r\nport = 9\r\n")

    assert load(file, environment={}).server.port == 9


def test_a_link_in_the_working_directory_that_leads_nowhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fhirpub.toml").symlink_to("not-mounted")

    with pytest.raises(ConfigurationError, match=r"fhirpub\.toml: cannot be read: No such file"):
        load(environment={})


@pytest.mark.parametrize("content", [b"[server", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "f.toml"
    file.write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"f\.toml: is not TOML"):
        load(file, environment={})


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        "[server]\nport = 9\nhost = 'a'\n",
        FHIRPUB_SERVER__PORT="10",
        FHIRPUB_PLUGINS__ENABLED="one, two,",
        FHIRPUB_AUTH__ENFORCE_SCOPES="TRUE",
        FHIRPUB_SERVER__DRAIN_SECONDS="2",
        FHIRPUB_CLIENT_ID="no setting",
        OTHER__PORT="no setting",
    )

    assert (config.server.port, config.server.host) == (10, "a")
    assert config.plugins.enabled == ["one", "two"]
    assert config.auth.enforce_scopes is True
    assert config.server.drain_seconds == 2.0


def test_an_enabled_plugin_has_a_group_of_its_own(tmp_path: Path) -> None:
    config = loaded(
        tmp_path, "[plugins]\nenabled = ['encounter']\n[encounter]\nstate_flow = 'clinical'"
    )

    assert config.of_type("Encounter").state_flow == "clinical"
    assert config.of_type("DiagnosticReport").state_flow == "open"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[encounter]\nstate_flow = 'open'",
            "webhooks, or the name of an enabled plugin",
        ),
        ("[diagnosticreport]\nstate_flow = 'x'", "must be one of open, clinical"),
        ("[sever]\nport = 1", "unknown group [sever]; did you mean server?"),
        ("[xxxxxxx]", "unknown group [xxxxxxx]; expected one of admin, audit, "),
        ("server = 1", "[server] must be a table"),
        ("port = 1", "port is in no group; put it below [server] or [metrics]"),
        ("prt = 1", "prt is in no group; every key belongs below a [group]"),
        ("[server]\nhost = ''", "[server] host must not be empty; use 0.0.0.0 for every"),
        ("[auth]\naudience = ''", "[auth] audience must not be empty"),
        ("[server]\nbase_url = 'https://'", "[server] base_url must start with http"),
        ("[server]\nbase_url = 'https://a b'", "name a host, and contain no blank, ? or #"),
        ("[server]\nbase_url = 'https://[a'", "[server] base_url must start with http"),
        ("[server]\nbase_url = 'https://例え.jp'", "no letters beyond ASCII"),
        ("[server]\nbase_url = 'https://a:65536'", "[server] base_url must start with http"),
        ("[admin]\nhost = ' '", "[admin] host must not be empty"),
        ("[admin]\nbase_url = 'admin.example.org'", "[admin] base_url must start with http"),
        ("[admin]\nport = 65536\ncallers = ['a=b']", "[admin] port must be at most 65535"),
        ("[admin]\nport = 8090", "[admin] port: no caller could authenticate"),
        ("[admin]\nbootstrap_key_hash = 'ABC'", "must be 64 hexadecimal digits, in lower case"),
        ("[admin]\ncallers = ['a']", "[admin] callers: 'a' must be NAME=FILE"),
        ("[admin]\ncallers = ['a=b', 'a=c']", "[admin] callers: a is named 2 times"),
        (
            "[admin]\ncallers = ['bootstrap=b']",
            "[admin] callers: bootstrap is the name",
        ),
        ("[admin]\ntoken_seconds = 0", "[admin] token_seconds must be above 0"),
        ("[admin]\nport = 8080\ncallers = ['a=b']", "[admin] port: must differ from that of [ser"),
        ("[auth]\ntoken_seconds = 0", "[auth] token_seconds must be above 0"),
        ("[storage]\ndeadline_seconds = 0", "[storage] deadline_seconds must be above 0"),
        ("[limits]\nbody_seconds = 0", "[limits] body_seconds must be above 0"),
        ("[limits]\nidle_seconds = 0", "[limits] idle_seconds must be above 0"),
        ("[server]\nprt = 1", "prt in [server]: unknown key; did you mean port?"),
        ("[server]\nport = '1'", "port in [server]: must be a whole number"),
        ("[server]\nport = true", "port in [server]: must be a whole number"),
        ("[server]\nport = 1.5", "port in [server]: must be a whole number"),
        ("[server]\nport = -1", "port in [server]: must not be negative"),
        ("[server]\nport = 65536", "[server] port must be at most 65535"),
        ("[server]\nhost = 1", "host in [server]: must be a string"),
        ("[server]\nworkers = 0", "[server] workers must be at least 1"),
        ("[metrics]\nport = 65536", "[metrics] port: the last worker would use 65536, above"),
        (
            "[server]\nworkers = 3\n[metrics]\nport = 65534",
            "[metrics] port: the last worker would use 65536, above 65535",
        ),
        ("[metrics]\nport = 8080", "[metrics] port: must differ from that of [server]"),
        (
            "[server]\nworkers = 3\n[metrics]\nport = 8078",
            "[metrics] port: must differ from that of [server]",
        ),
        ("[server]\ndrain_seconds = 'x'", "drain_seconds in [server]: must be a number"),
        ("[server]\ndrain_seconds = nan", "drain_seconds in [server]: must be a finite number"),
        (f"[server]\ndrain_seconds = {'9' * 400}", "drain_seconds in [server]: must be at most"),
        (f"[server]\nport = {'9' * 5000}", "is not TOML"),
        ("[webhooks]\nlease_seconds = 0.1", "[webhooks] lease_seconds must be at least 0.5"),
        ("[webhooks]\nbreaker_share = 1.1", "[webhooks] breaker_share must be at most 1"),
        ("[server]\ndrain_seconds = inf", "drain_seconds in [server]: must be a finite number"),
        ("[server]\nbase_url = 'x'", "[server] base_url must start with http"),
        ("[auth]\nenforce_scopes = 1", "enforce_scopes in [auth]: must be true or false"),
        ("[auth]\nalgorithm = 'none'", "algorithm in [auth]: must be one of ES256, RS256"),
        ("[plugins]\nenabled = 'x'", "enabled in [plugins]: must be a list of strings"),
        ("[plugins]\nenabled = [1]", "enabled in [plugins]: must be a list of strings"),
        ("[fhir]\npage_size = 0", "[fhir] page_size must be between 1 and page_size_max"),
        ("[fhir]\npage_size = 101", "[fhir] page_size must be between 1 and page_size_max"),
        (
            "[terminology]\nassume = ['http://loinc.org', 'LOINC']",
            "[terminology] assume: 'LOINC' is not an absolute URI",
        ),
        (
            "[fhir]\norganization_namespaces = ['a.example/orgs']",
            "'a.example/orgs' is not an absolute",
        ),
        ("[fhir]\norganization_namespaces = ['']", "'' is not an absolute URI"),
        (
            "[patients]\nperson_systems = ['MRN']",
            "[patients] person_systems: 'MRN' is not an absolute URI",
        ),
        ("[limits]\ndrain_bytes = 1", "[limits] drain_bytes must be at least request_bytes"),
        ("[webhooks]\nports = ['443']", "ports in [webhooks]: must be a list of whole numbers"),
        ("[webhooks]\nports = [0]", "[webhooks] ports must be between 1 and 65535"),
        ("[webhooks]\nretry_seconds = [true]", "must be a list of numbers"),
        ("[webhooks]\nretry_seconds = []", "[webhooks] retry_seconds must not be empty"),
        ("[webhooks]\nservice_name = 'a b'", "[webhooks] service_name must consist of letters"),
        ("[webhooks]\nconnect_seconds = 0", "[webhooks] connect_seconds must be above 0"),
        ("[webhooks]\nconnect_seconds = 16", "[webhooks] connect_seconds must be above 0"),
        ("[webhooks]\nallow_networks = ['x']", "x is neither an address nor a network"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    (problem,) = problems_of(tmp_path, text)

    assert words in problem


@pytest.mark.parametrize(
    ("variable_name", "text", "words"),
    [
        ("FHIRPUB_SEVER__PORT", "1", "unknown group sever; did you mean server?"),
        ("FHIRPUB_SERVER__PRT", "1", "unknown key; did you mean port?"),
        ("FHIRPUB_SERVER__PORT", "one", "must be a whole number"),
        ("FHIRPUB_AUTH__ENFORCE_SCOPES", "maybe", "must be true or false"),
        ("FHIRPUB_LOGS__LEVEL", "loud", "must be one of debug"),
    ],
)
def test_a_mistake_in_a_variable_names_the_variable(
    tmp_path: Path, variable_name: str, text: str, words: str
) -> None:
    (problem,) = problems_of(tmp_path, "", **{variable_name: text})

    assert problem.startswith(f"{variable_name}: ")
    assert words in problem


def test_a_variable_with_one_underscore_too_few_is_reported() -> None:
    found = misspelt_variables(
        {"FHIRPUB_SERVER_PORT": "9", "FHIRPUB_WEBHOOK_KEYS": "", "SERVER_PORT": ""}
    )

    assert found == [
        "FHIRPUB_SERVER_PORT is ignored: the setting is FHIRPUB_SERVER__PORT, with two underscores"
    ]


def test_lists_of_numbers_are_read_from_a_file_and_from_a_variable(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        "[webhooks]\nretry_seconds = [1, 2.5]\n",
        FHIRPUB_WEBHOOKS__PORTS="443, 9443",
    )

    assert config.webhooks.retry_seconds == [1, 2.5]
    assert config.webhooks.ports == [443, 9443]


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = "[server]\nprt = 1\nhost = 2\n[sever]\n"

    assert len(problems_of(tmp_path, text, FHIRPUB_LOGS__LEVEL="loud")) == 4


def test_a_problem_never_repeats_a_value_that_may_be_secret(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, "[storage]\nurl = ['pass-word']\n")

    assert "pass-word" not in problem


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", "http://127.0.0.1:8080"),
        ("[server]\nhost = '::1'\nport = 1", "http://[::1]:1"),
        ("[server]\nbase_url = 'https://fhir.example.org/'", "https://fhir.example.org"),
    ],
)
def test_the_base_url_follows_from_the_server_unless_given(
    tmp_path: Path, text: str, address: str
) -> None:
    config = loaded(tmp_path, text)

    assert config.base_url == address
    assert config.issuer == address


def test_a_given_issuer_is_kept(tmp_path: Path) -> None:
    assert loaded(tmp_path, "[auth]\nissuer = 'me'").issuer == "me"


def test_a_variable_that_is_no_setting_is_read_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FHIRPUB_CLIENT_ID", "an-id")
    monkeypatch.delenv("FHIRPUB_CLIENT_SECRET", raising=False)

    assert variable("FHIRPUB_CLIENT_ID") == "an-id"
    assert variable("FHIRPUB_CLIENT_SECRET") == ""


def test_the_reference_changes_nothing_as_it_stands(tmp_path: Path) -> None:
    assert loaded(tmp_path, reference()) == Config()


def test_the_reference_shows_every_key_with_its_default(tmp_path: Path) -> None:
    uncommented = re.sub(r"^#(?=[a-z_]+ = )", "", reference(), flags=re.MULTILINE)

    tables = tomllib.loads(uncommented)

    of_types = {"diagnosticreport": TypeConfig()}
    shown = dataclasses.replace(Config(), by_type=of_types)
    ours = {table: getattr(shown, table) for table in tables if hasattr(shown, table)}
    groups = {name: dataclasses.asdict(our) for name, our in (ours | of_types).items()}
    assert tables == groups
    assert loaded(tmp_path, uncommented) == shown


def test_the_reference_fits_the_width_of_the_code() -> None:
    assert max(map(len, reference().splitlines())) <= 99


def test_every_group_and_key_has_a_meaning() -> None:
    groups = typing.get_type_hints(Config)
    del groups["by_type"], groups["by_plugin"]
    for group in (*groups.values(), TypeConfig):
        assert group.__doc__
        assert all(member.metadata["meaning"] for member in dataclasses.fields(group))
