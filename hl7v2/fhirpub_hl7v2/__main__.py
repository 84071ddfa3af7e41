"""Where ``fhirpub-hl7v2`` and ``python -m fhirpub_hl7v2`` begin."""

from __future__ import annotations

import click

from fhirpub_hl7v2.listening import listen
from fhirpub_hl7v2.publishing import publish


@click.group()
def main() -> None:
    """Publish HL7 v2 result messages (ORU^R01, 2.3 to 2.5.1) with fhirpub."""


main.add_command(publish)
main.add_command(listen)

if __name__ == "__main__":
    main(prog_name="fhirpub-hl7v2")
