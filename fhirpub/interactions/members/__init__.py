"""Resources that come with another and have versions of their own, such as results (ADR 24)."""
