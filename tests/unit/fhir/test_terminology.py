"""The service's checks of codes, and the files that an operator can provide."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fhirpub.errors import ConfigurationError, Issue
from fhirpub.fhir.terminology import Terminology
from fhirpub.problems import ContentProblem

SHIPPED = Terminology.load()
SECTIONS = "http://terminology.hl7.org/CodeSystem/v2-0074"
V2_0203 = "http://terminology.hl7.org/CodeSystem/v2-0203"
IDENTIFIER_TYPE = "http://hl7.org/fhir/ValueSet/identifier-type"
OURS = "http://lab.example/codes"
A_SYSTEM = {
    "resourceType": "CodeSystem",
    "url": OURS,
    "content": "complete",
    "concept": [{"code": "a", "concept": [{"code": "a1"}]}, {"code": "b"}],
}


def value_set(**body: Any) -> dict[str, Any]:
    return {"resourceType": "ValueSet", "url": "http://lab.example/set", **body}


def include(**body: Any) -> dict[str, Any]:
    return value_set(compose={"include": [body]})


def loaded(folder: Path, *documents: Any) -> Terminology:
    for number, document in enumerate(documents):
        (folder / f"{number}.json").write_text(json.dumps(document))
    return Terminology.load([folder])


@pytest.mark.parametrize(
    ("system", "code", "expected"),
    [
        (SECTIONS, "LAB", []),
        ("http://hl7.org/fhir/administrative-gender", "male", []),
        (
            SECTIONS,
            "lab",
            [
                Issue.warning(
                    ContentProblem.CODE_UNKNOWN,
                    f"the code is not in the code system {SECTIONS}; did you mean LAB?",
                    "c.code",
                )
            ],
        ),
        (
            "http://loinc.org",
            "58410-2",
            [
                Issue.information(
                    ContentProblem.CODE_SYSTEM_UNKNOWN,
                    "value set not found: the code system http://loinc.org is not held,"
                    " the code is unchecked",
                    "c.system",
                )
            ],
        ),
        (
            "http://hl7.org/fhir/administrative-gender",
            "Male",
            [
                Issue.warning(
                    ContentProblem.CODE_UNKNOWN,
                    "the code is not in the code system http://hl7.org/fhir/administrative-gender"
                    "; did you mean male?",
                    "c.code",
                )
            ],
        ),
        (None, "LAB", []),
        (SECTIONS, None, []),
    ],
)
def test_a_code_is_warned_about_only_when_its_system_is_held(
    system: str | None, code: str | None, expected: list[Issue]
) -> None:
    assert SHIPPED.coding_issues({"system": system, "code": code}, "c") == expected


def test_a_very_long_system_is_not_repeated() -> None:
    [issue] = SHIPPED.coding_issues({"system": "x" * 256, "code": "a"}, "c")

    assert "xx" not in issue.diagnostics


@pytest.mark.parametrize("system", ["http://loinc.org", SECTIONS])
def test_codes_of_an_assumed_system_get_no_remark(system: str) -> None:
    terminology = Terminology.load(assume=[system])
    coding = {"system": system, "code": "no-such-code"}

    assert terminology.coding_issues(coding, "c") == []
    assert terminology.identifier_type_issues(coding, "c") == []


def test_an_assumed_system_does_not_silence_another() -> None:
    terminology = Terminology.load(assume=["http://loinc.org"])

    assert terminology.coding_issues({"system": "http://snomed.info/sct", "code": "1"}, "c")


@pytest.mark.parametrize(
    ("coding", "severity"),
    [
        ({"system": V2_0203, "code": "PPN"}, None),
        ({"system": V2_0203, "code": "NI"}, None),
        ({"system": V2_0203, "code": "NNESP"}, None),
        ({"system": V2_0203, "code": "NNxxx"}, None),
        ({"system": "http://hl7.org/fhir/v2/0203", "code": "NI"}, None),
        ({"system": "http://hl7.org/fhir/v2/0203", "code": "PPN"}, None),
        ({"system": "http://hl7.org/fhir/v2/0203", "code": "none"}, "warning"),
        ({"system": V2_0203, "code": "ppn"}, "warning"),
        ({"system": "http://loinc.org", "code": "NI"}, "warning"),
        ({"code": "PPN"}, "warning"),
        ({}, "warning"),
    ],
)
def test_an_identifier_type_is_of_the_value_set_or_of_v2_0203(
    coding: dict[str, str], severity: str | None
) -> None:
    issues = SHIPPED.identifier_type_issues(coding, "identifier[0].type.coding[0]")

    assert [issue.severity for issue in issues] == ([severity] if severity else [])
    assert {(issue.code, issue.expression) for issue in issues} <= {
        ("invalid", "identifier[0].type.coding[0]")
    }


def test_what_comes_with_the_service() -> None:
    assert len(SHIPPED.systems[V2_0203]) == 127
    assert len(SHIPPED.systems[SECTIONS]) == 45
    assert len(SHIPPED.value_sets[IDENTIFIER_TYPE][V2_0203]) == 18
    assert SHIPPED.in_value_set(
        "http://hl7.org/fhir/ValueSet/issue-type", "http://hl7.org/fhir/issue-type", "throttled"
    )
    assert not SHIPPED.in_value_set("http://hl7.org/fhir/ValueSet/none", SECTIONS, "LAB")


@pytest.mark.parametrize(
    "system", ["http://unitsofmeasure.org", "http://hl7.org/fhir/restful-interaction"]
)
def test_a_system_of_which_only_a_part_is_known_is_not_held(system: str) -> None:
    assert not SHIPPED.holds_system(system)


def test_codes_are_held_however_deep_they_are_nested(tmp_path: Path) -> None:
    deep = {"code": "a", "concept": [{"code": "b", "concept": [{"code": "c"}]}]}

    assert loaded(tmp_path, {**A_SYSTEM, "concept": [deep]}).systems[OURS] == {"a", "b", "c"}


def test_an_operators_code_system_is_held_with_its_nested_codes(tmp_path: Path) -> None:
    terminology = loaded(tmp_path, A_SYSTEM)

    assert terminology.holds_system(OURS)
    assert all(terminology.has_code(OURS, code) for code in ("a", "a1", "b"))
    assert terminology.holds_system(SECTIONS)


@pytest.mark.parametrize(
    "body",
    [
        include(system=OURS),
        include(system=OURS, concept=[{"code": "a1"}]),
        value_set(
            expansion={
                "contains": [
                    {"abstract": True, "system": OURS, "code": "top", "contains": [
                        {"system": OURS, "code": "a1"}]},
                    {"display": "a group"},
                ]
            }
        ),
    ],
)  # fmt: skip
def test_an_operators_value_set_is_understood(tmp_path: Path, body: dict[str, Any]) -> None:
    terminology = loaded(tmp_path, body, A_SYSTEM)

    assert terminology.in_value_set("http://lab.example/set", OURS, "a1")
    assert not terminology.in_value_set("http://lab.example/set", OURS, "top")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ([], "is not a ValueSet or CodeSystem"),
        ({"resourceType": "Patient"}, "is not a ValueSet or CodeSystem"),
        ({**A_SYSTEM, "url": ""}, "has no url"),
        ({**A_SYSTEM, "url": 7}, "has no url"),
        ({**A_SYSTEM, "content": "fragment"}, "content must be complete"),
        ({**A_SYSTEM, "concept": {}}, "concept must be an array"),
        ({**A_SYSTEM, "concept": ["a"]}, "concept must be an object"),
        ({**A_SYSTEM, "concept": [{"code": 7}]}, "code must be a string"),
        (value_set(), "no codes"),
        (value_set(compose=[]), "compose must be an object"),
        (value_set(compose={"include": [], "exclude": []}), "exclude is not understood"),
        (include(system=OURS, filter=[]), "filter or valueSet"),
        (include(system=OURS, valueSet=["http://lab.example/x"]), "filter or valueSet"),
        (include(system=OURS), "there is no file with its codes"),
        (include(concept=[{"code": "a"}]), "system must be a string"),
        (value_set(expansion={"contains": [{"code": "a"}]}), "system must be a string"),
    ],
)
def test_a_file_that_cannot_be_used_stops_the_start_and_is_named(
    tmp_path: Path, body: Any, problem: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        loaded(tmp_path, body)

    assert str(tmp_path / "0.json") in str(refused.value)
    assert problem in str(refused.value)


def test_a_file_that_is_not_json_and_a_missing_folder_stop_the_start(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")

    with pytest.raises(ConfigurationError, match=r"broken\.json cannot be read"):
        Terminology.load([tmp_path])
    with pytest.raises(ConfigurationError, match="no directory"):
        Terminology.load([tmp_path / "none"])

    (tmp_path / "broken.json").unlink()
    (tmp_path / "a-folder.json").mkdir()
    with pytest.raises(ConfigurationError, match=r"a-folder\.json cannot be read"):
        Terminology.load([tmp_path])


def test_a_file_that_nests_too_deep_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)

    with pytest.raises(ConfigurationError, match=r"deep\.json cannot be read"):
        Terminology.load([tmp_path])


def test_a_file_of_an_operator_replaces_one_that_comes_with_the_service(tmp_path: Path) -> None:
    terminology = loaded(tmp_path, {**A_SYSTEM, "url": SECTIONS})

    assert terminology.systems[SECTIONS] == {"a", "a1", "b"}


def test_a_value_set_of_an_operator_replaces_one_that_comes_with_the_service(
    tmp_path: Path,
) -> None:
    include = {"system": V2_0203, "concept": [{"code": "mine"}]}
    ours = value_set(compose={"include": [include]}) | {"url": IDENTIFIER_TYPE}

    assert loaded(tmp_path, ours).value_sets[IDENTIFIER_TYPE] == {V2_0203: {"mine"}}


def test_files_of_several_directories_are_read_and_the_last_one_counts(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder, code in zip(folders, "xy", strict=True):
        folder.mkdir()
        concept = [{"code": code}]
        system = {**A_SYSTEM, "concept": concept}
        (folder / "shared.json").write_text(json.dumps(system))
        (folder / "own.json").write_text(json.dumps({**system, "url": f"{OURS}/{code}"}))
        (folder / "notes.txt").write_text("not read")

    systems = Terminology.load(folders).systems

    assert [systems[url] for url in (OURS, f"{OURS}/x", f"{OURS}/y")] == [{"y"}, {"x"}, {"y"}]


def test_what_is_included_of_one_system_in_several_places_adds_up(tmp_path: Path) -> None:
    parts = [
        {"system": OURS, "concept": [{"code": "x"}]},
        {"system": OURS, "concept": [{"code": "y", "concept": [{"code": "z"}]}]},
        {"system": OURS},
        {"system": SECTIONS, "concept": [{"code": "LAB"}]},
    ]
    known = loaded(tmp_path, value_set(compose={"include": parts}), A_SYSTEM)

    assert known.value_sets["http://lab.example/set"] == {
        OURS: {"x", "y", "z", "a", "a1", "b"},
        SECTIONS: {"LAB"},
    }


def test_what_an_expansion_has_of_one_system_adds_up(tmp_path: Path) -> None:
    contains = [
        {"system": OURS, "code": "a", "contains": [{"system": OURS, "code": "b"}]},
        {"system": OURS, "code": "c"},
    ]
    known = loaded(tmp_path, value_set(expansion={"contains": contains}))

    assert known.value_sets["http://lab.example/set"] == {OURS: {"a", "b", "c"}}


def test_values_of_a_set_have_a_system_if_it_is_the_only_one(tmp_path: Path) -> None:
    both = {"system": "http://lab.example/other", "code": "x"}
    contains = [{"system": OURS, "code": "a"}, both]
    known = loaded(tmp_path, value_set(expansion={"contains": contains}))

    assert known.system_of("http://lab.example/set") == ""
    assert known.system_of("http://hl7.org/fhir/ValueSet/issue-type").endswith("/issue-type")
    assert known.system_of("http://lab.example/none") == ""


# What others know


LOINC = {"system": "http://loinc.org", "code": "58410-2"}
NOT_THERE = "the code is not in the code system http://loinc.org"


def asking(answers: Sequence[bool | None]) -> Terminology:
    """Return a terminology with a source for each answer."""
    sources = [lambda _system, _code, answer=answer: answer for answer in answers]
    return Terminology(SHIPPED.systems, SHIPPED.value_sets, sources=sources)


@pytest.mark.parametrize("answers", [(True,), (None, True), (True, False)])
def test_a_code_that_the_first_source_with_an_answer_knows_gets_no_remark(
    answers: tuple[bool | None, ...],
) -> None:
    assert asking(answers).coding_issues(LOINC, "c") == []


@pytest.mark.parametrize("answers", [(False,), (None, False), (False, True)])
def test_a_code_that_a_source_refuses_is_a_warning(answers: tuple[bool | None, ...]) -> None:
    assert asking(answers).coding_issues(LOINC, "c") == [
        Issue.warning(ContentProblem.CODE_UNKNOWN, NOT_THERE, "c.code")
    ]


@pytest.mark.parametrize("answers", [(), (None,), (None, None)])
def test_a_code_that_no_source_answers_is_unchecked(answers: tuple[bool | None, ...]) -> None:
    [issue] = asking(answers).coding_issues(LOINC, "c")

    assert (issue.severity, issue.expression) == ("information", "c.system")


def test_no_source_is_asked_about_a_system_that_is_held() -> None:
    known = asking([True])

    [issue] = known.coding_issues({"system": SECTIONS, "code": "none"}, "c")

    assert issue.details == ContentProblem.CODE_UNKNOWN


def test_no_source_is_asked_behind_the_first_that_has_an_answer() -> None:
    asked: list[str] = []

    def source(name: str, *, answer: bool | None) -> Callable[[str, str], bool | None]:
        def knows(_system: str, _code: str) -> bool | None:
            asked.append(name)
            return answer

        return knows

    sources = [source("a", answer=None), source("b", answer=True), source("c", answer=True)]
    assert Terminology({}, {}, sources=sources).knows(LOINC)

    assert asked == ["a", "b"]
