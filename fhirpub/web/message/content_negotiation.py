"""Which formats are spoken: Accept, Content-Type, _format and Prefer (D-69, D-74, D-253)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from fhirpub.errors import FhirpubError
from fhirpub.problems import RequestProblem

FHIR_JSON = "application/fhir+json"
FHIR_XML = "application/fhir+xml"
FORM = "application/x-www-form-urlencoded"
# The name that we answer with first, the one from before R4 last.
_JSON = (FHIR_JSON, "application/json", "text/json", "application/json+fhir")
_XML = (FHIR_XML, "application/xml", "text/xml", "application/xml+fhir")
_OF_R4 = ("4.0", "4.0.1")
_WEIGHT = re.compile(r"0(?:\.[0-9]*)?|1(?:\.0*)?|\.[0-9]+")
_PREFERENCE = re.compile(r'\s*([A-Za-z-]+)\s*=\s*"?([A-Za-z-]+)"?\s*(?:;.*)?')


class NotAcceptable(FhirpubError):
    """The client accepts no format that is spoken here."""

    details = RequestProblem.FORMAT_UNSUPPORTED


class UnsupportedMediaType(FhirpubError):
    """The body is of a type that is not read here."""

    details = RequestProblem.BODY_TYPE_UNSUPPORTED


class CompressedBody(UnsupportedMediaType):
    """The body has a content coding that is not read here (D-71)."""

    def __init__(self, accepted: str) -> None:
        super().__init__(f"the Content-Encoding of the body must be {accepted}")
        self.accepted = accepted


def is_xml(media_type: str) -> bool:
    """Return whether a media type is XML, not JSON."""
    return media_type in _XML


@lru_cache(maxsize=256)
def answer_type(accept: str, form: str) -> str:
    """Return the media type of the answer; raises NotAcceptable.

    ``form`` is the parameter ``_format``, which overrides ``Accept``. JSON wins where both are
    as welcome. A client that asks for a generic type alone gets that one.
    """
    if form:
        return _type_of_format(form)
    if not accept:
        return FHIR_JSON
    ranges = dict(sorted(filter(None, map(_range, accept.split(",")))))  # the greatest weight last
    weights = {name: _weight(name, ranges) for name in (*_JSON, *_XML)}
    names = max(_JSON, _XML, key=lambda each: max(map(weights.__getitem__, each)))
    wanted = max(names, key=weights.__getitem__)
    if not weights[wanted]:
        raise NotAcceptable(f"Accept must allow {FHIR_JSON} or {FHIR_XML}, of FHIR R4")
    return names[0] if weights[names[0]] or wanted == names[-1] else wanted


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether a client welcomes gzip, at least as much as no coding (RFC 9110, 12.5.3)."""
    codings = map(_parse, accept_encoding.split(","))
    weights = {name: _weight_in(parameters) for name, parameters in codings}
    of_others = weights.get("*", 0.0)
    weight = weights.get("gzip", weights.get("x-gzip", of_others))
    return weight > 0 and weight >= weights.get("identity", of_others)


def check_json(content_type: str) -> None:
    """Raise UnsupportedMediaType unless a body is JSON."""
    _check_body(content_type, among=_JSON, usual="application/json")


@lru_cache(maxsize=256)
def body_type(content_type: str, *, also: tuple[str, ...] = ()) -> str:
    """Return the media type of a body that is FHIR R4 in UTF-8.

    ``also`` are further types that are accepted. Raises UnsupportedMediaType for others.
    """
    name, parameters = _parse(content_type)
    if name not in (*_JSON, *_XML, *also):
        types = " or ".join(dict.fromkeys((FHIR_JSON, FHIR_XML, *also)))
        raise UnsupportedMediaType(f"the Content-Type of the body must be {types}")
    for key, value in parameters:
        if key == "charset" and value not in ("utf-8", "utf8"):
            raise UnsupportedMediaType("the charset of the Content-Type must be UTF-8")
        if key == "fhirversion" and value not in _OF_R4:
            raise UnsupportedMediaType("the Content-Type must be of FHIR R4: fhirVersion=4.0")
    return name


def prefers_fhir(accept: str) -> bool:
    """Return whether a client asks for a resource, where a document is available as well."""
    ranges = [
        (name, _weight_in(parameters)) for name, parameters in map(_parse, accept.split(","))
    ]
    asked = max((weight for name, weight in ranges if name in (FHIR_JSON, FHIR_XML)), default=0.0)
    return asked > 0 and all(asked >= weight or name in (*_JSON, *_XML) for name, weight in ranges)


def names_fhir(form: str) -> bool:
    """Return the same for a ``_format``; a value that is no media type can only mean FHIR."""
    return "/" not in form or _format_name(form) in (*_JSON, *_XML)


def check_form(content_type: str) -> None:
    """Raise UnsupportedMediaType unless a body is a form."""
    _check_body(content_type, among=(FORM,), usual=FORM)


def _check_body(content_type: str, *, among: Sequence[str], usual: str) -> None:
    if _parse(content_type)[0] not in among:
        raise UnsupportedMediaType(f"the Content-Type of the body must be {usual}")


def preference(prefer: str, name: str) -> str:
    """Return a preference of the Prefer header, such as that of ``return`` (RFC 7240)."""
    for part in prefer.split(","):
        match = _PREFERENCE.fullmatch(part)
        if match and match[1].lower() == name:
            return match[2]
    return ""


def _type_of_format(form: str) -> str:
    """Return the type that ``_format`` names."""
    name = _format_name(form)
    if all(key != "fhirversion" or value in _OF_R4 for key, value in _parse(form)[1]):
        if name in ("json", *_JSON):
            return FHIR_JSON
        if name in ("xml", *_XML):
            return FHIR_XML
    raise NotAcceptable("_format must be json or xml, of FHIR R4")


def _format_name(form: str) -> str:
    """Return the name in a ``_format``, whose plus sign may have become a blank."""
    return _parse(form)[0].replace(" ", "+")


def _range(each: str) -> tuple[str, float] | None:
    """Return a media range with its weight, or nothing if it is of another version of FHIR."""
    name, parameters = _parse(each)
    if any(key == "fhirversion" and value not in _OF_R4 for key, value in parameters):
        return None
    return name, _weight_in(parameters)


def _weight_in(parameters: Sequence[tuple[str, str]]) -> float:
    weights = [value for key, value in parameters if key == "q"]
    if not weights:
        return 1.0
    return float(weights[-1]) if _WEIGHT.fullmatch(weights[-1]) else 0.0


def _weight(name: str, ranges: Mapping[str, float]) -> float:
    """Return how welcome a type is: the most specific range decides (RFC 9110, 12.5.1)."""
    kind, _, _ = name.partition("/")
    return next((ranges[item] for item in (name, f"{kind}/*", "*/*") if item in ranges), 0.0)


def _parse(media_type: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the name and the parameters of a media type, all in lower case."""
    name, *rest = (part.strip().lower() for part in media_type.split(";"))
    pairs = (item.partition("=") for item in rest if item)
    return name, [(key, value.strip('"')) for key, _, value in pairs]
