"""An HTTP/1.1 server on Tornado's streams that knows nothing of FHIR; see README.md."""
