"""Settings: their names, defaults and meanings, and their parser."""
