"""Pure decisions about retries, circuit breakers and endpoint health."""
