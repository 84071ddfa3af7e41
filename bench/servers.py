"""The cost of HTTP per request: the same constant returned by three servers, in turns.

Prints requests per second, and microseconds of CPU for each. ``python -m bench.servers``
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack

from bench.baseline import FRONTS
from bench.run import Bench
from bench.targets import DEFAULT_COMMAND, DEFAULT_STORAGE_URL, Target, floor

_ROUNDS = 5
_TOKEN = "x" * 700


def main() -> None:
    bench = Bench(
        seconds=2.0,
        connections=32,
        rounds=_ROUNDS,
        stock=500,
        command=DEFAULT_COMMAND,
        storage_url=DEFAULT_STORAGE_URL,
    )
    with ExitStack() as stack:
        targets = {front: stack.enter_context(floor(_TOKEN, front=front)) for front in FRONTS}
        print(f"{'':40}{'POST/s':>8}{'us':>6}{'GET/s':>8}{'us':>6}")
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for _ in range(_ROUNDS):
            for front, target in targets.items():
                for work in ("register", "read"):
                    found.setdefault((front, work), []).append(_measured(bench, target, work))
    for front, title in FRONTS.items():
        posts, gets = (_medians(found[front, work]) for work in ("register", "read"))
        print(f"{title:40}{posts[0]:8,.0f}{posts[1]:6.0f}{gets[0]:8,.0f}{gets[1]:6.0f}")


def _measured(bench: Bench, target: Target, work: str) -> tuple[float, float]:
    """Return requests per second, and microseconds of the server's CPU for each."""
    result = bench.load(target, work, on_floor=True)
    return result.rate, result.server_us


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    rates, times = zip(*pairs, strict=True)
    return statistics.median(rates), statistics.median(times)


if __name__ == "__main__":
    main()
