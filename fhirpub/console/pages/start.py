"""The first page after signing in, and help."""

from __future__ import annotations

from fhirpub.console.operators.overview import show_overview
from fhirpub.console.visit import Html, Page, Result, Visit


async def show_start(visit: Visit) -> Result:
    """Show where to find what; to an operator, how the service does."""
    if visit.signed_in.person.is_operator:
        return await show_overview(visit)
    return Html(template="start.html", title="Start", section="start")


async def show_help(visit: Visit) -> Result:
    """Show what the console is for."""
    config = visit.console.config.console
    values = {"idle_minutes": config.idle_minutes, "session_hours": config.session_hours}
    return Html(template="help.html", title="Help", values=values)


PAGES = (
    Page(method="GET", path="/", run=show_start, audience="signed-in"),
    Page(method="GET", path="/help", run=show_help, audience="anyone"),
)
