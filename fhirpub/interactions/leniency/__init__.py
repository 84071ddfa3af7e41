"""The second reading of a wrong body, with what the settings allow to be corrected."""
