"""The settings of the mapping are read whole or not at all."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from fhirpub_hl7v2.settings import Settings, read_settings


def read(folder: Path, text: str) -> Settings:
    file = folder / "mapping.toml"
    file.write_text(text, encoding="utf-8")
    return read_settings(file)


WHOLE = """
[message]
character_set = "8859/1"
time_zone = "Europe/Madrid"
processing_ids = ["P", "T"]
[report]
category = "HM"
identifier = "order-and-code"
system = "https://a.example/reports"
[patient]
system = "https://a.example/persons"
[organization]
name = "North Quay"
system = "https://a.example/laboratories"
value = "0042"
[authorities]
LIS = "urn:oid:1.2.3"
[codes]
99LOC = "https://a.example/codes"
"""


def test_each_setting_has_its_place(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE) == Settings(
        character_set="8859/1",
        time_zone="Europe/Madrid",
        processing_ids=("P", "T"),
        category="HM",
        report_identifier="order-and-code",
        report_system="https://a.example/reports",
        patient_system="https://a.example/persons",
        organization_name="North Quay",
        organization_system="https://a.example/laboratories",
        organization_value="0042",
        authorities={"LIS": "urn:oid:1.2.3"},
        codes={"99LOC": "https://a.example/codes"},
    )


def test_without_a_file_messages_are_utf_8_of_production() -> None:
    settings = read_settings(None)

    assert settings == Settings()
    assert (settings.character_set, settings.processing_ids) == ("UTF-8", ("P",))
    assert (settings.category, settings.report_identifier) == ("LAB", "order")
    assert settings.zone is None


def test_the_zone_is_that_of_its_name() -> None:
    assert str(Settings(time_zone="Europe/Madrid").zone) == "Europe/Madrid"


def test_the_name_of_a_character_set_is_in_any_case(tmp_path: Path) -> None:
    text = '[message]\ncharacter_set = "unicode utf-8"'

    assert read(tmp_path, text).character_set == "unicode utf-8"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[message]\ncharacter_set = "EBCDIC"', "message.character_set: must be one of ASCII, "),
        ("[message]\ncharacter_set = 8", "message.character_set: must be one of ASCII, "),
        ('[message]\ntime_zone = "Mars/Base"', "message.time_zone: must be the name of a time"),
        ('[message]\ntime_zone = "Europe"', "message.time_zone: must be the name of a time"),
        ("[message]\ntime_zone = 1", "message.time_zone: must be the name of a time"),
        ('[message]\ntime_zone = ""', "message.time_zone: must be the name of a time"),
        ('[message]\ntime_zone = "../x"', "message.time_zone: must be the name of a time"),
        ('[message]\nprocessing_ids = "P"', "message.processing_ids: must be a list of texts"),
        ("[message]\nprocessing_ids = [1]", "message.processing_ids: must be a list of texts"),
        ('[message]\nprocessing_ids = ["P", 1]', "message.processing_ids: must be a list"),
        ('[report]\nsystem = "urn:x:1 2"', "report.system: must be an absolute URI in quotes"),
        ("[report]\ncategory = 1", "report.category: must be a text in quotes"),
        (
            '[report]\nidentifier = "code"',
            'report.identifier: must be "order" or "order-and-code"',
        ),
        ('[report]\nsystem = "reports"', "report.system: must be an absolute URI in quotes"),
        ("[report]\nsystem = 1", "report.system: must be an absolute URI in quotes"),
        ('[patient]\nsystem = ""', "patient.system: must be an absolute URI in quotes"),
        ("[organization]\nname = true", "organization.name: must be a text in quotes"),
        ('[organization]\nsystem = "x"', "organization.system: must be an absolute URI in quotes"),
        ("[organization]\nvalue = 42", "organization.value: must be a text in quotes"),
        ('[authorities]\nLIS = "x"', "authorities: must have absolute URIs in quotes"),
        ('authorities = "x"', "authorities: must have absolute URIs in quotes"),
        ('[codes]\nL = "urn:x:1"\nM = 1', "codes: must have absolute URIs in quotes"),
        ('[message]\nzone = "x"', "message.zone: unknown; known are message.character_set, "),
        ('[other]\nname = "x"', "other.name: unknown; known are message.character_set, "),
        ("message = 1", "message: unknown; known are message.character_set, "),
    ],
)
def test_a_wrong_setting_is_named_with_what_it_must_be(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(click.UsageError) as refused:
        read(tmp_path, text)

    assert f"{tmp_path / 'mapping.toml'}:\n  {problem}" in str(refused.value)


def test_all_wrong_settings_are_named_in_their_order(tmp_path: Path) -> None:
    text = '[report]\nsystem = 1\ncategory = "x"\n[patient]\nsystem = 1'

    with pytest.raises(click.UsageError) as refused:
        read(tmp_path, text)

    names = [line.split(":")[0].strip() for line in str(refused.value).split("\n")[1:]]
    assert names == ["report.system", "patient.system"]


@pytest.mark.parametrize("raw", [b"[message", b"\xff"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "mapping.toml"
    file.write_bytes(raw)

    with pytest.raises(click.UsageError, match=r"mapping\.toml: "):
        read_settings(file)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"missing\.toml: "):
        read_settings(tmp_path / "missing.toml")
