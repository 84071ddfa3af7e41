"""The settings of the terminology server."""

# ruff: noqa: RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from fhirpub.plugin_api import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """A FHIR R4 terminology server that is asked about codes which the service does not hold."""

    url: str = setting(
        "",
        "FHIR base of the server, such as https://tx.example.org/r4. Empty: none is asked.",
    )
    token: str = setting("", "Bearer token for the server, if it needs one.", secret=True)
    systems: list[str] = setting(
        [], "Code systems to ask about, such as http://loinc.org. Empty: every one."
    )
    timeout_seconds: float = setting(2.0, "Maximum time in seconds for one question.")
    cache_hours: float = setting(24.0, "Time in hours for which an answer is kept.")
    retry_seconds: float = setting(
        60.0, "Time in seconds after which a question is asked again that got no answer."
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        parts = urlsplit(self.url)
        if self.url and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("url must begin with http:// or https://, and name a host")
        for name in ("timeout_seconds", "cache_hours", "retry_seconds"):
            if not getattr(self, name):
                raise ValueError(f"{name} must be above 0")
