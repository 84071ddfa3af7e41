"""The OpenAPI document of the service with every included resource type, for generators.

``python -m tests.client.document FILE`` writes it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.service import RunningService
from tests.shelf import SHELF

_RENAMED = {"Delivery": "DeliveryWithBody"}
"""Generators take such names for the items of lists."""
_DESCRIBING = ("CapabilityStatement", "OperationDefinition")
"""What describes the service; each list of resource types in it has 150 names."""


def name_of(schema: str) -> str:
    """Return the name of a class for a schema: `AuditEventAgent` for `AuditEvent.agent`."""
    if schema in _RENAMED:
        return _RENAMED[schema]
    return "".join(part[:1].upper() + part[1:] for part in schema.split("."))


def openapi_document(folder: Path) -> dict[str, Any]:
    """Return the document of what clients send and get, with names that can be names of classes.

    The data of an event get a name, such as `DiagnosticReportCreatedData`: a generator would
    number them, and others with each event that is added.
    """
    config = Config(plugins=PluginsConfig(enabled=SHELF))
    with RunningService(folder, config=config) as service:
        document: dict[str, Any] = service.request("GET", "/openapi.json").json
    text = json.dumps({**document, "paths": {}})
    for schema in document["components"]["schemas"]:
        text = text.replace(f'/schemas/{schema}"', f'/schemas/{name_of(schema)}"')
        text = text.replace(f'"{schema}": {{', f'"{name_of(schema)}": {{')
    named: dict[str, Any] = json.loads(text)
    schemas = named["components"]["schemas"]
    for name in [name for name in schemas if name.startswith(_DESCRIBING)]:
        del schemas[name]
    for name in [name for name in schemas if name.endswith("Event")]:
        data = schemas[name].get("properties", {}).get("data", {})
        if "properties" in data:
            of_event = f"{name.removesuffix('Event')}Data"
            schemas[of_event] = data
            schemas[name]["properties"]["data"] = {"$ref": f"#/components/schemas/{of_event}"}
    return named


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        Path(sys.argv[1]).write_text(json.dumps(openapi_document(Path(folder))))
