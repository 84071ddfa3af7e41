"""The verdict on each abuse, the table, and the file of results of ``bench.neighbours``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from bench.neighbour_load import KINDS

RESULTS = Path(__file__).with_name("RESULTS-neighbours.md")
MOST_TIMES_IDLE = 3.0
LEAST_BOUND_MS = 50.0
MOST_MIB = 512.0
SECTIONS = {
    ("sqlite", False): "SQLite",
    ("sqlite", True): "SQLite, several workers",
    ("mongodb", False): "MongoDB",
    ("mongodb", True): "MongoDB, several workers",
}
"""The titles of the results, by the storage and whether the service had several workers."""
_NOT_RUN = "Not measured yet."
_SHORT = ("read", "by id", "by patient", "3 KB", "1 MB")
_COLUMNS = (
    "abuse",
    "verdict",
    *_SHORT,
    "refused",
    "peak MiB",
    "after",
    "loop held ms",
    "p99",
    "without a core %",
    "load",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One abuse, once: the neighbour and the probe before it and during it, and the memory."""

    idle: Mapping[str, Any]
    beside: Mapping[str, Any]
    idle_probe: Mapping[str, Any]
    probe: Mapping[str, Any]
    abuser: Mapping[str, Any]
    idle_core_waits: Mapping[str, float]
    core_waits: Mapping[str, float]
    """The part of the time in which a process was ready to run and had no core."""
    idle_mib: float
    peak_mib: float
    peak_of_a_process_mib: float
    after_mib: float
    errors_logged: int
    load_average: float
    problems: Sequence[str] = ()
    """Why the run says little: the abuse did not work as intended, or a process ended."""

    @property
    def refusals(self) -> dict[str, int]:
        """The neighbour's requests that did not get the expected response, by kind and reason."""
        return {
            f"{name}: {reason}": count
            for name, kind in self.beside.get("kinds", {}).items()
            for reason, count in kind["refused"].items()
        }

    @property
    def failures(self) -> list[str]:
        """What the neighbour must not notice, and did; the memory that must not be taken."""
        found = []
        slowest = max(self._ratios().items(), key=itemgetter(1), default=("", 0.0))
        if slowest[1] > 1:
            found.append(f"{slowest[1]:.1f} x {slowest[0]}")
        if self.refusals:
            found.append(f"{sum(self.refusals.values())} refused")
        if self.peak_of_a_process_mib >= MOST_MIB:
            found.append(f"{self.peak_of_a_process_mib:.0f} MiB")
        return found

    @property
    def badness(self) -> float:
        """How far the run is beyond its bounds; 1 and less is within all of them."""
        return max(
            [*self._ratios().values(), self.peak_of_a_process_mib / MOST_MIB],
            default=0.0,
        ) + (1000.0 if self.refusals else 0.0)

    def _ratios(self) -> dict[str, float]:
        """Return p99 divided by its bound, by kind."""
        idle, beside = self.idle.get("kinds", {}), self.beside.get("kinds", {})
        return {
            name: beside[name]["p99_ms"] / bound_ms(idle[name]["p99_ms"])
            for name in KINDS
            if name in beside and name in idle
        }


def bound_ms(idle_p99_ms: float) -> float:
    """Return the p99 in milliseconds that the neighbour may have beside an abuse."""
    return max(MOST_TIMES_IDLE * idle_p99_ms, LEAST_BOUND_MS)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """An abuse with its runs: one that fails may have been run again."""

    name: str
    sentence: str
    runs: list[Run] = field(default_factory=list)

    @property
    def best(self) -> Run:
        """The run that is furthest within its bounds."""
        return min(self.runs, key=lambda run: run.badness)

    @property
    def passed(self) -> bool:
        return not self.best.failures

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        remarks = "; ".join(self.best.problems)
        said = "passed" if self.passed else f"FAILED: {', '.join(self.best.failures)}"
        if self.passed and len(self.runs) > 1:
            said += f" (failed first: {', '.join(self.runs[0].failures)})"
        return f"{said} [{remarks}]" if remarks else said

    def to_json(self) -> dict[str, Any]:
        runs = [
            {**asdict(run), "refusals": run.refusals, "failures": run.failures}
            for run in self.runs
        ]
        return {
            "name": self.name,
            "sentence": self.sentence,
            "verdict": self.verdict,
            "runs": runs,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Where, when and how the abuses were run."""

    date: str
    machine: str
    command: str
    storage: str
    workers: int
    seconds: float
    rate: float
    large_rate: float
    load_average: Sequence[float]


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as a Markdown table whose columns also line up as plain text."""
    rows = [_COLUMNS, *(_row(outcome) for outcome in outcomes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        for row in rows
    ]
    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _row(outcome: Outcome) -> tuple[str, ...]:
    run = outcome.best
    idle, beside = run.idle.get("kinds", {}), run.beside.get("kinds", {})
    latencies = [
        f"{_pair(beside[name])} ({_pair(idle[name])})" if name in beside and name in idle else "-"
        for name in KINDS
    ]
    held = f"{run.probe.get('max_ms', 0):.0f} ({run.idle_probe.get('max_ms', 0):.0f})"
    held_p99 = f"{run.probe.get('p99_ms', 0):.1f} ({run.idle_probe.get('p99_ms', 0):.1f})"
    return (
        outcome.name,
        outcome.verdict,
        *latencies,
        str(sum(run.refusals.values())),
        f"{run.peak_mib:.0f}",
        f"{run.after_mib:.0f}",
        held,
        held_p99,
        _without_core(run),
        f"{run.load_average:.1f}",
    )


def _without_core(run: Run) -> str:
    """Return the highest share of a process of the service, then that of the neighbour."""

    def pair(waits: Mapping[str, float]) -> str:
        service = max((part for name, part in waits.items() if name != "neighbour"), default=0.0)
        return f"{100 * service:.0f}/{100 * waits.get('neighbour', 0.0):.0f}"

    return f"{pair(run.core_waits)} ({pair(run.idle_core_waits)})"


def _pair(kind: Mapping[str, Any]) -> str:
    return f"{kind['p50_ms']:.0f}/{kind['p99_ms']:.0f}"


def section(outcomes: Sequence[Outcome], under: Circumstances) -> str:
    """Return the results on one kind of storage, with one worker or with several."""
    lines = [
        f"- Date: {under.date}",
        f"- Machine: {under.machine}; service, neighbour and abuser share it",
        f"- Load average at the start: {', '.join(f'{one:.1f}' for one in under.load_average)}",
        f"- Command: `{under.command}`",
        f"- Workers: {under.workers}; {under.seconds:g} seconds each",
        f"- Neighbour: {under.rate:g} a second of each kind, of 1 MB {under.large_rate:g}",
        "",
        table(outcomes),
    ]
    return "\n".join(lines) + "\n"


def document(text: str, under: Circumstances, before: str, sentences: Mapping[str, str]) -> str:
    """Return the file of results with a new section; the others stay.

    ``sentences`` describes each abuse by its name.
    """
    parts = {key: _section_in(before, title) for key, title in SECTIONS.items()}
    parts[under.storage, under.workers > 1] = text
    lines = [
        "# Neighbours",
        "",
        "Written by `scripts/bench --neighbours --write`; [README.md](README.md#neighbours)",
        "describes what is measured.",
        "Latencies are p50/p99 in milliseconds beside the abuse, and idle in parentheses.",
        "",
    ]
    for key, title in SECTIONS.items():
        lines += [f"## {title}", "", parts[key] or f"{_NOT_RUN}\n"]
    lines += ["## Abuses", ""]
    lines += [f"- `{name}`: {sentence}" for name, sentence in sentences.items()]
    return "\n".join(lines) + "\n"


def _section_in(document: str, title: str) -> str:
    text = document.partition(f"\n## {title}\n\n")[2].partition("\n## ")[0]
    return "" if text.startswith(_NOT_RUN) else text
