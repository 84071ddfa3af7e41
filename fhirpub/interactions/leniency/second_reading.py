"""Reads a body again once it was found wrong, and corrects what the settings allow (D-305)."""

from __future__ import annotations

from typing import Any

from fhirpub.config.settings import FhirConfig
from fhirpub.errors import Issue
from fhirpub.fhir.lenient.empty_values import remove_empty_values
from fhirpub.fhir.lenient.time_forms import correct_times
from fhirpub.interactions.submission.record import parse
from fhirpub.runtime.stages import Stages


def read_again(
    body: bytes, *, is_xml: bool, settings: FhirConfig
) -> Stages[tuple[Any, list[Issue]]]:
    """Return the corrected content of a body, and a warning for each kind of correction.

    Without warnings nothing was corrected, and the content is as wrong as before. Only a body
    that was refused is read a second time, so that a valid one costs nothing.
    """
    drops, corrects = settings.empty_values == "drop", settings.time_forms == "lenient"
    if not (drops or corrects):
        return None, []
    content = parse(body, is_xml=is_xml)
    yield
    warnings = [*remove_empty_values(content)] if drops else []
    yield
    warnings += correct_times(content) if corrects else ()
    return content, warnings
