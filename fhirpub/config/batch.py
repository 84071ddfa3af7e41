"""The settings of batches: how much one of them may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.config.reader import setting as _setting


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """Limits of a batch, a Bundle that is sent to the FHIR base."""

    entries: int = _setting(
        1_000, "Maximum number of entries of a batch. More get 413, and none is processed."
    )
    seconds: float = _setting(
        30.0,
        "Time in seconds within which the entries of a batch must have begun. Those that have "
        "not get 503 and may be sent in another batch. It should be shorter than the time that a "
        "proxy in front waits for a response.",
    )
    answer_bytes: int = _setting(
        8_388_608,
        "Maximum size in bytes of the resources in the response to a batch. A read beyond it gets "
        "413 and is to be sent in another batch; the response to a registration or an update then "
        "has no resource.",
    )
