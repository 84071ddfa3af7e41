"""Which of the installed plugins of a name is loaded, and why none is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fhirpub.errors import PluginError
from fhirpub.plugin_host.sources import PluginSource, available, installed, source_of
from tests.plugin_examples import write_metadata
from tests.unit.plugin_host.installing import Install, declaring

FLAGS = PluginSource("flags", "lab_flags", "lab-flags", "1.2", api=1)


def made_for(
    api: int, *, module: str = "lab_flags", distribution: str = "lab-flags"
) -> PluginSource:
    return PluginSource("flags", module, distribution, "1.2", api=api)


def of(name: str, points: tuple[PluginSource, ...] | list[PluginSource]) -> list[PluginSource]:
    return [point for point in points if point.name == name]


# What is installed


def install_for(home: Path, group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(exist_ok=True)
    write_metadata(home, f"lab-{group.rpartition('.')[2]}", {"flags": "lab_flags"}, group=group)
    monkeypatch.syspath_prepend(home)


@pytest.mark.parametrize(
    ("group", "api"),
    [("fhirpub.plugins", 1), ("fhirpub.plugins.v1", 1), ("fhirpub.plugins.v2", 2)],
)
def test_the_group_of_an_entry_point_is_the_version_it_was_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, api: int
) -> None:
    install_for(tmp_path, group, monkeypatch)

    distribution = f"lab-{group.rpartition('.')[2]}"
    assert of("flags", installed()) == [
        PluginSource("flags", "lab_flags", distribution, "1.0", api)
    ]


@pytest.mark.parametrize("group", ["fhirpub.plugins.v0", "fhirpub.plugins.vx", "fhirpub.plugins_"])
def test_other_groups_hold_no_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    install_for(tmp_path, group, monkeypatch)

    assert of("flags", installed()) == []


def test_what_is_made_for_a_later_version_is_installed_but_not_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_for(tmp_path, "fhirpub.plugins.v3", monkeypatch)

    assert [point.api for point in of("flags", installed())] == [3]
    assert of("flags", available()) == []


def test_what_is_made_for_two_versions_is_available_once_with_the_higher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "lab-flags", {"flags": "lab_flags"})
    points = tmp_path / "lab_flags-1.0.dist-info" / "entry_points.txt"
    points.write_text("[fhirpub.plugins.v2]\nflags = lab_flags\n" + points.read_text())
    monkeypatch.syspath_prepend(tmp_path)

    assert [point.api for point in of("flags", installed())] == [1, 2]
    assert [point.api for point in of("flags", available())] == [2]


def test_plugins_of_one_name_in_two_packages_are_both_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "lab-flags", {"flags": "lab_flags"})
    write_metadata(tmp_path, "my-flags", {"flags": "my_flags"})
    monkeypatch.syspath_prepend(tmp_path)

    assert [point.module for point in of("flags", available())] == ["lab_flags", "my_flags"]


def test_the_folder_of_the_process_is_looked_at_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the empty text in the path for modules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert of("flags", installed()) == []

    write_metadata(tmp_path, "lab-flags", {"flags": "lab_flags"})
    os.utime(tmp_path, ns=(1, 1))

    assert [point.module for point in of("flags", installed())] == ["lab_flags"]


def test_a_folder_of_the_path_need_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "missing")

    assert of("flags", installed()) == []


# Which one is meant


def test_a_plugin_is_found_by_its_name() -> None:
    other = PluginSource("goals", "lab_goals", "lab-goals", "1.0")

    assert source_of("flags", [other, FLAGS]) == FLAGS


@pytest.mark.parametrize("apis", [(1, 2, 3), (3, 2, 1)])
def test_of_several_versions_the_highest_that_is_supported_is_loaded(
    apis: tuple[int, ...],
) -> None:
    assert source_of("flags", [made_for(api) for api in apis]).api == 2


@pytest.mark.parametrize("api", [1, 2])
def test_one_plugin_in_two_packages_is_no_conflict_if_its_module_is_the_same(api: int) -> None:
    first, second = made_for(api), made_for(api, distribution="fork")

    assert source_of("flags", [first, second]) == first


def test_a_name_of_two_modules_is_refused_with_both() -> None:
    points = [made_for(2), made_for(2, module="my_flags", distribution="my-package")]

    with pytest.raises(PluginError) as refused:
        source_of("flags", points)

    assert str(refused.value) == (
        "plugin flags: two packages use this name, "
        "lab_flags of lab-flags and my_flags of my-package; uninstall one"
    )


def test_a_module_for_a_lower_version_is_no_conflict() -> None:
    points = [made_for(1, module="old_flags"), made_for(2)]

    assert source_of("flags", points).module == "lab_flags"


def test_a_plugin_for_a_later_version_is_refused_with_what_to_install() -> None:
    with pytest.raises(PluginError) as refused:
        source_of("flags", [made_for(3)])

    assert str(refused.value) == (
        "plugin flags (lab_flags of lab-flags 1.2): was made for version 3 of the plugin API, "
        "and this service has version 2; install a release of it that was made for version 2"
    )


@pytest.mark.parametrize(
    ("name", "names", "hint"),
    [
        ("flgs", ("flags", "goals"), "; did you mean flags?"),
        ("x", ("goals", "flags", "goals"), "; installed are flags, goals"),
        ("x", (), "; none is installed"),
    ],
)
def test_an_unknown_name_is_refused_with_those_there_are(
    name: str, names: tuple[str, ...], hint: str
) -> None:
    points = [PluginSource(each, f"lab_{each}", "lab", "1") for each in names]

    with pytest.raises(PluginError) as refused:
        source_of(name, points)

    assert str(refused.value) == f"[plugins] enabled: there is no plugin {name}{hint}"


def test_messages_name_a_plugin_and_its_module() -> None:
    assert FLAGS.where == "plugin flags (lab_flags)"


@pytest.mark.parametrize("version", [0, 3])
def test_a_plugin_for_a_version_that_there_is_not_is_not_available(
    install: Install, version: int
) -> None:
    install("flags", declaring(), group=f"fhirpub.plugins.v{version}")

    assert [one.name for one in available() if one.name == "flags"] == []
