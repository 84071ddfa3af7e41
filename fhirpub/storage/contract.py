"""The storage seam: the records that a store keeps, and the promises of every engine.

Three groups of methods, which `store.py` joins with those of webhooks: ``Resources`` holds
versions and documents, and each of its methods takes the tenant first, so that no query can omit
it; ``CredentialStore`` holds tenants, clients and signing keys for authentication; ``StoreAdmin``
serves operators, for example when a store is transferred, and no request reaches it.

Every method may raise StoreUnavailable. The caller then does not know whether a write happened,
and may repeat it: every write is safe to repeat. Where a repeat may return something else than the
first call, its docstring notes it.

All times are milliseconds since 1970-01-01 UTC, all sizes are bytes. No version is ever deleted
(ADR 12); one that is erased keeps its key (`erasure.contract`, ADR 36).
`fhirpub.testing.StoreContract` holds a test for each promise below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence

from fhirpub.storage.credential_contract import CredentialStore
from fhirpub.storage.records import (
    Blob,
    BlobInfo,
    Client,
    ClientSecret,
    Page,
    SearchQuery,
    SigningKey,
    Version,
)
from fhirpub.storage.upgrades.versions import SchemaVersion

__all__ = [
    "KEY_RULES",
    "MAX_CHUNK_BYTES",
    "MAX_PAGE_BYTES",
    "MAX_SEARCH_SHARE",
    "SMALL_BYTES",
    "Blob",
    "BlobInfo",
    "Client",
    "ClientSecret",
    "CredentialStore",
    "Page",
    "Resources",
    "SearchQuery",
    "SigningKey",
    "StoreAdmin",
    "Version",
]

KEY_RULES = "identifier of "
"""What the names begin with, among the rules of searches, of those that keys follow from."""
SMALL_BYTES = 64 * 1024
"""The size in bytes up to which a document is returned together with its `BlobInfo`."""
MAX_CHUNK_BYTES = 512 * 1024
"""The maximum size in bytes of a piece that `Resources.blob_pieces` yields."""
MAX_PAGE_BYTES = 16 * 1024 * 1024
"""The approximate size in bytes at which a page of a search, a history or a scan ends early."""
MAX_SEARCH_SHARE = 0.4
"""The share of a store's deadline that a limited search may take, and wait for its turn before."""


class Resources(ABC):
    """Versions and documents, isolated by tenant.

    Its methods are safe to call concurrently from many tasks and processes. Every one may raise
    StoreUnavailable. Data of another tenant cannot be distinguished from data that does not exist.
    """

    @abstractmethod
    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        """Insert a version in one atomic, durable step (ADR 1).

        When True is returned, the version, its response, parts, events and members survive a crash
        of the machine, and every later read by any process sees them. Its members are added with
        it or not at all (ADR 24); every read, history and search treats a member like a version
        that was added alone.

        Args:
            tenant: The tenant of all versions of the resource, from whose salt its id is derived.
            version: The version to insert. The keys of its members follow from its own: where that
                is free, they are free.
            blobs: The documents that it refers to and that may not be stored yet, without those
                that are attached to it. They are durable
                before the version can be read. Storing the same bytes again changes nothing,
                except that they count as fresh for `sweep_blobs`: the content type stays the
                one that came first. The blobs of a refused version may or may not be stored.

        Returns:
            Whether this call inserted the version. False means that the key (id, version) is
            taken, by any tenant. Of any number of concurrent calls for one key, exactly one
            returns True.
        """

    @abstractmethod
    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        """Return the newest version, never a stale one.

        Returns:
            The newest version, or None if this tenant has no such resource.
        """

    @abstractmethod
    async def latest_public(self, tenant: str, resource_id: str) -> Version | None:
        """Return the newest version without its internal fields, never a stale one.

        The internal fields can be larger than the rest; an engine need not read them.

        Returns:
            The newest version as `Version.without_internal_fields` returns it, or None if this
            tenant has no such resource.
        """

    @abstractmethod
    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        """Return one version.

        Args:
            tenant: The tenant of the resource.
            resource_id: The id of the resource.
            version: The number of the version. Any integer is allowed.

        Returns:
            The version, or None if it does not exist or belongs to another tenant.
        """

    @abstractmethod
    async def history(
        self, tenant: str, resource_id: str, *, below: int | None = None, limit: int = 20
    ) -> Sequence[Version]:
        """Return the versions of a resource, newest first.

        Args:
            tenant: The tenant of the resource.
            resource_id: The id of the resource.
            below: Return only versions with a lower number; None returns the newest ones.
            limit: The maximum number of versions.

        Returns:
            The versions without ``attached``; fewer than ``limit`` also if they reach about
            ``MAX_PAGE_BYTES``. Empty if this tenant has no such resource.
        """

    @abstractmethod
    async def search(self, tenant: str, query: SearchQuery) -> Page:
        """Return a page of the resources that match, each in its newest version.

        With ``every_version`` it is a page of the matching versions instead. They come without
        ``attached``.

        Args:
            tenant: The tenant whose resources are searched.
            query: The conditions. A set of no alternatives matches nothing: empty ids, an empty
                group, or an empty criterion that is not negated find no resource.

        Calls of one tenant do not delay those of another: each tenant has a share of what the
        process can search at a time, and a tenant that has none of it in use is next.

        Returns:
            The page. It may be shorter than ``limit`` although ``more`` is true, when it reaches
            about ``MAX_PAGE_BYTES``. With ``limit`` 0 ``more`` is always false.

        Raises:
            SearchTooCostly: The search took longer than ``max_seconds``, or more work than that
                is expected to allow. The store has ended it, and serves other calls during and
                after it.
            Throttled: The tenant used all of its share for too long, so that the search did not
                begin.
        """

    @abstractmethod
    async def blobs(self, tenant: str, names: Collection[str]) -> Mapping[str, BlobInfo]:
        """Return the metadata of documents, and the data of small ones.

        Args:
            tenant: The tenant of the documents.
            names: The SHA-256 names of the documents, in lower-case hex.

        Returns:
            The documents that are stored, by name, also those that are attached to a version.
            Unknown names are omitted.
        """

    @abstractmethod
    def blob_pieces(self, tenant: str, blob: BlobInfo, part: slice) -> AsyncGenerator[bytes, None]:
        """Yield a part of a blob in pieces, however large the blob is.

        Args:
            tenant: The tenant of the blob.
            blob: The blob, as `blobs` returned it.
            part: The bytes from ``part.start`` up to, and not including, ``part.stop``.

        Yields:
            Pieces of at most ``MAX_CHUNK_BYTES``. If the part starts at 0, the size of each piece
            except the last is a multiple of three, so that each can be encoded in base64
            independently (RFC 4648, section 4).

        Raises:
            StoreUnavailable: The store cannot be read, or the blob is not stored.
        """

    async def whole_blob(self, tenant: str, blob: BlobInfo) -> Blob:
        """Return a blob with all of its bytes in memory.

        Args:
            tenant: The tenant of the blob.
            blob: The blob, as `blobs` returned it.

        Returns:
            The blob with its data.

        Raises:
            StoreUnavailable: The store cannot be read, or the blob is not stored.
        """
        data = blob.data
        if data is None:
            pieces = self.blob_pieces(tenant, blob, slice(0, blob.size))
            data = b"".join([piece async for piece in pieces])
        return Blob(blob.sha256, blob.content_type, data)

    @abstractmethod
    async def sweep_blobs(self, tenant: str, *, before: int) -> int:
        """Delete the blobs that no version of the tenant refers to.

        Args:
            tenant: The tenant whose blobs are swept.
            before: Delete only blobs that were last added before this time, in milliseconds. It
                must be further in the past than the longest request takes.

        Returns:
            The number of blobs deleted.
        """


class StoreAdmin(ABC):
    """Access to everything in the store, across all tenants.

    Every method may raise StoreUnavailable.
    """

    async def identity(self) -> str:
        """Return what distinguishes this store from all others, however its address is written.

        Returns:
            A text that is the same each time the store is opened; empty if the engine has none.
        """
        return ""

    async def schema_version(self) -> SchemaVersion:
        """Return the version that the last upgrade of the store has written.

        Returns:
            The version; 0 if the engine has none.
        """
        return SchemaVersion(0, 0)

    @abstractmethod
    async def count(self) -> int:
        """Count the versions in the store, without the members of others.

        Returns:
            The number of versions; approximate while other processes add some.
        """

    @abstractmethod
    async def scan(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[tuple[str, Version]]:
        """Return versions in the order of (id, version).

        Args:
            after: Return only versions behind this key. Ids are ordered by their characters.
            limit: The maximum number of versions.

        Returns:
            The versions, each with its tenant and its members; fewer than ``limit`` also if they
            reach about ``MAX_PAGE_BYTES``. Members are not returned on their own. Empty only if
            there are no more.
        """

    @abstractmethod
    async def replace_search(
        self, tenant: str, resource_id: str, version: int, search: bytes
    ) -> None:
        """Replace the search values of a version in one step, and change nothing else of it.

        It may be a member of another version. A version that does not exist, or that belongs to
        another tenant, is not created.

        Args:
            tenant: The tenant of the resource.
            resource_id: The id of the resource.
            version: The number of the version.
            search: The new values, as ``criteria.encode`` writes them.
        """

    @abstractmethod
    async def search_rules(self) -> str:
        """Return the rules by which all search values in the store were computed (ADR 19).

        Returns:
            The rules that were last passed to `put_search_rules`; empty if there were none.
        """

    @abstractmethod
    async def put_search_rules(self, rules: str) -> None:
        """Record the rules by which all search values were computed (ADR 19)."""
