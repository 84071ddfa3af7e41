"""What is known of each kind of problem: its code, its issue types, its meaning, the remedy."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Problem(StrEnum):
    """A kind of problem; its value is the code. A code is never renamed: clients compare it."""

    types: tuple[str, ...]
    """Codes of the R4 value set issue-type that its issues may have."""
    meaning: str
    remedy: str

    def __new__(cls, code: str, types: str, meaning: str, remedy: str) -> Self:
        """Make a member, which is equal to its code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.types = tuple(types.split())
        member.meaning = meaning
        member.remedy = remedy
        return member

    @property
    def display(self) -> str:
        """The code as words."""
        return self.value.replace("-", " ").capitalize()
