"""From the segments of ORU^R01 to FHIR R4, after HL7's guide "HL7 Version 2 to FHIR"."""
