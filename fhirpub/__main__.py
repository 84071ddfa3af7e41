"""Where ``fhirpub`` and ``python -m fhirpub`` begin."""

from __future__ import annotations

from fhirpub.cli.commands import fhirpub


def main() -> None:
    """Run the command line."""
    fhirpub(prog_name="fhirpub")


if __name__ == "__main__":
    main()
