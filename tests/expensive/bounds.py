"""How much a request may cost: a part for each request, and one for each of its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.expensive import targets
from tests.expensive.measure import Cost, Work, takes_longer, trace_memory, unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that a request of some bytes may cost; ``units`` of time as in `measure`."""

    calls: int
    calls_of_a_byte: float
    step_calls: int
    memory: int
    memory_of_a_byte: float
    units: float

    def shares(self, cost: Cost, size: int) -> Mapping[str, float]:
        """Return what is counted of a cost, as shares of what it may be."""
        return {
            "calls": cost.calls / (self.calls + self.calls_of_a_byte * size),
            "calls of a step": cost.step_calls / self.step_calls,
            "memory": cost.memory / (self.memory + self.memory_of_a_byte * size),
        }

    def share_of_time(self, cost: Cost) -> float:
        """Return the time of a cost as a share of what it may be; it is never the same."""
        return cost.seconds / (self.units * unit())

    def exceeded(self, work: Work, cost: Cost, size: int) -> list[str]:
        """Return the names of what a cost exceeds."""
        if self.shares(cost, size)["memory"] > 1:
            # Other threads of the process allocate as well: what they take differs each time.
            cost = replace(cost, memory=min(cost.memory, trace_memory(work), trace_memory(work)))
        counted = [name for name, share in self.shares(cost, size).items() if share > 1]
        return counted + (["time"] if takes_longer(work, cost.seconds, self.units) else [])


_SPARSE = Bounds(
    calls=1_200_000,  # a hundred issues are explained, however small the body is
    calls_of_a_byte=12,
    step_calls=160_000,  # about twenty milliseconds
    memory=400_000,
    memory_of_a_byte=110,
    units=100,
)
_DENSE = Bounds(
    calls=1_500_000,
    calls_of_a_byte=30,
    step_calls=600_000,
    memory=400_000,
    memory_of_a_byte=320,
    units=200,
)
HEAD = Bounds(
    calls=5_000,
    calls_of_a_byte=30,
    step_calls=450_000,
    memory=100_000,
    memory_of_a_byte=100,
    units=15,
)
QUERY = Bounds(
    calls=60_000,
    calls_of_a_byte=3,
    step_calls=150_000,
    memory=1_000_000,
    memory_of_a_byte=200,  # of which a regular expression over one long value takes most
    units=25,
)


def of_body(body: bytes) -> Bounds:
    """Return the bounds of a body: one of many values is not computed on the event loop."""
    return _DENSE if targets.is_dense(body) else _SPARSE
