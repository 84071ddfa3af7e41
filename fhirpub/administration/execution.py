"""Runs an operation, wherever it was asked for: by a command or over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.administration.operation import Operation
from fhirpub.errors import NoSuchRecord


async def execute(
    operation: Operation, administration: Administration, given: Mapping[str, Any]
) -> Any:
    """Run an operation and return its result.

    What it changes, the operation itself records. A change of something that does not exist is
    recorded here, with the name that was given: it may be a guess.

    Args:
        operation: The operation.
        administration: What it works with.
        given: Its arguments, unchecked; None stands for one that is not given.

    Raises:
        FhirpubError: The refusal.
    """
    arguments = operation.arguments(given)
    try:
        return await operation.run(administration, **arguments)
    except NoSuchRecord as problem:
        if operation.method == "GET":
            raise
        what = (problem.kind.capitalize(), problem.record_id)
        async with administration.recorded(operation.audited_as, what):
            raise
