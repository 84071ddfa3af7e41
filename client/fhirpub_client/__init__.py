"""A thin client of fhirpub: publishes reports with their documents, and verifies webhooks.

```python
from fhirpub_client import Client, Document, Secret

with Client("https://fhir.example.org", Secret(client_id, client_secret)) as client:
    registered = client.register(parameters, documents=[Document("report.pdf")])
    print(registered.id, registered.is_replayed)
```

`AsyncClient` has the same methods to be awaited. Both repeat what may be repeated, and renew their
token.
"""

from __future__ import annotations

from fhirpub_client.clients import AsyncClient, Client
from fhirpub_client.credentials import PrivateKey, Secret
from fhirpub_client.documents import Document
from fhirpub_client.errors import FhirpubClientError, Problem, Refused, Unanswered
from fhirpub_client.results import Registered, Stored
from fhirpub_client.webhooks import NotVerified, verify

__all__ = [
    "AsyncClient",
    "Client",
    "Document",
    "FhirpubClientError",
    "NotVerified",
    "PrivateKey",
    "Problem",
    "Refused",
    "Registered",
    "Secret",
    "Stored",
    "Unanswered",
    "verify",
]
