"""Plugins are found, checked and loaded; problems are reported in a sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, PluginsConfig, StorageConfig
from fhirpub.errors import ConfigurationError, PluginError
from fhirpub.plugin_host.hooks import hooks_of
from fhirpub.plugin_host.loader import load, load_key_provider
from fhirpub.plugin_host.sources import PluginSource, available
from fhirpub.tenant import Tenant
from tests.unit.plugin_host.installing import MODULE, Install, declaring, words_of


def test_an_installed_plugin_is_available_with_its_home(install: Install) -> None:
    module = install("flags", declaring())

    found = available()

    assert PluginSource("flags", module, "dist-flags", "1.2", api=1) in found


def test_enabled_plugins_give_their_types_in_order(install: Install) -> None:
    install("flags", declaring())
    install("goals", declaring().replace("Flag", "Goal"))

    types = load(["goals", "flags"])

    assert list(types) == ["Goal", "Flag"]
    assert types["Flag"].entry_name == "flag"


def test_a_plugin_that_is_not_enabled_is_not_even_imported(install: Install) -> None:
    install("flags", declaring())
    module = install("broken", "raise RuntimeError('imported')")

    load(["flags"])

    assert module not in sys.modules


def test_loading_twice_gives_the_same_types(install: Install) -> None:
    install("flags", declaring())

    assert load(["flags"]) == load(["flags"])


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("flagz", "there is no plugin flagz; did you mean flags?"),
        ("zzzzzzz", "there is no plugin zzzzzzz; installed are "),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    install: Install, wanted: str, words: str
) -> None:
    install("flags", declaring())

    with pytest.raises(PluginError) as refusal:
        load([wanted])

    assert words in str(refusal.value)


def test_a_name_given_twice_is_refused(install: Install) -> None:
    install("flags", declaring())

    with pytest.raises(PluginError, match="flags is named twice"):
        load(["flags", "flags"])


def test_two_packages_with_one_plugin_name_are_refused(install: Install) -> None:
    install("flags", declaring(), distribution="one")
    install("flags", declaring(), distribution="two")

    with pytest.raises(PluginError, match="two packages use this name"):
        load(["flags"])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import no_such_module_xyz", "cannot be imported: ModuleNotFoundError: No module named"),
        ("raise ValueError('a\\nb')", "cannot be imported: ValueError: a b"),
        ("def broken(:", "cannot be imported: SyntaxError"),
        ("", "has no hook fhirpub_resource_types"),
        (
            MODULE.replace("fhirpub_resource_types", "fhirpub_resource_typs") % "",
            "fhirpub_resource_typs is not a hook; did you mean fhirpub_resource_types?",
        ),
        (MODULE.replace("types()", "types(config)") % "", "'config'"),
        (MODULE % "1 / 0", "fhirpub_resource_types failed: ZeroDivisionError: division by zero"),
        (MODULE % "'Flag'", "must return a list of ResourceType, not str"),
        ((MODULE % "").replace("[]", "'Flag'"), "must return a list of ResourceType, not str"),
        ((MODULE % "").replace("[]", "7"), "must return a list of ResourceType, not int"),
        (
            declaring().replace("[ResourceType(", "ResourceType(").replace(")]", ")"),
            "must return a list of ResourceType, not ResourceType",
        ),
    ],
)
def test_a_plugin_that_cannot_be_used_is_reported_in_one_line(
    install: Install, source: str, words: str
) -> None:
    install("flags", source)

    with pytest.raises(PluginError) as refusal:
        load(["flags"])

    assert words in str(refusal.value)
    assert "flags" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_two_plugins_with_one_type_are_refused(install: Install) -> None:
    install("flags", declaring())
    install("banners", declaring())

    with pytest.raises(PluginError, match="plugin banners: Flag is already added by plugin flags"):
        load(["flags", "banners"])


def test_a_part_that_another_plugin_registers_is_refused(install: Install) -> None:
    install("flags", declaring())
    install("people", declaring().replace('"Flag"', '"Patient"').replace('"patient"', '"owner"'))

    with pytest.raises(PluginError, match="a type is one or the other"):
        load(["flags", "people"])


def test_everything_wrong_with_all_plugins_is_reported_at_once_each_with_its_name(
    install: Install,
) -> None:
    install("flags", declaring("attachments_required=True,"))
    install("goals", "import no_such_module_xyz")
    install("lists", (MODULE % "").replace("resource_types", "resource_typs"))

    lines = words_of(["flags", "nothing-such", "goals", "lists", "flags"])

    assert [name.split(" (")[0].split(": ")[0] for name in lines] == [
        "[plugins] enabled",
        "plugin flags",
        "[plugins] enabled",
        "plugin goals",
        "plugin lists",
    ]


def test_every_misspelt_hook_is_reported(install: Install) -> None:
    more = "\n@hookimpl\ndef fhirpub_routes():\n    return []\n"
    install("flags", (MODULE % "").replace("resource_types", "resource_typs") + more)

    lines = words_of(["flags"])

    assert [" is not a hook" in name for name in lines] == [True, True]


def test_a_hook_without_its_marker_is_reported(install: Install) -> None:
    install("flags", (MODULE % "").replace("@hookimpl", ""))

    lines = words_of(["flags"])

    assert "fhirpub_resource_types is not marked with @hookimpl" in lines[0]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("x = 1\nraise ValueError", "py, line 2)"),
        ("x = 1\n\ndef broken(:", "SyntaxError: invalid syntax (in trial_dist_flags.py, line 3)"),
        (MODULE % "1 / 0", "py, line 6)"),
        ("import json\njson.loads('{')", "py, line 2)"),
        ("raise SystemExit(3)", "py, line 1)"),
    ],
)
def test_the_place_in_the_plugin_is_reported(install: Install, source: str, place: str) -> None:
    install("flags", source)

    lines = words_of(["flags"])

    assert lines[0].endswith(place)


@pytest.mark.parametrize("group", ["fhirpub.plugins.v3", "fhirpub.plugins.v10"])
def test_a_plugin_for_another_version_is_refused_without_importing_it(
    install: Install, group: str
) -> None:
    module = install("flags", "raise RuntimeError('imported')", group=group)

    lines = words_of(["flags"])

    version = group.rpartition("v")[2]
    assert len(lines) == 1
    assert lines[0].startswith(f"plugin flags ({module} of dist-flags 1.2): was made for version")
    assert f"version {version} of the plugin API, and this service has version 2" in lines[0]
    assert module not in sys.modules


def test_a_plugin_may_be_made_for_two_versions(install: Install) -> None:
    install("flags", declaring())
    install("flags", "raise RuntimeError", distribution="second", group="fhirpub.plugins.v3")

    assert list(load(["flags"])) == ["Flag"]


def test_a_plugin_for_another_version_is_not_available(install: Install) -> None:
    install("flags", declaring(), group="fhirpub.plugins.v3")

    assert "flags" not in {plugin_source.name for plugin_source in available()}


PROVIDER = """
from fhirpub.plugin_api import KeyProvider, hookimpl

@hookimpl
def fhirpub_key_provider():
    %s
    return KeyProvider(name=%r, wrap=lambda key: key[::-1], unwrap=lambda wrapped: wrapped[::-1])
"""


def test_a_plugin_may_wrap_keys_and_add_no_type(install: Install) -> None:
    install("kms", PROVIDER % ("", "vault"))
    install("flags", declaring())

    provider = load_key_provider(["flags", "kms"])

    assert list(load(["flags", "kms"])) == ["Flag"]
    assert provider is not None
    assert provider.name == "vault"
    assert provider.unwrap(provider.wrap(b"key")) == b"key"


def test_the_hooks_of_a_plugin_are_known_whether_it_is_enabled_or_not(install: Install) -> None:
    install("kms", PROVIDER % ("", "vault"))
    install("flags", declaring())

    found = {source.name: hooks_of(source) for source in available()}

    assert found["kms"] == ("fhirpub_key_provider",)
    assert found["flags"] == ("fhirpub_resource_types",)


async def test_a_new_store_gets_a_key_that_the_plugin_has_wrapped(
    install: Install, tmp_path: Path
) -> None:
    install("kms", PROVIDER % ("", "vault"))
    storage = StorageConfig(url=f"sqlite:///{tmp_path}/f.db")
    config = Config(storage=storage, plugins=PluginsConfig(enabled=["kms"]))
    tenant = Tenant.new("Lab", created=1)

    async with open_store(config) as store:
        await store.put_tenant(tenant)
    async with open_store(config) as again:
        assert await again.tenants() == [tenant]

    assert (tmp_path / "f.webhook-keys").read_text().startswith("vault:")
    with pytest.raises(ConfigurationError, match=r"add the plugin to \[plugins\] enabled"):
        async with open_store(Config(storage=storage)):
            pass


def test_most_plugins_wrap_no_keys(install: Install) -> None:
    install("flags", declaring())

    assert load_key_provider(["flags"]) is None


def test_two_plugins_that_wrap_keys_are_refused(install: Install) -> None:
    install("one", PROVIDER % ("", "vault"))
    install("two", PROVIDER % ("", "kms"))

    with pytest.raises(PluginError, match="one and two have fhirpub_key_provider: enable one"):
        load_key_provider(["one", "two"])


@pytest.mark.parametrize(
    ("line", "name", "words"),
    [
        ("", "Vault 1", "must return a KeyProvider whose name is of lower-case letters"),
        ("", "vault:1", "must return a KeyProvider whose name is of lower-case letters"),
        ("return 7", "vault", "must return a KeyProvider"),
        ("1 / 0", "vault", "fhirpub_key_provider failed: ZeroDivisionError"),
    ],
)
def test_a_key_provider_that_cannot_be_used_is_reported_in_one_line(
    install: Install, line: str, name: str, words: str
) -> None:
    install("kms", PROVIDER % (line, name))

    with pytest.raises(PluginError) as refusal:
        load_key_provider(["kms"])

    assert words in str(refusal.value)
