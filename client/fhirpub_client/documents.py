"""Documents of a report: read from files, hashed, and sent in pieces."""

from __future__ import annotations

import base64
import hashlib
import json
import mimetypes
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PIECE_BYTES = 3 * 64 * 1024
"""A multiple of three, so that the pieces of base64 fit together (RFC 4648, section 4)."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file that becomes an attachment of a report.

    Attributes:
        file: The file. It must not change while it is sent.
        content_type: The media type, by default that of the file's name.
        title: What people see, by default the name of the file.
    """

    file: str | Path
    content_type: str = ""
    title: str = ""

    def to_attachment(self) -> dict[str, Any]:
        """Return the FHIR Attachment without its data, with the hash that the service checks."""
        path = Path(self.file)
        kind = self.content_type or mimetypes.guess_type(path.name)[0]
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return {
            "contentType": kind or "application/octet-stream",
            "title": self.title or path.name,
            "hash": digest,
        }


@dataclass(slots=True)
class Body:
    """The body of a registration. Files are read as it is sent, each time that it is sent.

    Attributes:
        size: The length in bytes.
    """

    size: int = 0
    _parts: list[bytes | Path] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        parameters: Mapping[str, Any],
        documents: Sequence[Document],
        *,
        entry: str,
        element: str,
    ) -> Body:
        """Return the body with documents added to an element of an entry.

        Args:
            parameters: The Parameters to be sent; they are not changed.
            documents: What is added.
            entry: The name of the entry that gets them, such as `diagnosticReport`.
            element: The element of its resource, such as `presentedForm`.

        Raises:
            OSError: A file cannot be read.
            ValueError: There is no such entry.
        """
        if not documents:
            return cls._joined([json.dumps(parameters).encode()])
        mark = secrets.token_hex(16)
        attachments = [
            {**document.to_attachment(), "data": f"{mark}{place}."}
            for place, document in enumerate(documents)
        ]
        text = json.dumps(_with_attachments(parameters, attachments, entry, element))
        parts: list[bytes | Path] = []
        for place, document in enumerate(documents):
            before, _, text = text.partition(f"{mark}{place}.")
            parts += [before.encode(), Path(document.file)]
        return cls._joined([*parts, text.encode()])

    @classmethod
    def _joined(cls, parts: list[bytes | Path]) -> Body:
        sizes = (
            len(part) if isinstance(part, bytes) else -(-part.stat().st_size // 3) * 4
            for part in parts
        )
        return cls(sum(sizes), parts)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces of at most 256 KiB, but for what the caller had in memory."""
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
                continue
            with part.open("rb") as stream:
                while piece := stream.read(_PIECE_BYTES):
                    yield base64.b64encode(piece)


def _with_attachments(
    parameters: Mapping[str, Any], attachments: list[dict[str, Any]], entry: str, element: str
) -> dict[str, Any]:
    entries = [dict(each) for each in parameters.get("parameter", ())]
    for found in entries:
        if found.get("name") == entry and "resource" in found:
            resource = dict(found["resource"])
            resource[element] = [*resource.get(element, ()), *attachments]
            found["resource"] = resource
            return {**parameters, "parameter": entries}
    raise ValueError(f"there is no entry {entry} to add documents to")


def data_of(attachment: Mapping[str, Any]) -> bytes | None:
    """Return the data within an attachment, nothing if it only has an address.

    Raises ValueError if it has neither.
    """
    if "data" in attachment:
        return base64.b64decode(attachment["data"])
    if "url" not in attachment:
        raise ValueError("the attachment has neither data nor url")
    return None


def check_hash(attachment: Mapping[str, Any], data: bytes) -> bytes:
    """Return data that matches the hash of an attachment. Raises ValueError if it does not."""
    stated = attachment.get("hash")
    if stated and stated != hashlib.sha256(data).hexdigest():
        raise ValueError("the document has another hash than its attachment states")
    return data
