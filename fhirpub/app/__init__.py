"""The composition root: builds the service, serves and dispatches, stops in reverse order."""
