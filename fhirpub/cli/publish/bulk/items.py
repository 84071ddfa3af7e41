"""What is loaded, one report after another, and the submission that is made of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fhirpub.cli.publish.documents import siblings_of, to_attachment
from fhirpub.cli.publish.files import UnusableFile, read_file
from fhirpub.cli.publish.service import Service
from fhirpub.cli.publish.submission import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One report: a file, or one line of a file.

    ``base`` is the folder that the paths of its documents do not lead out of. ``raw`` are the
    bytes of a line; a file is read when its turn has come. ``has_siblings`` is whether documents
    next to it belong to it. ``problem`` is why it cannot be sent.
    """

    file: Path
    base: Path
    line: int | None = None
    raw: bytes = b""
    has_siblings: bool = False
    problem: str = ""


def submission_in(item: Item, service: Service) -> Submission:
    """Return the submission of an item as it is written. Raises UnusableFile."""
    if item.problem:
        raise UnusableFile(item.problem)
    raw = item.raw if item.line else read_file(item.file, service.limit)
    is_xml = not item.line and item.file.suffix.lower() == ".xml"
    parse = Submission.from_xml if is_xml else Submission.from_json
    return parse(raw, service.types)


def submission_of(item: Item, service: Service) -> Submission:
    """Return the submission of an item, with its documents. Raises UnusableFile."""
    submission = submission_in(item, service)
    submission.read_documents(service.documents(item.file.parent, item.base))
    if item.has_siblings and not submission.has_documents:
        found = siblings_of(item.file)
        submission.add([to_attachment(file, read_file(file, service.limit)) for file in found])
    return submission
