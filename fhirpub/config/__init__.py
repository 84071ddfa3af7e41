"""Settings: their names, defaults and meaning, and how they are read."""
