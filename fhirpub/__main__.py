"""Where ``fhirpub`` and ``python -m fhirpub`` begin."""

from __future__ import annotations

import atexit
import gc
import signal


def main() -> None:
    """Run the command line."""
    atexit.register(_leave)
    on_interrupt = signal.getsignal(signal.SIGINT)
    if on_interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # To load all of it takes a moment; Ctrl-C ends that without a word, as it ends other programs.
    # What is loaded stays: to search it for garbage takes a sixth of that moment.
    gc.disable()
    from fhirpub.cli.commands import fhirpub  # noqa: PLC0415

    signal.signal(signal.SIGINT, on_interrupt)
    fhirpub(prog_name="fhirpub")


def _leave() -> None:
    """Keep the exit status of a command that has ended.

    Ctrl-C would replace it while Python frees memory. That takes a fifth of a second if it
    searches for garbage first.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()


if __name__ == "__main__":
    main()
