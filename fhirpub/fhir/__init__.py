"""FHIR values and their text forms; pure functions without a store or a network."""
