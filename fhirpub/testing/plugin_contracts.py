"""Contracts for what plugins add beside resource types: test classes to inherit."""

from __future__ import annotations

from fhirpub.testing.contracts.code_sources import CodeSourceContract
from fhirpub.testing.contracts.event_sinks import EventSinkContract, SinkReceiver
from fhirpub.testing.contracts.operations import OperationContract
from fhirpub.testing.contracts.token_issuers import TokenIssuerContract

__all__ = [
    "CodeSourceContract",
    "EventSinkContract",
    "OperationContract",
    "SinkReceiver",
    "TokenIssuerContract",
]
