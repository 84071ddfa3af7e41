"""Operations of plugins: what can be asked of a resource beside reading it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fhirpub.fhir.strict_json import JsonObject

ParameterType = Literal["string", "code", "boolean", "integer", "date"]
"""The FHIR type of a parameter of an operation."""


class OperationRefused(Exception):
    """Raised by an operation that cannot be done with this resource: the request gets 422.

    Its text is a fixed sentence for the caller, which never contains a value of a resource.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationParameter:
    """A parameter of an operation, sent in the query.

    Attributes:
        name: Its name, in letters, digits and hyphens.
        type: Its FHIR type.
        meaning: What it does, for the OperationDefinition and OpenAPI.
        required: Whether it must be sent.
    """

    name: str
    type: ParameterType
    meaning: str
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRequest:
    """What an operation is about.

    Attributes:
        resource: The resource as it is shown in a search: its documents have a ``url`` instead of
            ``data``. Empty for an operation on a type.
        included: The resources that the references named by ``Operation.includes`` lead to, by
            ``Type/id``.
        parameters: The values of the parameters that were sent, of the Python type of their FHIR
            type; dates are strings.
        fhir_url: The FHIR base of the service, without a slash at its end.
    """

    resource: JsonObject
    included: Mapping[str, JsonObject] = field(default_factory=dict)
    parameters: Mapping[str, str | int | bool] = field(default_factory=dict)
    fhir_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationResult:
    """What an operation returns.

    Attributes:
        body: The body of the response.
        styles: The text of each ``style`` element of HTML. The service forbids everything else by
            a Content-Security-Policy: no script, no image, no form, no frame, no other style.
    """

    body: bytes
    styles: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """``GET {type}/{id}/${code}`` or ``GET {type}/${code}``: something computed on demand.

    It changes nothing. The service checks token, tenant, scopes and quotas as for every read,
    reads what is needed, and records the access in the audit trail. `fhirpub.testing` has a test
    for each promise in ``OperationContract``.

    Attributes:
        type: The resource type, one that is registered on its own.
        code: The name without ``$``: lower-case letters, digits and hyphens.
        title: What it does, in a few words.
        description: What it does, in sentences.
        media_type: The media type of its results, such as ``text/html; charset=utf-8``.
        run: Computes the result. It is pure, runs in a thread shared with the other requests of
            the tenant, and may raise `OperationRefused`. What else it raises leads to 500 with
            the name of the plugin; the log has the place, but not the text.
        on_instance: Whether it is about one resource; if not, about the type.
        includes: The references to follow, as ``_include`` names them in a search:
            ``DiagnosticReport:result``. The caller needs the right to read what they lead to.
        parameters: The parameters that may be sent.
    """

    type: str
    code: str
    title: str
    description: str
    media_type: str
    run: Callable[[OperationRequest], OperationResult]
    on_instance: bool = True
    includes: tuple[str, ...] = ()
    parameters: tuple[OperationParameter, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginOperation:
    """An operation of a plugin.

    Attributes:
        plugin: The name of the plugin.
        operation: The operation.
    """

    plugin: str
    operation: Operation
