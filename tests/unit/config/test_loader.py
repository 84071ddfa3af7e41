"""The loader asks plugins only when it must, and names what settings contradict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.loader import (
    load,
    misspelt_variables,
    port_contradictions,
    reference,
)
from fhirpub.config.monitoring import MetricsConfig
from fhirpub.config.reader import setting
from fhirpub.config.settings import ServerConfig
from fhirpub.errors import ConfigurationError
from tests.unit.config.files import loaded, problems_of


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Where events go."""

    topic: str = setting("events", "The topic.")


class Groups:
    """The settings of one plugin, and of which plugins they were asked."""

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def __call__(self, names: Sequence[str]) -> Mapping[str, type[Any]]:
        self.asked.append(names)
        return {name: Stream for name in names if name == "stream"}


def test_the_environment_of_the_process_is_read_unless_another_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FHIRPUB_SERVER__PORT", "7")

    assert load().server.port == 7
    assert load(environment={}).server.port == 8080


def test_the_file_in_the_working_directory_is_read_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fhirpub.toml").write_text("[server]\nport = 9\n")

    assert load(environment={}).server.port == 9


def test_a_dangling_link_is_no_absent_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fhirpub.toml").symlink_to("gone.toml")

    with pytest.raises(ConfigurationError, match=r"fhirpub\.toml: cannot be read"):
        load(environment={})


@pytest.mark.parametrize("size", [1, 1000])
def test_a_page_may_have_one_entry_and_as_many_as_the_largest(tmp_path: Path, size: int) -> None:
    text = f"[fhir]\npage_size = {size}\npage_size_max = {size}\n"

    assert loaded(tmp_path, text).fhir.page_size == size


def test_only_enabled_plugins_of_which_something_is_set_are_asked(tmp_path: Path) -> None:
    file, groups = tmp_path / "f.toml", Groups()
    file.write_text(
        "[plugins]\nenabled = ['encounter', 'stream']\n[encounter]\nstate_flow = 'open'\n"
        "[stream]\ntopic = 'x'\n"
    )

    config = load(file, environment={}, plugin_groups=groups)

    assert groups.asked == [["stream"]]
    assert config.by_plugin == {"stream": Stream(topic="x")}


def test_a_plugin_that_a_variable_enables_is_asked_about_its_variable(tmp_path: Path) -> None:
    file, groups = tmp_path / "f.toml", Groups()
    file.write_text("[plugins]\nenabled = ['encounter']\n")
    variables = {"FHIRPUB_PLUGINS__ENABLED": "stream", "FHIRPUB_STREAM__TOPIC": "y"}

    config = load(file, environment=variables, plugin_groups=groups)

    assert groups.asked == [["stream"]]
    assert config.by_plugin == {"stream": Stream(topic="y")}


def test_mistakes_of_types_hide_contradictions_that_may_follow_from_them(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "[server]\nport = 'x'\nworkers = 0\n") == [
        f"{tmp_path}/fhirpub.toml: port in [server]: must be a whole number"
    ]


def test_a_variable_mends_a_contradiction_of_the_file(tmp_path: Path) -> None:
    text = "[server]\nworkers = 0\n"

    assert loaded(tmp_path, text, FHIRPUB_SERVER__WORKERS="1").server.workers == 1


def test_contradictions_of_many_groups_are_reported_in_one_go(tmp_path: Path) -> None:
    text = (
        "[server]\nworkers = 0\nport = 65536\nhost = ' '\nbase_url = 'x'\n"
        "trusted_proxies = ['y']\n"
        "[limits]\ndrain_bytes = 1\n[auth]\naudience = ''\n"
        "[retention]\npolicies = ['z']\n[fhir]\npage_size = 0\n"
        "[tracing]\nsample_ratio = 2.0\n[webhooks]\nretry_seconds = []\n"
        "[admin]\nport = 65536\n[console]\nport = 65537\n"
    )

    found = problems_of(tmp_path, text)

    assert [line[:40].split(" must")[0] for line in found] == [
        "[limits] drain_bytes",
        "[server] workers",
        "[server] port",
        "[server] trusted_proxies: y is neither a",
        "[server] host",
        "[auth] audience",
        "[server] base_url",
        "[retention] policies: 'z'",
        "[fhir] page_size",
        "[admin] port",
        "[admin] port: no caller could authentica",
        "[console] port",
        "[tracing] sample_ratio",
        "[webhooks] retry_seconds",
    ]


@pytest.mark.parametrize("name", ["A", "X-" + "c" * 62])
def test_the_header_of_a_certificate_may_have_64_characters(tmp_path: Path, name: str) -> None:
    text = f"[server]\ntrusted_proxies = ['::1']\ncertificate_header = '{name}'\n"

    assert loaded(tmp_path, text).server.certificate_header == name


@pytest.mark.parametrize("name", ["X_C", "X:C", "c" * 65])
def test_another_text_is_no_name_of_a_header(tmp_path: Path, name: str) -> None:
    text = f"[server]\ntrusted_proxies = ['::1']\ncertificate_header = '{name}'\n"

    assert problems_of(tmp_path, text) == [
        "[server] certificate_header must be the name of a header, such as X-Client-Cert"
    ]


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "https://a.example:443/b/c~d;e=f,g",
        "https://[::1]:8080",
        "https://xn--r8jz45g.jp",
    ],
)
def test_links_may_begin_with_a_url_of_plain_characters(tmp_path: Path, url: str) -> None:
    assert loaded(tmp_path, f"[server]\nbase_url = '{url}'\n").base_url == url


@pytest.mark.parametrize(
    "url", ["ftp://a", "https:///a", "https://:80", "https://a/#b", "https://a?b", "HTTPS//a"]
)
def test_links_begin_with_no_other_text(tmp_path: Path, url: str) -> None:
    (problem,) = problems_of(tmp_path, f"[server]\nbase_url = '{url}'\n")

    assert problem == (
        "[server] base_url must start with http:// or https://, name a host, and contain no "
        "blank, ? or #, and no letters beyond ASCII: write such a host as xn--…"
    )


def test_a_collector_may_be_named_by_a_url(tmp_path: Path) -> None:
    text = "[tracing]\nendpoint = 'http://127.0.0.1:4318'\n"

    assert loaded(tmp_path, text).tracing.endpoint == "http://127.0.0.1:4318"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("[fhir]\norganization_namespaces = ['a']", "[fhir] organization_namespaces: 'a' is not"),
        ("[patients]\nperson_systems = ['a']", "[patients] person_systems: 'a' is not an abso"),
        ("[patients]\nperson_systems = ['urn:']", "[patients] person_systems: 'urn:' is not an"),
        ("[patients]\nperson_systems = ['urn:a b']", "[patients] person_systems: 'urn:a b' is"),
        ("[terminology]\nassume = ['a']", "[terminology] assume: 'a' is not an absolute URI"),
        ("[server]\ncertificate_header = 'A'", "[server] certificate_header needs trusted_pr"),
        ("[auth]\nassertion_token_seconds = 0", "[auth] assertion_token_seconds must be above 0"),
        ("[limits]\nrequest_bytes = 0", "[limits] request_bytes must be above 0"),
        ("[auth]\nsecret_days = 36501", "[auth] secret_days must be at most 36500"),
        ("[auth]\ntoken_seconds = 3153600001", "[auth] token_seconds must be at most 3153600000"),
        ("[tracing]\nendpoint = 'a'", "[tracing] endpoint must start with http:// or https://"),
    ],
)
def test_a_contradiction_is_named(tmp_path: Path, text: str, start: str) -> None:
    (problem,) = problems_of(tmp_path, text)

    assert problem.startswith(start)


@pytest.mark.parametrize("name", ["none.toml", "fhirpub.toml"])
def test_a_file_that_is_named_must_exist(tmp_path: Path, name: str) -> None:
    message = f"{re.escape(name)}: cannot be read: No such file"
    with pytest.raises(ConfigurationError, match=message):
        load(tmp_path / name, environment={})


def test_a_ratio_below_zero_is_refused(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "[tracing]\nsample_ratio = -0.1\n") == [
        f"{tmp_path}/fhirpub.toml: sample_ratio in [tracing]: must not be negative"
    ]


@pytest.mark.parametrize("of", ["sandbox", "production"])
def test_plugins_in_production_serve_in_each_environment(tmp_path: Path, of: str) -> None:
    assert loaded(tmp_path, f"[auth]\nenvironment = '{of}'\n").auth.environment == of


def test_a_file_may_begin_with_the_mark_of_its_encoding(tmp_path: Path) -> None:
    assert loaded(tmp_path, "\ufeff[server]\nport = 81\n").server.port == 81


PORTS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any], list[str]]] = [
    ({}, {}, {}, {}, []),
    ({"workers": 0}, {"port": 65_535}, {}, {}, []),
    ({"port": 1, "workers": 2}, {"port": 2}, {"port": 4}, {"port": 5}, []),
    ({"port": 4, "workers": 2}, {"port": 2}, {"port": 5}, {"port": 6}, []),
    ({"port": 3, "workers": 2}, {"port": 2}, {}, {}, ["metrics server"]),
    ({"port": 2}, {"port": 2}, {}, {}, ["metrics server"]),
    ({"port": 0}, {}, {"port": 0}, {}, []),
    ({"port": 9}, {"port": 2}, {"port": 2}, {}, ["admin metrics"]),
    ({"port": 9, "workers": 2}, {"port": 2}, {"port": 3}, {}, ["admin metrics"]),
    ({"port": 9, "workers": 2}, {"port": 2}, {}, {"port": 3}, ["console metrics"]),
    ({"port": 9}, {"port": 2, "host": "b"}, {"port": 2}, {"port": 3}, []),
    ({"port": 9}, {"port": 2, "host": "b"}, {"port": 3}, {"port": 2}, []),
    ({"port": 9}, {"port": 2, "host": "b"}, {"port": 2, "host": "b"}, {}, ["admin metrics"]),
    ({"port": 9}, {"port": 2, "host": "b"}, {}, {"port": 2, "host": "b"}, ["console metrics"]),
    ({"port": 9, "workers": 4}, {}, {"port": 2}, {"port": 3}, []),
    ({"port": 9, "host": "b"}, {}, {"port": 9}, {}, []),
    ({"port": 9}, {}, {"port": 9}, {}, ["admin server"]),
    ({"port": 9}, {}, {}, {"port": 9}, ["console server"]),
    ({"port": 8}, {}, {"port": 9}, {"port": 9}, ["console admin"]),
    ({"port": 8}, {}, {"port": 9}, {"port": 9, "host": "b"}, []),
]


@pytest.mark.parametrize(("server", "metrics", "admin", "console", "found"), PORTS)
def test_two_parts_of_the_service_do_not_share_a_port(
    server: dict[str, Any],
    metrics: dict[str, Any],
    admin: dict[str, Any],
    console: dict[str, Any],
    found: list[str],
) -> None:
    problems = port_contradictions(
        ServerConfig(**server),
        MetricsConfig(**metrics),
        AdminConfig(**admin),
        ConsoleConfig(**console),
    )

    wanted = [pair.split() for pair in found]
    starts = [f"[{one}] port: must differ from that of [{other}]" for one, other in wanted]
    assert [line.partition(";")[0] for line in problems] == starts


def test_variables_of_plugins_by_default_are_looked_at_for_their_underscores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FHIRPUB_DIAGNOSTICREPORT_STATE_FLOW", "open")

    assert misspelt_variables() == [
        (
            "FHIRPUB_DIAGNOSTICREPORT_STATE_FLOW is ignored: the setting is "
            "FHIRPUB_DIAGNOSTICREPORT__STATE_FLOW, with two underscores"
        )
    ]


def test_a_variable_that_is_spelt_right_is_no_mistake() -> None:
    assert misspelt_variables({"FHIRPUB_SERVER__PORT": "1"}) == []


def test_the_reference_has_the_groups_of_the_plugins_that_are_named() -> None:
    text = reference(["stream"], {"stream": Stream})

    assert "[stream]\n" in text
    assert '# The topic.\n#topic = "events"\n' in text
    assert "[diagnosticreport]" not in text
    assert text.startswith("# Every setting of fhirpub")
    assert text.endswith("\n")


def test_the_reference_of_no_plugin_has_the_built_in_groups_alone() -> None:
    assert "[diagnosticreport]" not in reference([])


@pytest.mark.parametrize("group", ["server", "admin", "console"])
@pytest.mark.parametrize("host", ["", " "])
def test_no_part_of_the_service_listens_on_an_empty_host(
    tmp_path: Path, group: str, host: str
) -> None:
    assert problems_of(tmp_path, f"[{group}]\nhost = '{host}'\n") == [
        f"[{group}] host must not be empty; use 0.0.0.0 for every address of the machine"
    ]


@pytest.mark.parametrize("group", ["server", "admin", "console"])
def test_each_url_by_which_a_part_is_reached_is_one(tmp_path: Path, group: str) -> None:
    (problem,) = problems_of(tmp_path, f"[{group}]\nbase_url = 'fhir.example'\n")

    assert problem.startswith(f"[{group}] base_url must start with http:// or https://")


def test_all_that_is_wrong_with_proxies_and_their_header_is_named(tmp_path: Path) -> None:
    first = problems_of(tmp_path, "[server]\ncertificate_header = 'X C'\n")
    second = problems_of(
        tmp_path, "[server]\ncertificate_header = 'X C'\ntrusted_proxies = ['x']\n"
    )

    assert [line.partition(" must ")[0].partition(": it ")[0] for line in first] == [
        "[server] certificate_header",
        "[server] certificate_header needs trusted_proxies",
    ]
    assert [line.partition(" must ")[0] for line in second] == [
        "[server] trusted_proxies: x is neither an address nor a network",
        "[server] certificate_header",
    ]
