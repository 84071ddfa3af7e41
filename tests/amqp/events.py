"""An event for tests without a broker."""

from __future__ import annotations

from fhirpub.testing.plugin_contracts import EventSinkContract

EVENT = EventSinkContract().event()
