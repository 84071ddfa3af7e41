"""What an operation is without the attributes that a plugin leaves out."""

from __future__ import annotations

from typing import Any

from fhirpub.plugin_api.operations import Operation, OperationParameter, OperationRequest

NEVER: Any = None


def test_an_operation_is_about_one_resource_and_follows_nothing() -> None:
    operation = Operation(
        type="X", code="c", title="t", description="d", media_type="text/plain", run=NEVER
    )

    assert operation.on_instance
    assert not any((operation.includes, operation.parameters))


def test_a_parameter_of_an_operation_may_be_left_out() -> None:
    assert not OperationParameter(name="a", type="code", meaning="m").required


def test_requests_share_no_parameters() -> None:
    first, second = OperationRequest(resource={}), OperationRequest(resource={})

    assert first.parameters is not second.parameters
    assert first.included is not second.included
