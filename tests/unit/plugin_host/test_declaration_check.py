"""The problems of a declaration are reported in a sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from typing import Any

import pytest

from fhirpub.errors import PluginError
from fhirpub.plugin_api import Part, ResourceType
from fhirpub.plugin_host.loader import load
from tests.unit.plugin_host.installing import GOOD_TYPE, MODULE, Install, declaring, words_of


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
        ("problems=('late',),", "problems must be a dict by code, not tuple"),
        ("problems={'Too Late': 'It is.'},", "problems holds 'Too Late'"),
        ("problems={'late': ' '},", "problems holds 'late': it needs"),
        ("problems={'hash-wrong': 'It is.'},", "problems holds 'hash-wrong', which is a code of"),
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


def test_everything_wrong_with_a_declaration_is_reported_at_once(install: Install) -> None:
    install("flags", declaring('attachments_required=True, updatable=frozenset({"identifier"}),'))

    with pytest.raises(PluginError) as refusal:
        load(["flags"])

    assert len(str(refusal.value).splitlines()) == 3


def test_schemas_that_are_no_dict_are_reported(install: Install) -> None:
    install("flags", declaring("schemas='Flag.schema.json',"))

    assert words_of(["flags"]) == [
        "plugin flags: Flag: schemas must be a dict by type name, not str"
    ]


COMPOSITE = (
    '(SearchParameter(name="code", type="token", paths=("code",)),'
    'SearchParameter(name="when", type="date", paths=("component.valueDateTime",)),'
    'SearchParameter(name="who", type="reference", paths=("subject",)),'
    'SearchParameter(name="c", type="composite", components=("%s", "%s")))'
)
STRANGE: tuple[Any, ...] = (None, 7, "x", ["x"], {7: 7}, frozenset({7}), ("x", 7))


@pytest.mark.parametrize("declared", [ResourceType, Part])
def test_any_value_of_a_field_is_reported_in_a_sentence_or_does_no_harm(
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
            '(SearchParameter(name="code", type="strings", paths=("code",)),)',
            "the type must be one of token, date, reference, quantity, number, string, uri, comp",
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
        (
            '(SearchParameter(name="a", type="token", paths=("a",), components=("b", "c")),)',
            "search parameter 'a': a composite has components, and no other type has",
        ),
        (
            '(SearchParameter(name="a", type="composite", paths=("a",), components=("b", "c")),)',
            "search parameter 'a': a composite has no paths",
        ),
        (
            '(SearchParameter(name="a", type="composite", components="bc"),)',
            "search parameter 'a': components must be a tuple of the names of two other",
        ),
        (
            COMPOSITE % ("code", "x"),
            "search parameter c: its component x is not among the parameters that are declared",
        ),
        (
            COMPOSITE % ("when", "code"),
            "search parameter c: its components must be a token, and one that is no reference",
        ),
        (
            COMPOSITE % ("code", "who"),
            "search parameter c: its components must be a token, and one that is no reference",
        ),
        (
            COMPOSITE % ("code", "when"),
            "search parameter c: its components have no elements in the same element",
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
