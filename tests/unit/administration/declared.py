"""What clients know of operations: addresses, statuses, and the parameters with their limits."""

from __future__ import annotations

from collections.abc import Iterable

from fhirpub.administration.operation import Operation, Parameter


def declared(operations: Iterable[Operation]) -> dict[str, list[str]]:
    """Return a line for each operation, and one for each of its parameters, by the command."""
    return {
        one.command: [
            f"{one.method} {one.path} {one.status}",
            *filter(None, [_marks(one)]),
            *map(_parameter, one.parameters),
        ]
        for one in operations
    }


def _marks(operation: Operation) -> str:
    marks = {
        "final": operation.is_final,
        "creates a store": operation.creates_store,
        f"as {operation.action}": bool(operation.action),
    }
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _parameter(parameter: Parameter) -> str:
    words = [parameter.place, f"{parameter.name}{'!' if parameter.required else ''}"]
    words.append("|".join(parameter.choices) or parameter.type)
    if parameter.minimum is not None:
        words.append(f">={parameter.minimum}")
    if parameter.maximum is not None:
        words.append(f"<={parameter.maximum}")
    if parameter.max_length != Parameter(name="", text="").max_length:
        words.append(f"{parameter.max_length} characters")
    return " ".join(words)
