"""Documents that come with a report: as attachments, and where the files are found."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from fhirpub.cli.publish.files import UnusableFile, is_regular, read_file
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import instant

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SIBLINGS = (".pdf", ".html", ".txt", ".rtf", ".jpg", ".jpeg", ".png", ".tif", ".tiff")
"""The documents that belong to a report of the same name in a folder, in this order."""


@dataclass(frozen=True, slots=True)
class Documents:
    """Where the documents of a file are found.

    ``folder`` is what relative paths are relative to, ``base`` the folder that no path leads out
    of, and ``limit`` the largest size in bytes.
    """

    folder: Path
    base: Path
    limit: int

    def find(self, url: str) -> Path:
        """Return the file that an attachment names by ``url``. Raises UnusableFile."""
        for name in (_path(url), unquote(_path(url))):
            try:
                found = (self.folder / name).resolve(strict=True)
            except (OSError, ValueError, RuntimeError):
                continue
            if not found.is_relative_to(self.base.resolve()):
                raise UnusableFile(
                    "leads out of the folder of the reports; allow it with --documents-from"
                )
            return found
        raise UnusableFile("names a document that does not exist")

    def relative(self, url: str) -> Path | None:
        """Return the path of a document below ``base``, whether it exists or not.

        None if ``url`` is an absolute path, or leads out of the folder.
        """
        names = [unquote(_path(url)), _path(url)]
        name = next((name for name in names if self._exists(name)), names[0])
        path = Path(os.path.normpath(self.folder / name))
        is_inside = path != self.base and path.is_relative_to(self.base)
        return path.relative_to(self.base) if is_inside and not name.startswith("/") else None

    def _exists(self, name: str) -> bool:
        with suppress(OSError, ValueError):
            return (self.folder / name).exists()
        return False

    def read(self, url: str) -> JsonObject:
        """Return the attachment of the file that is named by ``url``. Raises UnusableFile."""
        file = self.find(url)
        return to_attachment(file, read_file(file, self.limit))


def _path(url: str) -> str:
    return re.sub(r"\Afile:(//(localhost)?(?=/))?", "", url)


def is_path(attachment: object) -> bool:
    """Return whether an attachment names a file: by a ``url`` of ``file:`` or without a scheme."""
    if not isinstance(attachment, dict) or "data" in attachment:
        return False
    url = attachment.get("url")
    if not isinstance(url, str) or not url or url.startswith("#"):
        return False
    return url.startswith("file:") or not _SCHEME.match(url)


def siblings_of(file: Path) -> Iterator[Path]:
    """Yield the documents next to a report that have its name, such as ``a.pdf`` of ``a.json``."""
    for ending in _SIBLINGS:
        for name in (ending, ending.upper()):
            sibling = file.with_suffix(name)
            if is_regular(sibling):
                yield sibling
                break  # where case does not count, both names lead to one file


def attachment(file: Path) -> JsonObject:
    """Return a file as a FHIR Attachment with its date."""
    modified_ms = file.stat().st_mtime_ns // 1_000_000
    return {**to_attachment(file, file.read_bytes()), "creation": instant(modified_ms)}


def to_attachment(file: Path, data: bytes) -> JsonObject:
    """Return the bytes of a file as a FHIR Attachment.

    It has no date: the same report with a copy of the file must be the same content.
    """
    return {
        "contentType": mimetypes.guess_type(file.name)[0] or "application/octet-stream",
        "title": os.fsencode(file.name).decode(errors="replace"),  # a name may be Latin-1
        "data": base64.b64encode(data).decode(),
        "hash": hashlib.sha256(data).hexdigest(),
    }
