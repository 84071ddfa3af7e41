"""The groups of an ORU^R01: what belongs to which OBR (HL7 v2.5.1, 7.3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fhirpub_hl7v2.message import Message, Segment
from fhirpub_hl7v2.problems import Code, Unusable

TEXTS = frozenset({"TX", "FT", "ST"})
"""Types of OBX-5 whose values may be one line of a longer text."""


@dataclass(slots=True)
class Noted:
    """A segment with the comments (NTE) that follow it, and with further lines of its text."""

    segment: Segment
    notes: list[Segment] = field(default_factory=list)
    lines: list[Segment] = field(default_factory=list)

    @property
    def comments(self) -> str:
        """The text of all comments."""
        values = [value for note in self.notes for value in note.values(3)]
        return "\n".join(map(str, values))


@dataclass(slots=True)
class Group:
    """One OBR with its patient, order, results and specimens."""

    patient: Segment | None
    order: Segment | None
    request: Noted
    results: list[Noted] = field(default_factory=list)
    specimens: list[Noted] = field(default_factory=list)


def groups_of(message: Message) -> list[Group]:
    """Return the group of each OBR; segments that mean nothing here are ignored.

    Raises Unusable: a result has no OBR, or an OBR has no patient.
    """
    groups = list(_walk(message))
    wrong = [
        group.request.segment.problem("comes without a PID before it", code=Code.SEQUENCE)
        for group in groups
        if group.patient is None
    ]
    if not groups:
        wrong = [message.header.problem("no OBR follows", code=Code.SEQUENCE)]
    if wrong:
        raise Unusable(wrong)
    return groups


def _walk(message: Message) -> Iterator[Group]:
    patient: Segment | None = None
    order: Segment | None = None
    group: Group | None = None
    noted: Noted | None = None
    for segment in message.segments[1:]:
        match segment.name:
            case "PID":
                patient, order, group, noted = segment, None, None, None
            case "ORC":
                order, noted = segment, None
            case "OBR":
                noted = Noted(segment)
                group = Group(patient, order, noted)
                order = None  # the identifiers of an ORC are those of one OBR
                yield group
            case "OBX" if not segment.value(3) and segment.text(2) in ("", *TEXTS):
                noted = _continued(group, segment)
            case "OBX" | "SPM":
                noted = _added(group, segment)
            case "NTE" if noted is not None:
                noted.notes.append(segment)


def _continued(group: Group | None, segment: Segment) -> Noted | None:
    """Take an OBX without a code as the next line of the text before it, if there is one.

    Other texts are results of their own; what has no value either is left out.
    """
    last = group.results[-1] if group is not None and group.results else None
    if last is not None and last.segment.text(2) in TEXTS and segment.text(2) in TEXTS:
        last.lines.append(segment)
        return last
    return _added(group, segment) if segment.values(5) else None


def _added(group: Group | None, segment: Segment) -> Noted:
    if group is None:
        raise Unusable([segment.problem("comes before any OBR", code=Code.SEQUENCE)])
    noted = Noted(segment)
    (group.results if segment.name == "OBX" else group.specimens).append(noted)
    return noted
