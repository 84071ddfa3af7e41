"""How patients are searched (R4, Patient)."""

from __future__ import annotations

from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.plugin_api import Part, r4_parameter

PATIENTS = Part(
    name="patient",
    type=PATIENT,
    referred_by="",
    required=False,
    repeats=True,
    search=(
        r4_parameter("Patient-name", "string", "name"),
        r4_parameter("individual-family", "string", "name.family"),
        r4_parameter("individual-given", "string", "name.given"),
        r4_parameter("individual-birthdate", "date", "birthDate"),
    ),
)
"""As a part that repeats would be searched: its identifiers are search values, and it has no
status. No registration takes it by this declaration."""
