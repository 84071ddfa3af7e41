"""Built-in groups, the options of types and the settings of plugins make one configuration."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest

from fhirpub.config.groups import create_config, groups_of, has_own_settings, no_groups
from fhirpub.config.reader import setting
from fhirpub.config.settings import Config, TypeConfig
from fhirpub.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Where events go."""

    topic: str = setting("events", "The topic.")
    size: int = setting(1, "Its size.")

    def __post_init__(self) -> None:
        if self.size > 9:
            raise ValueError("size must be at most 9")


BUILT_IN = frozenset(groups_of([]))


def values(**others: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {} for name in BUILT_IN} | others


def test_without_values_everything_is_as_by_default() -> None:
    assert create_config(values(), {}) == Config()


def test_the_values_of_a_built_in_group_become_its_settings() -> None:
    assert create_config(values(server={"port": 7}), {}).server.port == 7


def test_options_of_a_type_are_those_of_the_type_alone() -> None:
    found = create_config(values(encounter={"state_flow": "clinical"}), {})

    assert found.by_type == {"encounter": TypeConfig(state_flow="clinical")}
    assert found.by_plugin == {}


def test_settings_of_a_plugin_are_those_of_the_plugin_alone() -> None:
    found = create_config(values(stream={"topic": "x"}), {"stream": Stream})

    assert found.by_type == {}
    assert found.by_plugin == {"stream": Stream(topic="x")}


def test_a_plugin_may_have_options_of_its_type_and_settings_in_one_group() -> None:
    found = create_config(
        values(stream={"topic": "x", "updatable": ["issued"]}), {"stream": Stream}
    )

    assert found.by_type == {"stream": TypeConfig(updatable=["issued"])}
    assert found.by_plugin == {"stream": Stream(topic="x")}


def test_a_plugin_of_which_nothing_is_set_has_no_settings() -> None:
    found = create_config(values(stream={}), {"stream": Stream})

    assert (found.by_type, found.by_plugin) == ({}, {})


def test_all_that_plugins_refuse_is_named_in_order() -> None:
    groups = {"b": Stream, "a": Stream}

    with pytest.raises(ConfigurationError) as refusal:
        create_config(values(b={"size": 10}, a={"size": 11}), groups)

    assert str(refusal.value) == "[a] size must be at most 9\n[b] size must be at most 9"


@pytest.mark.parametrize(
    ("tables", "variables", "has_some"),
    [
        ({}, {}, False),
        ({"stream": {}}, {}, False),
        ({"stream": {"state_flow": "open", "updatable": []}}, {}, False),
        ({"stream": {"topic": "x"}}, {}, True),
        ({"stream": {"state_flow": "open", "topic": "x"}}, {}, True),
        ({"stream": 1}, {}, False),
        ({"other": {"topic": "x"}}, {}, False),
        ({}, {"FHIRPUB_STREAM__TOPIC": "x"}, True),
        ({}, {"FHIRPUB_STREAM__STATE_FLOW": "x"}, False),
        ({}, {"FHIRPUB_OTHER__TOPIC": "x"}, False),
        ({"stream": {"state_flow": "open"}}, {"FHIRPUB_STREAM__TOPIC": "x"}, True),
        ({"stream": {"topic": "x"}}, {"FHIRPUB_STREAM__STATE_FLOW": "x"}, True),
    ],
)
def test_a_plugin_has_settings_if_a_key_is_no_option_of_a_type(
    tables: dict[str, Any], variables: dict[str, str], *, has_some: bool
) -> None:
    assert has_own_settings("stream", tables, variables) is has_some


def test_an_enabled_type_has_the_options_of_a_type() -> None:
    groups = groups_of(["encounter"])

    assert groups["encounter"] is TypeConfig
    assert groups.keys() == {*BUILT_IN, "encounter"}


def test_a_plugin_with_the_name_of_a_group_does_not_replace_it() -> None:
    assert groups_of(["server"])["server"] is groups_of([])["server"]


def test_a_plugin_with_settings_has_them_after_the_options_of_a_type() -> None:
    group = groups_of(["stream"], {"stream": Stream})["stream"]

    assert [field.name for field in dataclasses.fields(group)] == [
        *("state_flow", "updatable", "topic", "size")
    ]
    assert (group.__doc__, group.__name__) == ("Where events go.", "stream")
    assert (group().topic, group().state_flow) == ("events", "open")


def test_a_group_with_settings_of_a_plugin_is_given_by_name_and_stays_as_it_is() -> None:
    group = groups_of(["stream"], {"stream": Stream})["stream"]

    with pytest.raises(TypeError):
        group("open")
    with pytest.raises(dataclasses.FrozenInstanceError):
        group().topic = "x"


def test_settings_of_a_plugin_that_is_not_enabled_make_no_group() -> None:
    assert "stream" not in groups_of([], {"stream": Stream})


def test_no_plugin_has_settings_unless_plugins_are_asked() -> None:
    assert no_groups(["stream"]) == {}
