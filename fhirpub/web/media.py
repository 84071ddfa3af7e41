"""Which formats are spoken: Accept, Content-Type, _format and Prefer (D-69, D-71, D-74)."""

from __future__ import annotations

import re
from functools import lru_cache

from fhirpub.errors import FhirpubError

FHIR_JSON = "application/fhir+json"
FORM = "application/x-www-form-urlencoded"
_JSON = ("application/fhir+json", "application/json", "text/json", "application/json+fhir")
_ANY = ("*/*", "application/*")
_FORMATS = ("json", *_JSON, "application/fhir json")
_PREFERENCE = re.compile(r'\s*([A-Za-z-]+)\s*=\s*"?([A-Za-z-]+)"?\s*(?:;.*)?')


class NotAcceptable(FhirpubError):
    """The client accepts no format that is spoken here."""


class UnsupportedMediaType(FhirpubError):
    """The body is of a type that is not read here."""


@lru_cache(maxsize=256)
def answer_type(accept: str, form: str) -> str:
    """Return the media type of the answer; raises NotAcceptable.

    ``form`` is the parameter ``_format``, which overrides ``Accept``. A client that asks for a
    generic type alone gets that one.
    """
    if form:
        if form in _FORMATS:
            return FHIR_JSON
        raise NotAcceptable("only JSON is spoken here: _format=json")
    if not accept:
        return FHIR_JSON
    wanted = [each for each in map(_weighted, accept.split(",")) if each[1] > 0]
    names = [name for name, _weight in wanted]
    if any(name in (*_ANY, FHIR_JSON) for name in names):
        return FHIR_JSON
    generic = next((name for name in names if name in _JSON), "")
    if generic:
        return generic if generic != "application/json+fhir" else FHIR_JSON
    raise NotAcceptable(f"only JSON is spoken here: Accept: {FHIR_JSON}")


def check_json(content_type: str, encoding: str) -> None:
    """Raise UnsupportedMediaType unless a body is JSON, not compressed."""
    if content_type.partition(";")[0].strip().lower() not in _JSON:
        raise UnsupportedMediaType("the body must be application/json")
    check_encoding(encoding)


@lru_cache(maxsize=256)
def check_fhir_json(content_type: str, encoding: str) -> None:
    """Raise UnsupportedMediaType unless a body is FHIR R4 as JSON in UTF-8, not compressed."""
    name, _, rest = content_type.partition(";")
    if name.strip().lower() not in _JSON:
        raise UnsupportedMediaType(f"the body must be {FHIR_JSON}")
    for parameter in filter(None, (each.strip() for each in rest.split(";"))):
        key, _, value = parameter.partition("=")
        value = value.strip('"').lower()
        if key.lower() == "charset" and value not in ("utf-8", "utf8"):
            raise UnsupportedMediaType("the body must be UTF-8")
        if key.lower() == "fhirversion" and value not in ("4.0", "4.0.1"):
            raise UnsupportedMediaType("the body must be FHIR R4: fhirVersion=4.0")
    check_encoding(encoding)


def check_encoding(encoding: str) -> None:
    """Raise UnsupportedMediaType for a compressed body (D-71)."""
    if encoding and encoding.lower() != "identity":
        raise UnsupportedMediaType("the body must not be compressed")


def check_form(content_type: str, encoding: str) -> None:
    """Raise UnsupportedMediaType unless a body is a form (D-135)."""
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise UnsupportedMediaType(f"the body must be {FORM}")
    check_encoding(encoding)


def preference(prefer: str, name: str) -> str:
    """Return a preference of the Prefer header, such as that of ``return`` (RFC 7240)."""
    for each in prefer.split(","):
        match = _PREFERENCE.fullmatch(each)
        if match and match[1].lower() == name:
            return match[2]
    return ""


def _weighted(each: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in each.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, float(parameter[2:])
            except ValueError:
                return name, 0.0
        key, _, value = parameter.partition("=")
        if key == "fhirversion" and value.strip('"') not in ("4.0", "4.0.1"):
            return name, 0.0
    return name, 1.0
