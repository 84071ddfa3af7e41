"""The XML Schema of FHIR R4 as HL7 publishes it, independent of this project."""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from lxml import etree

_ARCHIVE = Path(__file__).parent / "corpus" / "fhir-r4-xsd.tar.xz"
# It binds languages as a closed list, and has no second 60, which R4 allows.
_STRICTER_THAN_R4 = ("}language'", ":60")


def faults(xml: bytes) -> list[str]:
    """Return the schema's complaint about a resource."""
    schema = _schema()
    schema.validate(etree.fromstring(xml))
    complaints = [str(item.message) for item in schema.error_log]  # type: ignore[attr-defined]  # it is
    return [name for name in complaints if not any(known in name for known in _STRICTER_THAN_R4)]


@cache
def _schema() -> etree.XMLSchema:
    with TemporaryDirectory() as folder, tarfile.open(_ARCHIVE) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                Path(folder, Path(member.name).name).write_bytes(content.read())
        return etree.XMLSchema(etree.parse(Path(folder, "fhir-single.xsd")))
