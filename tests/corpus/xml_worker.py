"""Runs in the environment of fhir.resources: XML to JSON and back, as that library does it.

A line is a JSON object: ``{"xml": …}`` is answered with the resource, a resource with its XML.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any
from xml.etree import ElementTree as ET


def answer(line: dict[str, Any]) -> dict[str, Any]:
    """Return a resource for XML, and XML for a resource."""
    library = importlib.import_module("fhir.resources")
    if "xml" not in line:
        model = library.construct_fhir_element(line["resourceType"], line)
        return {"xml": model.xml(pretty_print=False)}
    name = ET.fromstring(line["xml"]).tag.rpartition("}")[2]
    of_type = library.get_fhir_model_class(name)
    model = of_type.parse_raw(line["xml"].encode(), content_type="application/xml")
    resource: dict[str, Any] = json.loads(model.json())
    return resource


def main() -> None:
    """Respond until the input ends."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line)), default=bytes.decode) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
