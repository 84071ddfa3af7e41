"""Resources and Bundles in the format that a client asks for; pure, for any thread or process."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored, pretty
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.interactions.context import Context
from fhirpub.interactions.summary import subset
from fhirpub.interactions.versions import Listing, Shown, without_documents


@dataclass(frozen=True, slots=True)
class Format:
    """XML or JSON, with line breaks for people or without."""

    is_xml: bool
    in_lines: bool

    @property
    def is_stored(self) -> bool:
        """Whether resources are stored in this format."""
        return not self.is_xml and not self.in_lines


def serialize(resource: bytes | JsonObject, form: Format) -> bytes:
    """Return a resource, stored JSON or to be encoded; raises NotExpressible."""
    if form.is_xml:
        parsed = loads_stored(resource) if isinstance(resource, bytes) else resource
        return write_xml(parsed, pretty=form.in_lines)
    if form.in_lines:
        return pretty(loads_stored(resource) if isinstance(resource, bytes) else resource)
    return resource if isinstance(resource, bytes) else dumps(resource)


def serialize_stored(_context: Context, body: bytes, *, form: Format) -> bytes:
    """Return stored JSON in a format; raises NotExpressible."""
    return serialize(body, form)


def serialize_subset(
    context: Context, _body: bytes, *, version: Shown, summary: str, elements: str, form: Format
) -> bytes:
    """Return the part of a version that is asked for; raises NotExpressible."""
    resource = without_documents(version, context=context)
    schema = context.schemas.document(resource["resourceType"])
    return serialize(subset(resource, schema, summary=summary, elements=elements), form)


def serialize_bundle(
    context: Context, _body: bytes, *, listing: Listing, asked: str, form: Format
) -> bytes:
    """Return a Bundle whose links have the parameters ``asked``, too; raises NotExpressible."""
    bundle = listing.bundle(context)
    for link in bundle["link"] if asked else ():
        link["url"] += f"{'&' if '?' in link['url'] else '?'}{asked}"
    return serialize(bundle, form)
