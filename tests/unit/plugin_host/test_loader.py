"""Plugins are found, judged and loaded; what is wrong is told in a sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.errors import PluginError
from fhirpub.plugin_api import Part, ResourceType
from fhirpub.plugin_host.loader import PluginSource, available, load

GOOD_TYPE = """ResourceType(
    name="Flag",
    parts=(Part(name="patient", type="Patient", referred_by="subject"),),
    create_statuses=frozenset({"active"}),
    update_statuses=frozenset({"active", "inactive"}),
    %s
)"""

MODULE = """
from fhirpub.plugin_api import Part, ResourceType, hookimpl

@hookimpl
def fhirpub_resource_types():
    return [%s]
"""

Install = Callable[..., str]


def words_of(enabled: list[str]) -> list[str]:
    """Return what is said of the plugins, line by line."""
    with pytest.raises(PluginError) as refusal:
        load(enabled)
    return str(refusal.value).splitlines()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a distribution with one plugin."""
    modules: list[str] = []

    def installed(
        name: str, source: str, *, distribution: str = "", group: str = "fhirpub.plugins"
    ) -> str:
        distribution = distribution or f"dist-{name}"
        module = f"trial_{distribution.replace('-', '_')}"
        home = tmp_path / distribution
        metadata = home / f"{module}-1.2.dist-info"
        metadata.mkdir(parents=True)
        (home / f"{module}.py").write_text(source)
        (metadata / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.2\n")
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")
        monkeypatch.syspath_prepend(home)
        modules.append(module)
        return module

    yield installed
    for module in modules:
        sys.modules.pop(module, None)


def declaring(extra: str = "") -> str:
    return MODULE % (GOOD_TYPE % extra)


def test_an_installed_plugin_is_available_with_its_home(install: Install) -> None:
    module = install("flags", declaring())

    found = available()

    assert PluginSource("flags", module, "dist-flags", "1.2") in found


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
def test_a_plugin_that_cannot_be_used_is_told_in_one_line(
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


def test_a_part_that_is_not_required_may_be_referred_to_from_anywhere(install: Install) -> None:
    optional = 'type="Patient", referred_by="", required=False'
    install("flags", declaring().replace('type="Patient", referred_by="subject"', optional))

    assert load(["flags"])["Flag"].parts[0].referred_by == ""


@pytest.mark.parametrize(
    "extra",
    ['updatable=frozenset({"status", "value[x]"}),', 'summary=("effective[x]",),'],
)
def test_a_choice_is_named_for_all_its_forms(install: Install, extra: str) -> None:
    install("flags", declaring(extra))

    assert list(load(["flags"])) == ["Flag"]


def test_what_holds_a_reference_to_a_part_can_never_be_updatable(install: Install) -> None:
    extra = 'updatable=frozenset({"status", "participant"}),'
    install("flags", declaring(extra).replace('"subject"', '"participant.individual"'))

    with pytest.raises(PluginError, match="participant can never be updatable"):
        load(["flags"])


def test_a_part_that_another_plugin_registers_is_refused(install: Install) -> None:
    install("flags", declaring())
    install("people", declaring().replace('"Flag"', '"Patient"').replace('"patient"', '"owner"'))

    with pytest.raises(PluginError, match="a type is one or the other"):
        load(["flags", "people"])


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ('updatable="status",', "updatable must be a frozenset, not str"),
        ('attachments=("presentedForm"),', "attachments must be a tuple, not str"),
        ('updatable=frozenset({"status", "Not A Name"}),', "updatable holds 'Not A Name'"),
        ('times=("a..b",),', "times holds 'a..b'"),
        ("rules=None,", "rules must be a function"),
        ("state_flow={'active': ['inactive']},", "state_flow must be a dict of a frozenset"),
        ("state_flow=frozenset(),", "state_flow must be a dict of a frozenset"),
        ("events='none',", "events must be a function"),
        ('updatable=frozenset({"note"}),', "status is updatable if, and only if"),
        ('updatable=frozenset({"status", "identifier"}),', "identifier can never be updatable"),
        ('updatable=frozenset({"status", "subject"}),', "subject can never be updatable"),
        ("attachments_required=True,", "attachments_required is set, but there are no"),
        ('attachments=("form",), summary=("form",),', "form is an attachment"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    install: Install, extra: str, words: str
) -> None:
    install("flags", declaring(extra))

    with pytest.raises(PluginError) as refusal:
        load(["flags"])

    assert f"plugin flags: Flag: {words}" in str(refusal.value)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('frozenset({"active"})', "frozenset()", "create_statuses is empty"),
        ('frozenset({"active"})', '["active"]', "create_statuses must be a frozenset, not list"),
        ('name="Flag"', 'name="flag"', "the name must be that of a FHIR type"),
        ('name="patient"', 'name="flag"', "part flag: the name is taken"),
        ('name="patient"', 'name="issues"', "part issues: the name is taken"),
        ('type="Patient"', 'type=""', "'' is not the name of a FHIR type"),
        ('referred_by="subject"', 'referred_by="a..b"', "'a..b' is not the name of an element"),
        ('referred_by="subject"', 'referred_by=""', "'' is not the name of an element"),
        ('Part(name="patient", type="Patient", referred_by="subject")', "3", "tuple of Part"),
        ('"subject"),)', '"subject"))', "parts must be a tuple of Part"),
        (
            'name="Flag"',
            'name="Flag", rules=lambda entry: ()',
            "Flag: rules must be a function of Entry and RuleContext",
        ),
        (
            'name="Flag"',
            'name="Flag", events=lambda: ()',
            "Flag: events must be a function of Change",
        ),
        (
            'referred_by="subject"',
            'referred_by="subject", rules=lambda: ()',
            "part patient: rules must be a function of Entry and RuleContext",
        ),
    ],
)
def test_a_declaration_that_is_malformed_is_refused(
    install: Install, before: str, after: str, words: str
) -> None:
    install("flags", declaring().replace(before, after))

    with pytest.raises(PluginError) as refusal:
        load(["flags"])

    assert words in str(refusal.value)


def test_everything_wrong_with_a_declaration_is_told_at_once(install: Install) -> None:
    install("flags", declaring('attachments_required=True, updatable=frozenset({"identifier"}),'))

    with pytest.raises(PluginError) as refusal:
        load(["flags"])

    assert len(str(refusal.value).splitlines()) == 3


def test_everything_wrong_with_all_plugins_is_told_at_once_each_with_its_name(
    install: Install,
) -> None:
    install("flags", declaring("attachments_required=True,"))
    install("goals", "import no_such_module_xyz")
    install("lists", (MODULE % "").replace("resource_types", "resource_typs"))

    told = words_of(["flags", "nothing-such", "goals", "lists", "flags"])

    assert [name.split(" (")[0].split(": ")[0] for name in told] == [
        "[plugins] enabled",
        "plugin flags",
        "[plugins] enabled",
        "plugin goals",
        "plugin lists",
    ]


def test_every_misspelt_hook_is_told(install: Install) -> None:
    more = "\n@hookimpl\ndef fhirpub_routes():\n    return []\n"
    install("flags", (MODULE % "").replace("resource_types", "resource_typs") + more)

    told = words_of(["flags"])

    assert [" is not a hook" in name for name in told] == [True, True]


def test_a_hook_without_its_marker_is_told(install: Install) -> None:
    install("flags", (MODULE % "").replace("@hookimpl", ""))

    told = words_of(["flags"])

    assert "fhirpub_resource_types is not marked with @hookimpl" in told[0]


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
def test_the_place_in_the_plugin_is_told(install: Install, source: str, place: str) -> None:
    install("flags", source)

    told = words_of(["flags"])

    assert told[0].endswith(place)


def test_schemas_that_are_no_dict_are_told(install: Install) -> None:
    install("flags", declaring("schemas='Flag.schema.json',"))

    assert words_of(["flags"]) == [
        "plugin flags: Flag: schemas must be a dict by type name, not str"
    ]


@pytest.mark.parametrize("group", ["fhirpub.plugins.v2", "fhirpub.plugins.v10"])
def test_a_plugin_for_another_version_is_refused_without_importing_it(
    install: Install, group: str
) -> None:
    module = install("flags", "raise RuntimeError('imported')", group=group)

    told = words_of(["flags"])

    version = group.rpartition("v")[2]
    assert len(told) == 1
    assert told[0].startswith(f"plugin flags ({module} of dist-flags 1.2): was made for version")
    assert f"version {version} of the plugin API, and this service has version 1" in told[0]
    assert module not in sys.modules


def test_a_plugin_may_be_made_for_two_versions(install: Install) -> None:
    install("flags", declaring())
    install("flags", "raise RuntimeError", distribution="second", group="fhirpub.plugins.v2")

    assert list(load(["flags"])) == ["Flag"]


def test_a_plugin_for_another_version_is_not_available(install: Install) -> None:
    install("flags", declaring(), group="fhirpub.plugins.v2")

    assert "flags" not in {plugin_source.name for plugin_source in available()}


STRANGE: tuple[Any, ...] = (None, 7, "x", ["x"], {7: 7}, frozenset({7}), ("x", 7))


@pytest.mark.parametrize("declared", [ResourceType, Part])
def test_whatever_a_field_holds_is_told_in_a_sentence_or_does_no_harm(
    install: Install, declared: type[Any]
) -> None:
    fields = [item.name for item in dataclasses.fields(declared)]
    good = GOOD_TYPE % ""
    part = 'Part(name="patient", type="Patient", referred_by="subject")'
    whole, a_part = f"replace({good}, **X)", good.replace(part, f"replace({part}, **X)")
    mine = whole if declared is ResourceType else a_part
    source = "from dataclasses import replace\nX = {}\n" + MODULE % mine
    module = importlib.import_module(install("flags", source))

    for field in fields:
        for value in STRANGE:
            module.X = {field: value}  # type: ignore[attr-defined]
            with contextlib.suppress(PluginError):
                load(["flags"])


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ('SearchParameter(name="x", type="token", paths=("code",))', "must be a tuple of Search"),
        ('("code",)', "must be a tuple of SearchParameter"),
        (
            '(SearchParameter(name="code", type="strng", paths=("code",)),)',
            "search parameter 'code': the type must be one of token, date, reference",
        ),
        (
            '(SearchParameter(name="Code", type="token", paths=("code",)),)',
            "search parameter 'Code': the name must be that of a search parameter of FHIR",
        ),
        (
            '(SearchParameter(name="code", type="token", paths="code"),)',
            "search parameter 'code': paths must be a tuple of element paths, at least one",
        ),
        (
            '(SearchParameter(name="code", type="token", paths=("code[0]",)),)',
            "search parameter 'code': 'code[0]' cannot be the path of an element",
        ),
        (
            '(SearchParameter(name="patient", type="reference", paths=("subject",)),)',
            "search parameter patient: every type has it, do not declare it",
        ),
        (
            '(SearchParameter(name="code", type="token", paths=("code",)),) * 2',
            "search parameter code is declared twice",
        ),
        (
            (
                '(SearchParameter(name="a", type="token", paths=("code",)),'
                'SearchParameter(name="b", type="date", paths=("code",)))'
            ),
            "search parameter b: the same elements have another type",
        ),
    ],
)
def test_a_search_parameter_that_cannot_be_is_refused(
    install: Install, search: str, words: str
) -> None:
    source = declaring(f"search={search},").replace("Part,", "Part, SearchParameter,")
    install("flags", source)

    with pytest.raises(PluginError) as refusal:
        load(["flags"])

    assert "plugin flags: Flag: " in str(refusal.value)
    assert words in str(refusal.value)
