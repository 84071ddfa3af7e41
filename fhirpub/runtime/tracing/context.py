"""The header ``traceparent`` (W3C Trace Context, level 1): which trace a request belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

_PARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-[\x21-\x7e]*)?"
)
_MAX_LENGTH = 512
"""The first version has 55 characters; later ones may add to it."""
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span of a trace: what follows from it names it as its parent.

    ``trace_id`` has 32 lower-case hexadecimal digits, ``span_id`` has 16. ``is_sampled`` is
    whether the caller records the trace.
    """

    trace_id: str
    span_id: str
    is_sampled: bool = False

    @classmethod
    def parse(cls, sent: Sequence[str]) -> Self | None:
        """Return the context in the values of the header; None if it is not exactly right.

        Whatever is malformed is ignored, as the standard asks: the trace then begins here.
        """
        if len(sent) != 1 or len(sent[0]) > _MAX_LENGTH:
            return None
        found = _PARENT.fullmatch(sent[0])
        if found is None or found["version"] == "ff":
            return None
        if found["version"] == "00" and found["more"] is not None:
            return None
        if not (found["trace"].strip("0") and found["span"].strip("0")):
            return None
        return cls(found["trace"], found["span"], bool(int(found["flags"], 16) & _SAMPLED))

    @property
    def header(self) -> str:
        """The value of the header that names this span as the parent."""
        return f"00-{self.trace_id}-{self.span_id}-{self.is_sampled:02x}"
