"""Runs inside a validator's environment: a resource per line in, ``ok`` or the reason out."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

Check = Callable[[dict[str, Any]], None]


def fhir_resources() -> Check:
    """Return the check by the models of fhir.resources."""
    construct = importlib.import_module("fhir.resources").construct_fhir_element

    def check(resource: dict[str, Any]) -> None:
        construct(resource["resourceType"], resource)

    return check


def fhirclient() -> Check:
    """Return the check by the models of fhirclient, read strictly and written again."""
    factory = importlib.import_module("fhirclient.models.fhirelementfactory").FHIRElementFactory

    def check(resource: dict[str, Any]) -> None:
        factory.instantiate(resource["resourceType"], resource).as_json()

    return check


def fhircraft() -> Check:
    """Return the check by the models and invariants of fhircraft, each resource by itself.

    Its containers take any resource in an entry, so what is inside is checked one by one.
    """
    core = importlib.import_module("fhircraft.fhir.resources.datatypes.R4.core")

    def check(resource: dict[str, Any]) -> None:
        for each in (resource, *within(resource)):
            getattr(core, each["resourceType"]).model_validate(each)

    return check


def within(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the resources in the entries of a Bundle or the parameters of a Parameters."""
    for key in ("entry", "parameter"):
        for each in resource.get(key, ()):
            if "resource" in each:
                yield each["resource"]
                yield from within(each["resource"])


CHECKS = {"fhir.resources": fhir_resources, "fhirclient": fhirclient, "fhircraft": fhircraft}


def main() -> None:
    """Answer until the input ends."""
    check = CHECKS[sys.argv[1]]()
    for line in sys.stdin:
        try:
            check(json.loads(line))
        except Exception as error:  # noqa: BLE001  # whatever it raises is its opinion
            sys.stdout.write(" ".join(f"{type(error).__name__}: {error}".split())[:2000] + "\n")
        else:
            sys.stdout.write("ok\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
