"""Prints how a load ended: the results, and what was not published, grouped by its cause."""

from __future__ import annotations

from typing import Any

import click

from fhirpub.cli.printing import counted, print_json, print_table
from fhirpub.cli.publish.bulk.run import Ending

_INTERRUPTED = 130
"""What shells return after SIGINT."""
_RESULTS = ("created", "replayed", "other content", "refused", "not sent")


def print_ending(ending: Ending, *, as_json: bool) -> int:
    """Print the summary, and return the exit status of the command."""
    if as_json:
        print_json(_record(ending))
    else:
        _print_words(ending)
    if ending.failure:
        ending.failure.show()
    if ending.failure or ending.interrupted:
        click.echo(_what_is_left(ending), err=True)
    if ending.interrupted:
        return _INTERRUPTED
    return max(ending.tally.exit_status, 1 if ending.failure else 0)


def _print_words(ending: Ending) -> None:
    tally = ending.tally
    results = [f"{tally.results[name]:,} {name}" for name in _RESULTS if tally.results[name]]
    click.echo(
        f"{counted(tally.total, 'report')} in {tally.seconds:,.1f} s ({tally.rate:,.0f}/s)"
        f"{': ' if results else ''}{', '.join(results)}"
    )
    if ending.skipped:
        click.echo(f"{ending.skipped:,} left out: the report says that they are published")
    if tally.causes:
        click.echo("\nNot published:")
        print_table([_row(cause) for cause in tally.grouped()], as_json=False, empty="")


def _row(cause: dict[str, Any]) -> dict[str, Any]:
    example = cause["example"]
    line = f":{example['line']}" if example["line"] else ""
    return {
        "count": cause["count"],
        "code": cause["code"],
        "message": cause["message"],
        "first_in": f"{example['file']}{line}",
        "at": example["path"],
    }


def _what_is_left(ending: Ending) -> str:
    start = "Interrupted" if ending.interrupted else "Stopped"
    if ending.left is None:
        left = "some reports are"
    else:
        left = f"about {counted(ending.left, 'report')} {'is' if ending.left == 1 else 'are'}"
    how = " with --resume" if ending.has_report else ""
    return f"{start}: {left} left. Run the same command again{how}: nothing is published twice."


def _record(ending: Ending) -> dict[str, Any]:
    tally = ending.tally
    return {
        **{name.replace(" ", "_"): tally.results[name] for name in _RESULTS},
        "skipped": ending.skipped,
        "left": ending.left,
        "seconds": round(tally.seconds, 3),
        "per_second": round(tally.rate, 1),
        "interrupted": ending.interrupted,
        "failure": ending.failure.message if ending.failure else None,
        "causes": tally.grouped(),
    }
