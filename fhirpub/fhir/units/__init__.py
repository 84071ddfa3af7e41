"""Units of measure."""
