"""Runs inside a validator's environment: a resource per line in, ``ok`` or the reason out."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

Check = Callable[[dict[str, Any]], None]


def fhir_resources() -> Check:
    """Return the check by the models of fhir.resources."""
    construct = importlib.import_module("fhir.resources").construct_fhir_element

    def check(resource: dict[str, Any]) -> None:
        construct(resource["resourceType"], resource)

    return check


def fhirclient() -> Check:
    """Return the check by the models of fhirclient, parsed strictly and serialized again."""
    factory = importlib.import_module("fhirclient.models.fhirelementfactory").FHIRElementFactory

    def check(resource: dict[str, Any]) -> None:
        factory.instantiate(resource["resourceType"], resource).as_json()

    return check


def fhircraft() -> Check:
    """Return the check by the models and invariants of fhircraft, for each resource separately.

    Its containers accept any resource in an entry, so the entries are checked one by one. The
    packages' own start would load the models of other releases and a mapper as well, for ten
    seconds and more; only the parts that R4 needs are loaded.
    """
    constants = {"__version__": "0.9.0", "SUPPORTED_FHIR_RELEASES": ("R4", "R4B", "R5")}
    vars(without_running("fhircraft")).update(constants)
    for release in ("R4B", "R5"):
        without_running(f"fhircraft.fhir.resources.datatypes.{release}")
    core = importlib.import_module("fhircraft.fhir.resources.datatypes.R4.core")

    def check(resource: dict[str, Any]) -> None:
        for record in (resource, *within(resource)):
            getattr(core, record["resourceType"]).model_validate(record)

    check({"resourceType": "Patient", "active": True})  # the first one loads hundreds of models
    return check


def without_running(name: str) -> ModuleType:
    """Return a package whose modules can be imported, without running its own code."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    package = sys.modules[name] = importlib.util.module_from_spec(spec)
    return package


def within(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the resources in the entries of a Bundle or the parameters of a Parameters."""
    for key in ("entry", "parameter"):
        for item in resource.get(key, ()):
            if "resource" in item:
                yield item["resource"]
                yield from within(item["resource"])


CHECKS = {"fhir.resources": fhir_resources, "fhirclient": fhirclient, "fhircraft": fhircraft}


def main() -> None:
    """Respond until the input ends."""
    gc.disable()  # thousands of models are created, none of them garbage
    check = CHECKS[sys.argv[1]]()
    gc.enable()
    for line in sys.stdin:
        try:
            check(json.loads(line))
        except ImportError:
            raise  # an error is not a complaint
        except Exception as error:  # noqa: BLE001  # whatever it raises is its opinion
            sys.stdout.write(" ".join(f"{type(error).__name__}: {error}".split())[:2000] + "\n")
        else:
            sys.stdout.write("ok\n")
        sys.stdout.flush()
    os._exit(0)  # freeing the models again takes seconds


if __name__ == "__main__":
    main()
