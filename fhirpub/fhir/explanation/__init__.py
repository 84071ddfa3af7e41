"""Why a body is refused that cannot be read, is of another kind, or has unknown names."""
