"""The operations that operators have in the console, and what their pages add to the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fhirpub.administration.operation import Operation
from fhirpub.administration.table import OPERATIONS
from fhirpub.console.visit import address

LEFT_OUT: Mapping[str, str] = {
    "deliveries show": "It shows what was sent, and what receivers answered.",
    "patient show": "It shows what reports state about a patient.",
    "patient conflicts": "It shows identifiers of patients.",
    "audit export": "It shows searches as they were sent, with names that they look for.",
}
"""The operations that no page has, since they show content of reports or patients (D-436)."""
_NEEDED = {"deliveries list": "endpoint"}
"""A parameter that pages require, so that they read of one endpoint and not of each."""
_SHOWN_FIRST = {
    "client edit": "client show",
    "client scopes": "client show",
    "endpoint set": "endpoint show",
    "tenant rename": "tenant show",
}
"""Which operation shows the values that another one changes."""
_SUBJECTS = {
    "tenant": "Tenants",
    "client": "Clients",
    "quota": "Quotas",
    "keys": "Signing keys",
    "token": "Access tokens",
    "secrets": "Secrets in the store",
    "endpoint": "Endpoints",
    "deliveries": "Deliveries",
    "patient": "Patients",
    "erase": "Erasures",
    "restore": "After a restore",
    "hold": "Holds",
    "audit": "Audit trail",
}
_SECTIONS = {
    "tenant": "tenants",
    "quota": "tenants",
    "client": "clients",
    "token": "keys",
    "secrets": "keys",
    "keys": "keys",
    "endpoint": "endpoints",
    "deliveries": "endpoints",
    "audit": "audit",
    "erase": "erasures",
    "restore": "erasures",
    "hold": "erasures",
}
SECRETS = frozenset({"bearer_token", "client_secret", "signing_secret", "token"})
"""Names of what is secret, among parameters and results."""
_INVITING = frozenset({"client add-person", "client invite"})
"""Operations that return the URL of an invitation."""
ERASE, PLAN = "erase report", "erase report --dry-run"


def _as_offered(operation: Operation) -> Operation:
    needed = _NEEDED.get(operation.command)
    parameters = [
        replace(one, required=one.required or one.name == needed) for one in operation.parameters
    ]
    return replace(operation, parameters=tuple(parameters))


_BY_COMMAND = {one.command: _as_offered(one) for one in OPERATIONS if one.command not in LEFT_OUT}
OFFERED: Mapping[str, Operation] = {one.name: one for one in _BY_COMMAND.values()}
"""The operations that pages have, by name."""


def by_command(command: str) -> Operation:
    """Return the operation of a command that pages have."""
    return _BY_COMMAND[command]


def subject_of(operation: Operation) -> str:
    """Return the first word of the command."""
    return operation.command.split()[0]


def section_of(operation: Operation) -> str:
    """Return the entry of the navigation to which an operation belongs."""
    return _SECTIONS.get(subject_of(operation), "operations")


def subjects() -> Sequence[tuple[str, Sequence[Operation]]]:
    """Return the operations by subject, each with its title, in the order of the table."""
    return [
        (title, [one for one in OFFERED.values() if subject_of(one) == subject])
        for subject, title in _SUBJECTS.items()
    ]


def shows_values_of(operation: Operation) -> Operation | None:
    """Return the operation that shows what another one changes."""
    command = _SHOWN_FIRST.get(operation.command)
    return None if command is None else by_command(command)


def needs_confirmation(operation: Operation) -> bool:
    """Return whether a page asks again before an operation runs."""
    return operation.is_final or operation.method == "DELETE"


def secrets_in(operation: Operation) -> frozenset[str]:
    """Return the names of what is secret in the result of an operation."""
    return SECRETS | {"url"} if operation.command in _INVITING else SECRETS


def form_of(command: str, **values: str) -> str:
    """Return the path of the form of an operation, filled with values."""
    return address("operations", "run", by_command(command).name, **values)


def home_of(name: str, value: str, subject: str = "") -> str:
    """Return the path of the page that shows a record; empty if there is none.

    Args:
        name: The name of the member that has its id, or the kind of the record.
        value: The id.
        subject: Of what the record is that has the member.
    """
    kind = (subject if name == "id" else name.removesuffix("_id")).lower()
    if kind == "tenant" and value == "service":
        return address("operations", "audit", value)
    if kind in ("tenant", "client", "endpoint") and value:
        return address("operations", f"{kind}s", value)
    return ""
