"""GET /health/live and /health/ready (D-149)."""

from __future__ import annotations

from fhirpub.web.handlers.base import BaseHandler


class LiveHandler(BaseHandler):
    """Report that the process is alive."""

    requires_token = False
    level = "debug"

    def check_format(self) -> None:
        """Answer in JSON whatever is accepted."""

    def get(self) -> None:
        """Return at once."""
        self._say("alive")

    def _say(self, status: str) -> None:
        self.headers["Content-Type"] = "application/json"
        self.headers["Cache-Control"] = "no-store"
        self.finish(b'{"status":"%b"}' % status.encode())


class ReadyHandler(LiveHandler):
    """Report whether requests can be served; 503 when the store cannot be reached."""

    async def get(self) -> None:  # type: ignore[override]
        """Ask the store."""
        await self.services.readiness.confirm()
        self._say("ready")
