"""The characters of messages: character sets (MSH-18), and escape sequences (HL7 v2.5.1, 2.7)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fhirpub_hl7v2.problems import Code, Problem, Unsupported, Unusable

CHARACTER_SETS = {
    "ASCII": "ascii",
    "ISO IR6": "ascii",
    **{f"8859/{part}": f"iso8859-{part}" for part in (*range(1, 10), 15)},
    "UNICODE UTF-8": "utf-8",
    "UTF-8": "utf-8",
    "UNICODE": "utf-8",
    "GB 18030-2000": "gb18030",
    "KS X 1001": "euc_kr",
    "BIG-5": "big5",
    # Not of the table, but sent.
    "UTF8": "utf-8",
    **{f"ISO-8859-{part}": f"iso8859-{part}" for part in (*range(1, 10), 15)},
    "WINDOWS-1252": "cp1252",
}
"""HL7 table 0211, to Python's names; "UNICODE" is UTF-8 as sent by systems that mean it."""

_LEFT_OUT = dict.fromkeys(
    [*(code for code in range(32) if code not in (9, 10)), 0x7F, 0xFFFE, 0xFFFF]
)
_LINES = re.compile("\r\n?")
_HEX = re.compile(r"X((?:[0-9A-Fa-f]{2})+)")
_LAYOUT = re.compile(r"\.(br|sp|in|ti|fi|nf|sk|ce)\s*[+-]?(\d{0,3})")
_LINE_ENDS = frozenset({"br", "sp", "ce"})
_MOST_REPEATED = 20


def decode(raw: bytes, name: str) -> str:
    """Return the text of a message in the character set that it names. Raises Unusable."""
    encoding = CHARACTER_SETS.get(name.upper())
    if encoding is None:
        text = f"is not supported; supported are {', '.join(CHARACTER_SETS)}"
        raise Unsupported([Problem(text, "MSH", 1, 18, Code.NOT_FOUND)])
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as problem:
        text = (
            f"the message is not in {name}: byte {problem.start} is invalid. Correct MSH-18, or "
            "set [message] character_set for messages without it"
        )
        raise Unusable([Problem(text, "MSH", 1, 18)]) from None


@dataclass(frozen=True, slots=True)
class Delimiters:
    """The delimiters that a message declares, and its character set, for escape sequences."""

    field: str
    component: str
    repetition: str
    escape: str
    part: str
    character_set: str

    def unescape(self, text: str) -> str:
        """Return the text that is meant, with line feeds as line ends.

        Unknown sequences are left as they are: nothing of a result gets lost.
        """
        if self.escape in text:
            mark = re.escape(self.escape)
            text = re.sub(f"{mark}([^{mark}]*){mark}", self._meaning, text)
        return _LINES.sub("\n", text).translate(_LEFT_OUT)

    def _meaning(self, found: re.Match[str]) -> str:
        name = found[1]
        known = {
            "F": self.field,
            "S": self.component,
            "R": self.repetition,
            "E": self.escape,
            "T": self.part,
            "H": "",
            "N": "",
        }
        if name in known:
            return known[name]
        if coded := _HEX.fullmatch(name):
            encoding = CHARACTER_SETS[self.character_set]
            return bytes.fromhex(coded[1]).decode(encoding, errors="replace")
        if layout := _LAYOUT.fullmatch(name):
            return _layout(layout[1], layout[2])
        return found[0]


def _layout(command: str, digits: str) -> str:
    times = min(int(digits or 1), _MOST_REPEATED)
    if command in _LINE_ENDS:
        return "\n" * times
    return " " * times if command == "sk" else ""
