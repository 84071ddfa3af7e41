"""The store's promises and the records it keeps; every engine keeps the same ones.

Three groups of methods, which `store.py` joins with those of webhooks: every method of
``Resources`` takes the tenant first, so that no query can omit it; ``CredentialStore`` stores
tenants, clients and signing keys for authentication; ``StoreAdmin`` serves operators that transfer
a store, and no request reaches it.

Every method may raise StoreUnavailable. After it the caller does not know whether a write
happened, and may repeat it: every write is safe to repeat.

All times are milliseconds since 1970-01-01 UTC. `fhirpub.testing.StoreContract` holds a test
for each promise below. See ADR 12.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fhirpub.storage.criteria import NEWEST_FIRST, Criterion, Order, SortKey, TokenMatch
from fhirpub.tenant import Tenant

SMALL_BYTES = 64 * 1024
"""A document of up to so many bytes comes along with what is known of it."""
MAX_CHUNK_BYTES = 512 * 1024
"""Larger ones come in pieces of at most so many bytes."""
MAX_PAGE_BYTES = 16 * 1024 * 1024
"""A page of a search, a history or a walk ends where its versions come to about so many bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One immutable version of a resource, and all that its commit has to carry.

    ``body`` is the resource as JSON, complete but for its documents' data, which stand in it as
    references to blobs (``fhir/document.py``). ``documents`` lists the blobs, by SHA-256 in hex.
    ``response`` is the first answer to a registration, replayed byte for byte (ADR 1), and
    ``parts`` the patient and organization that came with it; later versions have neither.
    ``events`` are the events to publish for this version. ``search`` are the values
    that it is found by, as ``criteria.encoded`` writes them.
    """

    id: str
    version: int
    type: str
    system: str
    value: str
    status: str
    created: int
    updated: int
    body: bytes
    documents: tuple[str, ...] = ()
    response: bytes = b""
    parts: bytes = b""
    events: bytes = b"[]"
    search: bytes = b"[]"

    @property
    def size(self) -> int:
        """How many bytes it has, of what can be large of it."""
        return len(self.body) + len(self.parts) + len(self.response) + len(self.events)

    def without_internal_fields(self) -> Version:
        """Return what readers see: all but ``response``, ``parts``, ``events`` and ``search``."""
        return replace(self, response=b"", parts=b"", events=b"[]", search=b"[]")


@dataclass(frozen=True, slots=True)
class Blob:
    """A document's bytes. ``sha256`` is of ``data``, in lower-case hex, and is its name.

    ``title`` is what its sender calls it, or empty.
    """

    sha256: str
    content_type: str
    data: bytes
    title: str = ""


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """What is known of a document that is kept; ``size`` is in bytes.

    ``data`` is None if it is larger than ``SMALL_BYTES``: its bytes are read in pieces then.
    """

    sha256: str
    content_type: str
    title: str
    size: int
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What to look for. Alternatives stand together, what must hold at once stands apart.

    ``ids`` None: any; a set: one of these. Each member of ``identifiers`` is a set of
    alternatives, of which one must match. All ``criteria`` must hold of the newest version,
    or of any with ``every_version``. They come in ``order``, those of the same place by id.
    ``after`` is the sort key (``criteria.sort_key``) of the last entry of the page before.
    ``limit`` 0 asks for the total alone.
    """

    type: str
    ids: frozenset[str] | None = None
    identifiers: tuple[tuple[TokenMatch, ...], ...] = ()
    criteria: tuple[Criterion, ...] = ()
    order: tuple[Order, ...] = NEWEST_FIRST
    after: SortKey | None = None
    limit: int = 20
    count_up_to: int | None = None
    """So many matches of all pages are counted, all of them if None, for the total."""
    every_version: bool = False
    """Whether every version can match, not only the newest of its resource."""


@dataclass(frozen=True, slots=True)
class Page:
    """Versions in the order that was asked for.

    ``total`` is the number of the matches of all pages; None if they are more than were to be
    counted, or if none was. ``more`` says whether another page follows.
    """

    versions: tuple[Version, ...]
    total: int | None
    more: bool


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A client's secret, as SHA-256 of it. ``expires`` None: until it is rotated."""

    digest: bytes
    expires: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An application that publishes for one tenant, in one environment."""

    id: str
    tenant: str
    name: str
    environment: str
    created: int
    secrets: tuple[ClientSecret, ...]
    scopes: tuple[str, ...] = ()
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key pair that signs tokens. ``private_pem`` is PKCS #8, unencrypted.

    ``retired`` is when a newer key took over: it signs nothing any more, and verifies until the
    last token signed by it has expired.
    """

    kid: str
    algorithm: str
    environment: str
    created: int
    private_pem: bytes = field(repr=False)
    retired: int | None = None


class Resources(ABC):
    """Resources and documents, apart by tenant; safe to call from many tasks and processes."""

    @abstractmethod
    async def add(self, tenant: str, version: Version, blobs: Collection[Blob] = ()) -> bool:
        """Insert a version as one atomic, durable step; return whether this call did it.

        All versions of a resource are of one tenant, from whose salt its id is made.

        ``blobs`` are the documents that it names and that may not be kept yet: they are durable
        before the version can be read. Bytes that are kept already change nothing, but count as
        fresh for :meth:`sweep_blobs`; content type and title that came first stay. Those of a
        refused version may or may not be kept.

        False: the key (id, version) is taken, by any tenant. Of any number of racing calls
        for one key exactly one gets True. When True is returned the version, its response,
        parts and events survive a crash of the machine, and every later read, by any process,
        sees them.
        """

    @abstractmethod
    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        """Return the newest version, never a stale one."""

    @abstractmethod
    async def latest_public(self, tenant: str, resource_id: str) -> Version | None:
        """Return the newest version as :meth:`Version.without_internal_fields`, never a stale one.

        What readers do not see outweighs what they do: it can be left where it is.
        """

    @abstractmethod
    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        """Return one version."""

    @abstractmethod
    async def history(
        self, tenant: str, resource_id: str, *, below: int | None = None, limit: int = 20
    ) -> Sequence[Version]:
        """Return versions, newest first, those below ``below`` if given.

        Fewer than ``limit`` also where they come to about ``MAX_PAGE_BYTES`` bytes.
        """

    @abstractmethod
    async def search(self, tenant: str, query: SearchQuery) -> Page:
        """Return a page of the resources that match, each in its newest version, or of versions.

        A choice between no alternatives finds nothing. ``limit`` 0 never says that more follows.
        A page may be shorter than ``limit`` and say so: where it comes to about
        ``MAX_PAGE_BYTES`` bytes.
        """

    @abstractmethod
    async def blobs(self, tenant: str, names: Collection[str]) -> Mapping[str, BlobInfo]:
        """Return what is kept under these SHA-256 names; unknown ones are left out."""

    @abstractmethod
    def blob_pieces(self, tenant: str, blob: BlobInfo, part: slice) -> AsyncGenerator[bytes, None]:
        """Yield a part of a blob, ``part.start`` up to ``part.stop``, in pieces.

        A piece has at most ``MAX_CHUNK_BYTES`` bytes, however large the blob is. Those of a part
        from 0 on are multiples of three bytes, except the last: each can be encoded in base64
        independently. Raises StoreUnavailable, also for a blob that is not stored.
        """

    async def whole_blob(self, tenant: str, blob: BlobInfo) -> Blob:
        """Return a blob with all its bytes."""
        data = blob.data
        if data is None:
            pieces = self.blob_pieces(tenant, blob, slice(0, blob.size))
            data = b"".join([piece async for piece in pieces])
        return Blob(blob.sha256, blob.content_type, data, blob.title)

    @abstractmethod
    async def sweep_blobs(self, tenant: str, *, before: int) -> int:
        """Delete blobs last added before a moment that no version names; return how many.

        ``before`` must lie further back than any request lasts.
        """


class CredentialStore(ABC):
    """Tenants, clients and signing keys."""

    @abstractmethod
    async def put_tenant(self, tenant: Tenant) -> None:
        """Add a tenant, or replace the one of this id."""

    @abstractmethod
    async def tenant(self, tenant_id: str) -> Tenant | None:
        """Return a tenant."""

    @abstractmethod
    async def tenants(self) -> Sequence[Tenant]:
        """Return all tenants, oldest first."""

    @abstractmethod
    async def put_client(self, client: Client) -> None:
        """Add a client, or replace the one of this id, whatever it has become."""

    @abstractmethod
    async def replace_client(self, client: Client, *, over: Client) -> bool:
        """Replace a client, if it is unchanged since it was read (compare and set).

        Does nothing and returns False unless the stored client equals ``over``; then read the
        client again. After StoreUnavailable a repeat may return False
        although the first try worked.
        """

    @abstractmethod
    async def client(self, client_id: str) -> Client | None:
        """Return a client."""

    @abstractmethod
    async def clients(self, *, tenant: str | None = None) -> Sequence[Client]:
        """Return all clients, or those of a tenant, oldest first."""

    @abstractmethod
    async def put_signing_key(self, key: SigningKey) -> None:
        """Add a key, or replace the one of this kid."""

    @abstractmethod
    async def signing_keys(self, environment: str) -> Sequence[SigningKey]:
        """Return the keys of an environment, oldest first."""

    @abstractmethod
    async def rotate_signing_key(self, new: SigningKey, *, expected: Sequence[str]) -> bool:
        """Add a key and retire the unretired ones of its environment, as one atomic step.

        Does nothing and returns False unless the unretired keys are exactly those of the kids
        in ``expected``: of racing calls one succeeds. They are retired at ``new.created``. After
        StoreUnavailable read the keys: a repeat answers False although the first try worked.
        """


class StoreAdmin(ABC):
    """Access to everything in the store, across all tenants."""

    async def identity(self) -> str:
        """Return what no other store has, however the address of this one is written.

        Empty: the engine does not know.
        """
        return ""

    @abstractmethod
    async def count(self) -> int:
        """Return how many versions there are, about: others may be adding some."""

    @abstractmethod
    async def scan(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[tuple[str, Version]]:
        """Return versions, each with its tenant, in the order of (id, version), after that key.

        Ids in the order of their characters. Fewer than ``limit`` also where they come to
        about ``MAX_PAGE_BYTES`` bytes; none only if there are no more.
        """

    @abstractmethod
    async def replace_search(
        self, tenant: str, resource_id: str, version: int, search: bytes
    ) -> None:
        """Replace the values that a version is found by, in one step, and nothing else of it."""

    @abstractmethod
    async def search_rules(self) -> str:
        """Return the rules that were said to be those of all values, empty if none ever were."""

    @abstractmethod
    async def put_search_rules(self, rules: str) -> None:
        """Say by which rules all values have been taken."""
