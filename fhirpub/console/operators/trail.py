"""The audit trail: its chains, their records, and whether they are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub.administration.audit.chains import SERVICE_NAME
from fhirpub.console.operators.catalogue import by_command, form_of
from fhirpub.console.operators.fields import fields_of
from fhirpub.console.operators.listing import ROWS, page_of
from fhirpub.console.operators.lists import tenant_names
from fhirpub.console.operators.running import Answer, ask, run
from fhirpub.console.operators.shown import Shower
from fhirpub.console.visit import Html, Page, Result, Visit, address
from fhirpub.runtime.turns import in_turns

_LIST = "audit list --tenant"
_SERVICE = "The service itself"
"""What pages call the chain of the records that belong to no tenant."""
_BEGUN = 102
_FEW = 5
"""So many resources and patients of one record are shown."""
_NO_FIELDS = frozenset({"chain", "from", "limit"})
_COLUMNS = (
    *("at", "action", "outcome", "by", "what"),
    *("patients", "query", "address", "request"),
)


async def list_chains(visit: Visit) -> Result:
    """List the chains of the audit trail, with the names of their tenants."""
    chains = await run(visit, "audit list")
    names = await tenant_names(visit) | {SERVICE_NAME: _SERVICE}
    found = await in_turns(lambda one: {"name": names.get(one, ""), "chain": one}, chains)
    listing = await page_of(visit, found)
    rows = [(one["name"], one["chain"]) for one in listing.records]
    values = {"rows": rows, "listing": listing}
    return Html(
        template="operator_chains.html", title="Audit trail", section="audit", values=values
    )


async def show_chain(visit: Visit) -> Result:
    """Show the records of a chain, newest first."""
    return await _chain(visit, {})


async def verify_chain(visit: Visit) -> Result:
    """Verify a chain, and show what came of it."""
    return await _chain(visit, await run(visit, "audit verify", chain=visit.blanks[0]))


async def _chain(visit: Visit, verdict: Mapping[str, Any]) -> Html:
    chain = visit.blanks[0]
    answer = await ask(visit, by_command(_LIST), chain=chain, limit=str(ROWS))
    tenant = await visit.console.services.store.tenant(chain)
    values = {
        "chain": chain,
        "name": tenant.name if tenant else {SERVICE_NAME: _SERVICE}.get(chain, chain),
        "verdict": Shower().facts(verdict),
        "is_right": verdict.get("verdict") == "right",
        "checkpoints": form_of("audit verify", chain=chain),
        "path": address("operations", "audit", chain),
        **_records(visit, answer),
    }
    status = answer.problems.status
    return Html(
        template="operator_chain.html",
        title="Audit trail",
        section="audit",
        values=values,
        status=status,
    )


def _records(visit: Visit, answer: Answer) -> Mapping[str, Any]:
    found = answer.result or {"records": (), "following": None}
    place = {**visit.query, "from": found["following"]}
    older = address("operations", "audit", visit.blanks[0], **place)
    fields = fields_of(answer.operation, answer.texts, answer.problems.of_fields)
    return {
        "operation": answer.operation,
        "problems": answer.problems,
        "fields": [one for one in fields if one.name not in _NO_FIELDS],
        "table": Shower(max_pieces=_FEW).table(
            [*map(_record, found["records"])], columns=_COLUMNS
        ),
        "following": older if found["following"] else "",
    }


def _record(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with what came of it, its agent, and the host if it has no address."""
    status, client = members["status"], members.get("client")
    count = f", {members['count']:,} times" if members.get("count", 0) > 1 else ""
    return {
        **members,
        "outcome": "begun" if status == _BEGUN else f"{status}{count}",
        "by": f"Client/{client}" if client else members.get("user", ""),
        "address": members.get("address") or members.get("host", ""),
    }


PAGES = (
    Page(method="GET", path="/operations/audit", run=list_chains, audience="operator"),
    Page(method="GET", path="/operations/audit/{}", run=show_chain, audience="operator"),
    Page(method="POST", path="/operations/audit/{}", run=verify_chain, audience="operator"),
)
