"""The promises of a store as tests: an engine that passes them keeps them.

Subclass `StoreContract` and give it three fixtures; each test gets data of its own:

```python
class TestMyStore(StoreContract):
    @pytest.fixture
    async def reopen(self) -> AsyncGenerator[Reopen]:
        '''A function that starts another store on the same data.'''
        async with reopening(lambda: MyStore(...)) as reopen:
            yield reopen

    @pytest.fixture
    async def store(self, reopen: Reopen) -> Store:
        '''A store that is started.'''
        return await reopen()

    @pytest.fixture
    async def other_store(self, reopen: Reopen, store: Store) -> Store:
        '''Another store on the same data, as another process would have it.'''
        return await reopen()
```

Tests are asynchronous: pytest-asyncio, in its automatic mode, runs them. The groups of promises
are in the packages of `fhirpub.testing.contracts`.
"""

from __future__ import annotations

import pytest

from fhirpub.storage.store import Store
from fhirpub.testing.contracts.audit.chains import AuditChainContract
from fhirpub.testing.contracts.audit.sealing import AuditContract
from fhirpub.testing.contracts.audit.waiting import UnsealedAuditContract
from fhirpub.testing.contracts.credentials.activity import ClientActivityContract
from fhirpub.testing.contracts.credentials.encryption import EncryptionContract
from fhirpub.testing.contracts.credentials.records import CredentialContract
from fhirpub.testing.contracts.erasure.content import ErasedContentContract
from fhirpub.testing.contracts.erasure.orders import ErasureOrderContract
from fhirpub.testing.contracts.erasure.steps import ErasureStepContract
from fhirpub.testing.contracts.store.admin import AdminContract
from fhirpub.testing.contracts.store.attached import AttachedContract
from fhirpub.testing.contracts.store.blobs import BlobContract
from fhirpub.testing.contracts.store.commits import CommitContract
from fhirpub.testing.contracts.store.criteria import CriteriaContract, criteria_of_every_form
from fhirpub.testing.contracts.store.members import MemberContract
from fhirpub.testing.contracts.store.other_loop import OtherLoopContract
from fhirpub.testing.contracts.store.pages import PageContract
from fhirpub.testing.contracts.store.queries import (
    all_pages,
    find_ids,
    found_by,
    has,
    match,
    query,
    text,
    token,
    wanting,
)
from fhirpub.testing.contracts.store.quotas import QuotaContract, a_count, wait_for_stored_bytes
from fhirpub.testing.contracts.store.random_search import RandomSearchContract
from fhirpub.testing.contracts.store.records import (
    Reopen,
    a_blob,
    a_client,
    a_key,
    add_all,
    keep,
    pieces_of,
    reopening,
    store_blob,
    whole_blobs,
)
from fhirpub.testing.contracts.store.search import SearchContract
from fhirpub.testing.contracts.store.search_budget import SearchBudgetContract
from fhirpub.testing.contracts.store.search_values import SearchValueContract
from fhirpub.testing.contracts.store.tenancy import TenancyContract
from fhirpub.testing.contracts.store.texts import TextContract
from fhirpub.testing.contracts.store.versions import VersionContract
from fhirpub.testing.samples import (
    FOREVER,
    LAB,
    OTHER,
    REPORT,
    SYSTEM,
    a_version,
    new_id,
    successor,
)
from fhirpub.testing.webhook_contract import WebhookContract

__all__ = [
    "FOREVER",
    "LAB",
    "OTHER",
    "REPORT",
    "SYSTEM",
    "Reopen",
    "StoreContract",
    "a_blob",
    "a_client",
    "a_count",
    "a_key",
    "a_version",
    "add_all",
    "all_pages",
    "criteria_of_every_form",
    "find_ids",
    "found_by",
    "has",
    "keep",
    "match",
    "new_id",
    "pieces_of",
    "query",
    "reopening",
    "store_blob",
    "successor",
    "text",
    "token",
    "wait_for_stored_bytes",
    "wanting",
    "whole_blobs",
]


class StoreContract(
    CommitContract,
    VersionContract,
    AttachedContract,
    ErasedContentContract,
    ErasureOrderContract,
    ErasureStepContract,
    MemberContract,
    OtherLoopContract,
    SearchContract,
    CriteriaContract,
    TextContract,
    PageContract,
    RandomSearchContract,
    SearchBudgetContract,
    SearchValueContract,
    TenancyContract,
    BlobContract,
    CredentialContract,
    EncryptionContract,
    ClientActivityContract,
    QuotaContract,
    AuditContract,
    UnsealedAuditContract,
    AuditChainContract,
    AdminContract,
    WebhookContract,
):
    """A test for every promise of a `fhirpub.storage.store.Store`.

    Subclasses provide the fixtures ``reopen``, ``store`` and ``other_store``.
    """

    @pytest.fixture(params=["same", "other"])
    def reader(self, request: pytest.FixtureRequest, store: Store, other_store: Store) -> Store:
        """Return the store that was written to, then the other one."""
        return store if request.param == "same" else other_store
