"""Abuses of the service by one tenant: what ``bench.neighbours`` runs beside another tenant."""
