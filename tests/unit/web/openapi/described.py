"""The OpenAPI document in lines, one for each thing that clients rely on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def wanted(name: str) -> list[str]:
    """Return the lines that are wanted. A change of the interface changes the file, too."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def of_tags(lines: Iterable[str], *tags: str) -> list[str]:
    """Return the lines of the operations that have one of these tags."""
    kept, found = False, []
    for line in lines:
        if not line.startswith("  "):
            kept = any(line.endswith(f" [{tag}]") for tag in tags)
        if kept:
            found.append(line)
    return found


def operations(document: Any) -> Iterator[str]:
    """Yield each operation: its names, scopes, parameters, body, and answers with headers."""
    for path, methods in sorted(document["paths"].items()):
        for method, one in sorted(methods.items()):
            yield f"{method.upper()} {path} {one['operationId']} [{', '.join(one['tags'])}]"
            yield f"  {one['summary']}"
            yield f"  needs {_words(_scopes(one['security']))}"
            if names := [_name(parameter) for parameter in one.get("parameters", ())]:
                yield f"  takes {_words(names)}"
            if body := one.get("requestBody"):
                needed = "needs" if body.get("required") else "may have"
                yield f"  {needed} a body of {_content(body['content'])}"
            answers = one["responses"].items()
            yield from (f"  {status} {_answer(each)}" for status, each in answers if status < "4")
            refused = [f"{status} {_answer(each)}" for status, each in answers if status >= "4"]
            yield f"  refuses {_words(refused)}"


def parameters(document: Any) -> Iterator[str]:
    """Yield the shared parameters and headers, and the meaning of refusals."""
    parts = document["components"]
    for name, one in sorted(parts["parameters"].items()):
        needed = " needed" if one.get("required") else ""
        yield f"{name}: {one['name']} in {one['in']}{needed} {_schema(one['schema'])}"
    for name, one in sorted(parts["headers"].items()):
        needed = " needed" if one.get("required") else ""
        yield f"{name}:{needed} {_schema(one['schema'])}"
    for name, one in sorted(parts["responses"].items()):
        yield f"{name}: {one['description']} {_answer(one)}"
    for name, one in sorted(parts["securitySchemes"].items()):
        yield f"{name}: {one['type']}"
        flow = one.get("flows", {}).get("clientCredentials", {})
        yield from (f"  {scope}: {text}" for scope, text in sorted(flow.get("scopes", {}).items()))


def schemas(document: Any) -> Iterator[str]:
    """Yield the members of the schemas that are the service's own."""
    for name, one in sorted(document["components"]["schemas"].items()):
        if name in _OWN or name.endswith("Event"):
            yield f"{name}: {_schema(one)}"


_OWN = {
    *("Attempt", "Delivery", "DeliveryList", "DisclosedEndpoint", "EndpointList", "EventList"),
    *("EventTypeList", "OAuthError", "Replayed", "Stats", "Token", "Trial", "WebhookEndpoint"),
    *("Anything", "Batch", "BatchResponse", "Health", "MergePatch", "Object", "TokenRequest"),
    *("RevocationRequest", "DiagnosticReportOrOutcome", "RegisteredDiagnosticReportOrOutcome"),
    *("RegisterDiagnosticReport", "RegisterDiagnosticReport.diagnosticReport"),
    *("RegisteredDiagnosticReport", "RegisteredDiagnosticReport.issues"),
    *("UpdateDiagnosticReport", "ValidateDiagnosticReport"),
}


def _words(items: Iterable[str]) -> str:
    return ", ".join(items) or "nothing"


def _scopes(security: Iterable[Any]) -> list[str]:
    return [f"{name} {' '.join(of)}".strip() for one in security for name, of in one.items()]


def _name(parameter: Any) -> str:
    if "$ref" in parameter:
        return f"#{parameter['$ref'].rpartition('/')[2]}"
    return f"{parameter['name']} {_schema(parameter['schema'])}"


def _content(content: Any) -> str:
    return "; ".join(f"{kind} {_schema(one.get('schema', {}))}" for kind, one in content.items())


def _answer(answer: Any) -> str:
    if "$ref" in answer:
        return f"#{answer['$ref'].rpartition('/')[2]}"
    headers = _words(answer.get("headers", {}))
    links = _words(answer.get("links", {}))
    return f"{_content(answer.get('content', {}))} | {headers} | {links}"


def _schema(one: Any) -> str:
    """Return what a schema demands, without its words."""
    if "$ref" in one:
        return f"#{one['$ref'].rpartition('/')[2]}"
    said = [
        f"{name}={one[name]}"
        for name in ("type", "format", "pattern", "enum", "const", "default", "minimum", "maximum")
        if name in one
    ]
    said += [
        f"{name}={one[name]}"
        for name in ("minLength", "maxLength", "minItems", "maxItems", "minProperties")
        if name in one
    ]
    if "required" in one:
        said.append(f"required={','.join(one['required'])}")
    if "items" in one:
        said.append(f"items({_schema(one['items'])})")
    inner = one.get("properties", {})
    said += [f"{name}({_schema(item)})" for name, item in inner.items() if item is not True]
    for name in ("oneOf", "anyOf", "allOf"):
        said += [f"{name}({_schema(item)})" for item in one.get(name, ()) if item is not True]
    return " ".join(said) or "any"
