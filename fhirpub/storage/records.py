"""The records of a store: versions, documents, searches, clients and signing keys.

They are imported from `fhirpub.storage.contract`, which states what a store does with them. All
times are milliseconds since 1970-01-01 UTC, all sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fhirpub.storage.criteria import NEWEST_FIRST, Condition, Order, SortKey, TokenMatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One immutable version of a resource, with everything that its commit carries (ADR 1).

    Attributes:
        id: The resource's id, derived from its identifier and the tenant's salt (ADR 2).
        version: Its number: 1 for a registration, one more with each update. What is registered
            after an erasure follows its tombstone.
        type: The FHIR type of the resource; that of an erased version has a mark before it
            (`fhirpub.storage.erasure.tombstones`).
        system: The system of the business identifier.
        value: The value of the business identifier.
        status: The status of the resource.
        created: When version 1 was created, in milliseconds.
        updated: When this version was created, in milliseconds.
        body: The resource as JSON. It is complete except for the data of its documents, which are
            replaced by placeholders that refer to blobs (ADR 3; ``fhir/document.py``).
        documents: The blobs that it refers to, by SHA-256 in lower-case hex.
        attached: Those of its documents that are small, with their bytes, each of them named in
            ``documents``: they need no record of their own (ADR 30). Pages of searches and
            histories come without them.
        response: The first response to the registration, replayed byte for byte (ADR 1); empty in
            later versions.
        parts: The resources that were registered with it, such as the patient and the
            organization, as JSON (ADR 15); empty in later versions.
        events: The events to publish for this version, as JSON (ADR 11).
        search: The values that it is found by, as ``criteria.encode`` writes them.
        digest: The digest of the registration as it was sent, to know a repetition by, or of the
            revision that made a later version (ADR 25). Empty in versions that an update made, and
            where it was stored before there were digests.
        members: Versions of other resources that are added together with it (ADR 24), each with an
            id (``tenant.is_member_id``), a version and search values of its own, its ``updated``,
            and without members, documents, events, response, parts or digest. A later version of
            a member belongs to a later version of the same resource. Only `scan` returns them
            with the version that brought them.
        audit: The record of the write for the audit trail, as a JSON object, which the commit
            carries until it is sealed (ADR 35); empty if there is no audit trail.
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
    attached: tuple[Blob, ...] = ()
    response: bytes = b""
    parts: bytes = b""
    events: bytes = b"[]"
    search: bytes = b"[]"
    digest: bytes = b""
    members: tuple[Version, ...] = ()
    audit: bytes = b""

    @property
    def tag(self) -> str:
        """The version id, which is also its entity tag."""
        return str(self.version)

    @property
    def is_first(self) -> bool:
        """Whether it was registered, or came with a registration, and was made by no update.

        That is version 1, or the one after the tombstone of an erased resource (ADR 36).
        """
        return self.created == self.updated

    @property
    def size(self) -> int:
        """The total size in bytes of its fields that can be large."""
        size = self.own_size
        for member in self.members:
            size += member.own_size
        return size

    @property
    def own_size(self) -> int:
        """The same without its members."""
        size = len(self.body) + len(self.parts) + len(self.response) + len(self.events)
        for blob in self.attached:
            size += len(blob.data)
        return size

    def without_internal_fields(self) -> Version:
        """Return the version as readers see it.

        Returns:
            A copy in which ``response``, ``parts``, ``events``, ``search``, ``digest``,
            ``members`` and ``audit`` have their defaults.
        """
        return replace(
            self,
            response=b"",
            parts=b"",
            events=b"[]",
            search=b"[]",
            digest=b"",
            members=(),
            audit=b"",
        )


@dataclass(frozen=True, slots=True)
class Blob:
    """The bytes of a document.

    Attributes:
        sha256: The SHA-256 of ``data`` in lower-case hex, which is also the name of the blob.
        content_type: The media type of the document.
        data: All of its bytes.
    """

    sha256: str
    content_type: str
    data: bytes

    @property
    def info(self) -> BlobInfo:
        """What `Resources.blobs` returns of it while it is small."""
        return BlobInfo(self.sha256, self.content_type, len(self.data), self.data)


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """The metadata of a stored document.

    Attributes:
        sha256: The SHA-256 of its bytes in lower-case hex.
        content_type: The media type with which it was first added, if it is kept only once.
        size: The size in bytes.
        data: All of its bytes, or None if there are more than ``SMALL_BYTES``; they are then read
            in pieces.
    """

    sha256: str
    content_type: str
    size: int
    data: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A search for resources of one type: all of its conditions must hold.

    Attributes:
        type: The FHIR type.
        ids: The ids of which the resource must have one, or None for any id.
        identifiers: Groups of alternatives; in each group at least one must match.
        criteria: Conditions on the newest version, or on any version with ``every_version``.
        order: The order of the results; those in the same place are ordered by id.
        after: The sort key (``criteria.sort_key``) of the last entry of the previous page.
        limit: The maximum number of versions in the page; 0 requests only the total.
        count_up_to: The number of matches, over all pages, up to which a total is counted; None
            counts all of them, 0 counts none.
        every_version: Whether every version can match, not only the newest of each resource.
        has_members: Whether versions of the type may have been added as members (ADR 24). If not,
            an engine need not look for them.
        needed_values: The names under which the search values of the versions in the page are
            needed: an engine may leave out others. None needs all.
        max_seconds: The time for which the store may work on the search, in seconds, at most
            ``MAX_SEARCH_SHARE`` of its deadline; None limits it by the deadline alone.
    """

    type: str
    ids: frozenset[str] | None = None
    identifiers: tuple[tuple[TokenMatch, ...], ...] = ()
    criteria: tuple[Condition, ...] = ()
    order: tuple[Order, ...] = NEWEST_FIRST
    after: SortKey | None = None
    limit: int = 20
    count_up_to: int | None = None
    every_version: bool = False
    has_members: bool = False
    needed_values: frozenset[str] | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a search, in the requested order.

    Attributes:
        versions: The versions on this page.
        total: The number of matches on all pages; None if there are more than were to be counted,
            or if none were to be counted.
        more: Whether another page follows. Then this one has at least one version, behind the last
            of which the other begins.
    """

    versions: tuple[Version, ...]
    total: int | None
    more: bool


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A secret of a client, stored as a digest.

    Attributes:
        digest: The SHA-256 of the secret.
        expires: When it expires, in milliseconds; None means that it is valid until it is rotated.
    """

    digest: bytes
    expires: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An application that publishes for one tenant, in one environment.

    Attributes:
        id: The id by which it authenticates.
        tenant: The id of its tenant.
        name: A name for operators.
        environment: The environment in which it may request tokens.
        created: When it was added, in milliseconds.
        secrets: Its secrets; none if it signs assertions.
        scopes: What its tokens may allow (SMART App Launch 2.0, scopes).
        disabled: Whether it is refused.
        networks: The networks from which it may call, in the notation of CIDR (RFC 4632, section
            3.1), such as ``10.1.0.0/16`` and ``2001:db8::/32``; none: from everywhere.
        jwks: The public keys that verify its assertions, as the text of a JSON Web Key Set
            (RFC 7517, section 5), or empty.
        jwks_url: Where it publishes these keys instead, or empty.
    """

    id: str
    tenant: str
    name: str
    environment: str
    created: int
    secrets: tuple[ClientSecret, ...]
    scopes: tuple[str, ...] = ()
    disabled: bool = False
    networks: tuple[str, ...] = ()
    jwks: str = ""
    jwks_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key pair that signs access tokens.

    Attributes:
        kid: The key id (RFC 7517, section 4.5).
        algorithm: The signature algorithm (RFC 7518, section 3.1).
        environment: The environment whose tokens it signs.
        created: When it was created, in milliseconds.
        private_pem: The private key as PEM, in PKCS #8 (RFC 5208), unencrypted. If it could not
            be decrypted in the store, it is as stored (`fhirpub.sealed.is_sealed`).
        retired: When a newer key replaced it, in milliseconds, or None. A retired key signs no
            more tokens, and verifies those that it signed until the last of them has expired.
    """

    kid: str
    algorithm: str
    environment: str
    created: int
    private_pem: bytes = field(repr=False)
    retired: int | None = None
