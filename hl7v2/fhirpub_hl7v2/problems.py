"""What is wrong with a message, without a value of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Message error conditions of HL7 table 0357."""

    ACCEPTED = "0"
    SEQUENCE = "100"
    REQUIRED = "101"
    DATA_TYPE = "102"
    NOT_FOUND = "103"
    TYPE = "200"
    EVENT = "201"
    PROCESSING_ID = "202"
    VERSION = "203"
    DUPLICATE = "205"
    INTERNAL = "207"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where.

    ``number`` counts the segments of the same name from 1; ``field`` 0 means the whole segment,
    and an empty ``segment`` the whole message.
    """

    text: str
    segment: str = ""
    number: int = 1
    field: int = 0
    code: Code = Code.DATA_TYPE

    @property
    def place(self) -> str:
        """Where it is, such as ``OBX[2]-5``."""
        field = f"-{self.field}" if self.field else ""
        return f"{self.segment}[{self.number}]{field}" if self.segment else ""

    def __str__(self) -> str:
        """Return the place and the text."""
        return f"{self.place}: {self.text}" if self.place else self.text


def kept_as_registered(names: Sequence[str]) -> Problem:
    """Return the warning that a report was revised, but for some data of it."""
    text = f"stored, but for {', '.join(names)}: what differs there stays as it was registered"
    return Problem(text, code=Code.ACCEPTED)


class Unusable(ValueError):
    """A message cannot be published; all problems that were found at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class Unsupported(Unusable):
    """A message is of a type, version or purpose that is not accepted here."""
