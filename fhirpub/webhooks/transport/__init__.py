"""One delivery over HTTP: address checks, signatures, envelopes and the client."""
