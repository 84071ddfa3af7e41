"""Webhooks: what is sent to integrators, how it is signed, and what an answer leads to.

Receivers need one name of it, which rests on the standard library alone:

    from fhirpub.webhooks import verify
"""

from __future__ import annotations

from fhirpub.webhooks.transport.signing import BadSecret, NotVerified, verify

__all__ = ["BadSecret", "NotVerified", "verify"]
