"""Which releases may use a store."""
