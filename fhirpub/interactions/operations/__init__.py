"""The operations that types have, as FHIR describes them."""
