"""The settings of the broker."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from fhirpub.plugin_api import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class AmqpSettings:
    """A broker that speaks AMQP 0-9-1, to which endpoints at sink:amqp send."""

    url: str = setting(
        "",
        "URL of the broker, amqp:// or amqps:// with TLS, such as amqps://user:password@host/vhost."
        " Empty: there is no sink.",
        secret=True,
    )
    exchange: str = setting(
        "fhirpub.events", "Exchange to which sink:amqp publishes; sink:amqp/NAME names another."
    )
    declare: bool = setting(
        default=True,
        meaning="Declare each exchange as a durable topic exchange. If false, it must exist.",
    )
    mandatory: bool = setting(
        default=True,
        meaning="Send an event again if the broker has no queue for it. If false, such an event is"
        " lost, as AMQP has it.",
    )
    connect_seconds: float = setting(5.0, "Maximum time in seconds to open a connection.")

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        if self.url and urlsplit(self.url).scheme not in ("amqp", "amqps"):
            raise ValueError("url must begin with amqp:// or amqps://")
        if not self.exchange:
            raise ValueError("exchange must not be empty: the default exchange has no bindings")
        if not self.connect_seconds:
            raise ValueError("connect_seconds must be above 0")
