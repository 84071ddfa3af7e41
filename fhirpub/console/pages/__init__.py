"""The pages of the console, each module with those of one subject."""
