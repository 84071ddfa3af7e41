"""Parts of messages that are missing, and names in other letters."""

from __future__ import annotations

import pytest

from fhirpub_hl7v2.message import parse, split_messages
from tests.hl7v2.messages import message, obr, observation, obx, pid, resources


@pytest.mark.parametrize(("component", "part"), [(1, 2), (2, 2), (3, 3), (4, 1), (2, 9)])
def test_a_part_that_is_not_there_is_empty(component: int, part: int) -> None:
    sent = parse(message(pid({3: "1^2^3&4"})), "UTF-8").segments[1]

    assert sent.text(3, component, part) == ""
    assert sent.text(3, 3, 2) == "4"


@pytest.mark.parametrize("name", ["8859/1", "iso-8859-1", "windows-1252"])
def test_an_escaped_character_is_one_of_the_set_in_any_case(name: str) -> None:
    raw = message(pid(), obr(), obx({2: "ST", 5: "\\XFC\\"}), msh={18: name})

    (made,) = resources(raw, "observation")
    assert made["valueString"] == "\u00fc"


def test_escaped_bytes_of_no_character_stop_no_message() -> None:
    assert observation({2: "ST", 5: "a\\XFF\\b"})["valueString"] == "a\ufffdb"


@pytest.mark.parametrize("end", [b"\r\x1c\r", b"\x1c\r", b"\r\n\x1c\n"])
def test_frames_in_a_file_are_no_part_of_its_messages(end: bytes) -> None:
    one = message().rstrip(b"\r")

    assert split_messages(b"\x0b" + one + end + b"\x0b" + one + end) == [one + b"\r"] * 2


@pytest.mark.parametrize("line", ["FHS|^~\\&", "BHS|^~\\&", "BTS|1", "FTS|1"])
def test_a_batch_around_messages_is_no_part_of_them(line: str) -> None:
    around = line.encode() + b"\r"

    assert split_messages(around + message() + around) == [message()]
