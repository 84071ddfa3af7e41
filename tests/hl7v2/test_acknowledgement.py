"""Acknowledgements repeat the header of what they answer, with its own delimiters."""

from __future__ import annotations

import pytest

from fhirpub_hl7v2.acknowledgement import MAX_ERRORS, Acknowledgement, Sender, to_bytes
from fhirpub_hl7v2.problems import Code, Problem

HEADER = b"MSH|^~\\&|LIS|North Quay|EHR|HOSP|20260302||ORU^R01|M1|T|2.5|"


def answered(answer: Acknowledgement, header: bytes = HEADER) -> list[str]:
    """Return the segments of an acknowledgement."""
    made = to_bytes(answer, Sender.of(header), "A7", "20260302104500+0000")
    assert made.endswith(b"\r")
    return made.decode("latin-1").removesuffix("\r").split("\r")


def test_the_header_swaps_who_sends_and_repeats_purpose_and_version() -> None:
    header, _ = answered(Acknowledgement("AA"))

    assert header == ("MSH|^~\\&|EHR|HOSP|LIS|North Quay|20260302104500+0000||ACK^R01|A7|T|2.5")


def test_a_positive_acknowledgement_names_the_message_alone() -> None:
    assert answered(Acknowledgement("AA"))[1:] == ["MSA|AA|M1"]


def test_what_the_header_lacks_is_production_in_the_latest_version() -> None:
    header, message = answered(Acknowledgement("AR"), b"MSH|^~\\&|LIS")

    assert header == "MSH|^~\\&|||LIS||20260302104500+0000||ACK^R01|A7|P|2.5.1"
    assert message == "MSA|AR"


@pytest.mark.parametrize("header", [b"", b"PID|1", b"MSH|^~\\^|LIS", b"MSHabcdea", b"MSH|^~\\&"])
def test_a_header_that_cannot_be_read_is_answered_with_the_usual_delimiters(
    header: bytes,
) -> None:
    assert Sender.of(header) == Sender(("|", "^", "~", "\\", "&"), ())


def test_an_acknowledgement_has_the_delimiters_of_the_message() -> None:
    problem = Problem("a#b*c!d?e$", "OBX", 2, 5, Code.NOT_FOUND)

    header, message, error = answered(
        Acknowledgement("AE", "x", [problem]), b"MSH#*!?$#LIS#####ORU*R01##M1#P#2.5.1"
    )

    assert header.startswith("MSH#*!?$###LIS#")
    assert message == "MSA#AE#M1#x"
    assert error == ("ERR##OBX*2*5#103*Table value not found*HL70357#E####a?F?b?S?c?R?d?E?e?T?")


def test_the_header_ends_with_its_line() -> None:
    for end in (b"\n", b"\r", b"\r\n"):
        sender = Sender.of(HEADER + end + b"PID|x")
        assert (sender.field(12), sender.field(13), sender.field(14)) == ("2.5", "", "")


@pytest.mark.parametrize(
    ("sent", "version"),
    [
        ("2.3.1", (2, 3, 1)),
        ("2.4", (2, 4)),
        ("2.5^USA", (2, 5)),
        ("2", (2,)),
        ("", (2, 5)),
        ("v2", (2, 5)),
        ("2.5.1.1", (2, 5)),
        ("12.5", (2, 5)),
    ],
)
def test_the_version_is_read_in_numbers(sent: str, version: tuple[int, ...]) -> None:
    header = HEADER.replace(b"|2.5|", f"|{sent}|".encode())

    assert Sender.of(header).version == version


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (Problem("t", "OBR", 1, 4, Code.REQUIRED), "|OBR^1^4|101^Required field missing^HL70357|"),
        (Problem("t", "OBR", 2, 0, Code.SEQUENCE), "|OBR^2|100^Segment sequence error^HL70357|"),
        (Problem("t", code=Code.INTERNAL), "||207^Application internal error^HL70357|"),
    ],
)
def test_an_error_has_its_place_code_severity_and_text(problem: Problem, error: str) -> None:
    assert answered(Acknowledgement("AE", "x", [problem]))[2] == f"ERR|{error}E||||t"


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (Problem("t", "OBR", 1, 4), "OBR^1^4^102&Data type error&HL70357"),
        (Problem("t", "OBR", 2), "OBR^2^^102&Data type error&HL70357"),
        (Problem("t"), "^^^102&Data type error&HL70357"),
    ],
)
def test_before_2_5_an_error_is_one_field(problem: Problem, error: str) -> None:
    header = HEADER.replace(b"|2.5|", b"|2.4|")

    assert answered(Acknowledgement("AE", "x", [problem]), header)[2:] == [f"ERR|{error}"]


def test_each_code_has_its_meaning() -> None:
    for code in Code:
        (*_, error) = answered(Acknowledgement("AE", "x", [Problem("t", code=code)]))
        assert error.startswith(f"ERR|||{code}^")


@pytest.mark.parametrize(("found", "shown"), [(20, 20), (21, 20)])
def test_of_many_problems_the_first_twenty_are_named(found: int, shown: int) -> None:
    problems = [Problem(f"t{number}") for number in range(found)]

    _, _, *errors = answered(Acknowledgement("AE", "x", problems))

    assert MAX_ERRORS == 20
    assert [error.rpartition("|")[2] for error in errors] == [f"t{at}" for at in range(shown)]


def test_warnings_are_errors_of_another_severity() -> None:
    warning = Problem("kept", code=Code.ACCEPTED)

    _, _, error = answered(Acknowledgement("AA", warnings=[warning]))

    assert error == "ERR|||0^Message accepted^HL70357|W||||kept"


def test_warnings_take_what_errors_leave_of_the_twenty() -> None:
    problems, warnings = [Problem("e")] * 18, [Problem("w")] * 5

    _, _, *errors = answered(Acknowledgement("AE", "x", problems, warnings))

    assert [error[-1] for error in errors] == ["e"] * 18 + ["w"] * 2


def test_before_2_5_there_are_no_warnings() -> None:
    header = HEADER.replace(b"|2.5|", b"|2.4|")

    assert len(answered(Acknowledgement("AA", warnings=[Problem("w")]), header)) == 2


@pytest.mark.parametrize(("length", "shown"), [(250, 250), (251, 250)])
def test_a_text_has_at_most_250_characters(length: int, shown: int) -> None:
    _, message = answered(Acknowledgement("AE", "x" * length))

    assert message == f"MSA|AE|M1|{'x' * shown}"


def test_a_text_is_one_line() -> None:
    _, message = answered(Acknowledgement("AE", " one\r\n two\t"))

    assert message == "MSA|AE|M1|one two"


def test_what_has_no_byte_of_latin_1_is_a_question_mark() -> None:
    assert answered(Acknowledgement("AE", "1 \u20ac \u00e9"))[1] == "MSA|AE|M1|1 ? \u00e9"


def test_a_text_is_cut_before_its_delimiters_are_escaped() -> None:
    _, message = answered(Acknowledgement("AE", "|" * 300))

    assert message == "MSA|AE|M1|" + 250 * "\\F\\"


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (b"2.4^ESP", "ERR|OBX^2^5^102&Data type error&HL70357"),
        (b"2.5^ESP", "ERR||OBX^2^5|102^Data type error^HL70357|E||||x"),
        (b"2.5", "ERR||OBX^2^5|102^Data type error^HL70357|E||||x"),
    ],
)
def test_the_form_of_an_error_is_that_of_the_version_in_any_country(
    version: bytes, error: str
) -> None:
    header = HEADER.replace(b"2.5", version)

    assert answered(Acknowledgement("AE", "", [Problem("x", "OBX", 2, 5)]), header)[2] == error
