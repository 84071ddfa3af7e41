"""The fast JSON Schema engine and the keywords that it is taught (ADR 13)."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from fhirpub.fhir.schema_predicates import is_base64, is_distinct, is_paired
from fhirpub.fhir.strict_json import JsonObject


def fast_validator(
    schema: JsonObject, registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Validator:
    """Return a compiled schema; its patterns run in linear time, whatever a client sends."""
    return jsonschema_rs.Draft202012Validator(
        schema,
        registry=registry,
        keywords={
            "fhirBase64": _FhirBase64,
            "fhirDistinct": _FhirDistinct,
            "fhirInteger": _FhirInteger,
            "fhirPaired": _FhirPaired,
        },
        pattern_options=jsonschema_rs.RegexOptions(),
        offline=True,
    )


class _FhirPaired:
    def __init__(self, _parent: object, name: str, _path: object) -> None:
        self._name = name

    def validate(self, instance: Any) -> None:
        if isinstance(instance, dict) and not is_paired(instance, self._name):
            raise ValueError(self._name)


class _FhirDistinct:
    def __init__(self, _parent: object, name: str, _path: object) -> None:
        self._name = name

    def validate(self, instance: Any) -> None:
        if isinstance(instance, dict) and not is_distinct(instance, self._name):
            raise ValueError(self._name)


class _FhirBase64:
    def __init__(self, _parent: object, _value: object, _path: object) -> None:
        """Take what the engine gives; there is nothing to remember."""

    def validate(self, instance: object) -> None:
        if isinstance(instance, str) and not is_base64(instance):
            raise ValueError("not base64")


class _FhirInteger:
    def __init__(self, _parent: object, _value: object, _path: object) -> None:
        """Take what the engine gives; there is nothing to remember."""

    def validate(self, instance: object) -> None:
        if type(instance) is not int:
            raise ValueError("not an integer")
