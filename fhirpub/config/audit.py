"""The settings of the audit trail: what is recorded, for how long, and where it is attested."""

# ruff: noqa: FBT003, RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fhirpub.config.reader import setting as _setting

Reads = Literal["before_answer", "soon", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """The audit trail: who did what, in a chain of records for each tenant."""

    enabled: bool = _setting(
        True,
        "Record every access. The record of a write is stored in the same commit. Clients with "
        "the scope system/AuditEvent.rs read the records of their tenant as AuditEvent, "
        "operators with `fhirpub audit`.",
    )
    reads: Reads = _setting(
        "soon",
        "When the record of a read, a search, a token or a refusal is durable: `before_answer`, "
        "so that what cannot be recorded is not answered but gets 503; `soon`, within about a "
        "second, so that a crash may lose the last ones; or `off`, never.",
    )
    checkpoint_seconds: float = _setting(
        60.0,
        "Time in seconds between signed checkpoints of each chain. Records are proof against a "
        "change without the signing key once a checkpoint covers them.",
    )
    checkpoints_file: str = _setting(
        "",
        "File to which each checkpoint is also appended, as a line of JSON: best on a volume that "
        "the service can only append to, or that another machine keeps. Empty: none.",
    )
    checkpoints_syslog: str = _setting(
        "",
        "Address of a syslog server, host:port, to which each checkpoint is also sent over TLS "
        "(RFC 5424, RFC 5425). Empty: none.",
    )
    checkpoints_syslog_ca_file: str = _setting(
        "",
        "File in PEM with the authorities that may have issued the certificate of that server. "
        "Empty: those of the system.",
    )
    keep_days: int = _setting(
        0,
        "Days after which records are deleted, up to a signed checkpoint that attests what went. "
        "0: never.",
    )
