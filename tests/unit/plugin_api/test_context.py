"""Hooks read the settings of their own plugin."""

from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from fhirpub.plugin_api.context import PluginContext, setting


@dataclass(frozen=True, kw_only=True)
class Broker:
    """A group of settings."""

    url: str = setting("amqp://localhost", "URL of the broker.", secret=True)
    hosts: list[str] = setting([], "Hosts.")  # noqa: RUF009 - a field


@dataclass(frozen=True, kw_only=True)
class Other:
    """Another one."""


CONTEXT = PluginContext(
    base_url="https://x.example", environment="sandbox", groups={Broker: Broker(url="u")}
)


def test_the_settings_of_a_group_are_those_that_were_set() -> None:
    assert CONTEXT.settings(Broker).url == "u"


def test_settings_that_no_plugin_returned_are_named() -> None:
    with pytest.raises(LookupError, match="no enabled plugin returns Other from fhirpub_settings"):
        CONTEXT.settings(Other)


def test_a_setting_keeps_its_meaning_and_whether_it_is_secret() -> None:
    url, hosts = fields(Broker)

    assert (url.metadata["meaning"], hosts.metadata["meaning"]) == ("URL of the broker.", "Hosts.")
    assert (bool(url.metadata["secret"]), bool(hosts.metadata["secret"])) == (True, False)


def test_a_list_as_a_default_is_shared_by_no_two_groups() -> None:
    assert Broker().hosts is not Broker().hosts
