"""Problems of the request as such: its caller, address, form and rate."""

from __future__ import annotations

from fhirpub.problems.kind import Problem


class RequestProblem(Problem):
    """What is wrong before the content of a body is looked at."""

    TOKEN_MISSING = (
        "token-missing",
        "security",
        "The request has no access token.",
        "Send the header `Authorization: Bearer <token>`, with a token from `/oauth/token`.",
    )
    AUTHORIZATION_MALFORMED = (
        "authorization-malformed",
        "security",
        "The header Authorization is not the word Bearer, one space and a token.",
        "Send exactly one such header, without quotation marks, line breaks or further spaces.",
    )
    TOKEN_INVALID = (
        "token-invalid",
        "security",
        "The token was not issued by this service, or is not complete.",
        "Request a new token, and send it as it is.",
    )
    TOKEN_EXPIRED = (
        "token-expired",
        "security",
        "The time of the token is over.",
        "Request a new one. `expires_in` states how many seconds a token lasts.",
    )
    TOKEN_REVOKED = (
        "token-revoked",
        "security",
        "The client itself, or the operator of the service, has revoked the token.",
        "Request a new one. If the client did not revoke it, ask the operator.",
    )
    TOKEN_MISDIRECTED = (
        "token-misdirected",
        "security",
        "The token is for another issuer, audience or environment.",
        "Request one from the token endpoint of this service, for its audience.",
    )
    CLIENT_DISABLED = (
        "client-disabled",
        "security",
        "The client or its tenant has been disabled or removed since the token was issued.",
        "Ask the operator of the service. A new token is refused as well.",
    )
    ADDRESS_NOT_PERMITTED = (
        "address-not-permitted",
        "forbidden",
        "The request comes from an address outside of the networks of the client.",
        "Send it from one of them, or ask the operator of the service to add the network.",
    )
    SCOPE_MISSING = (
        "scope-missing",
        "forbidden",
        "The token is valid but lacks the scope that this request needs.",
        "Request a token with the scope in the diagnostics, or ask the operator for it.",
    )
    ADDRESS_UNKNOWN = (
        "address-unknown",
        "not-supported",
        "Nothing is served at this path. Paths are case-sensitive.",
        "Compare it with `/openapi.json`. The base is `/fhir/r4`; types begin in upper case.",
    )
    TYPE_UNKNOWN = (
        "type-unknown",
        "not-supported",
        "The path names a type of FHIR R4 that this service does not have.",
        "Use one of the types in the diagnostics. The operator can enable further ones.",
    )
    TYPE_NOT_SEARCHABLE = (
        "type-not-searchable",
        "not-supported",
        "Resources of this type belong to others: they are only read, by their id.",
        "Search the type that they belong to, and follow its references.",
    )
    BATCH_UNSUPPORTED = (
        "batch-unsupported",
        "not-supported",
        "A Bundle is no batch, or is in another one: transactions are not supported.",
        "Send the type `batch` to the FHIR base. A registration takes a report as a whole.",
    )
    METHOD_UNSUPPORTED = (
        "method-unsupported",
        "not-supported",
        "The path exists, but not with this method.",
        "Use one of the methods in `Allow`. Resources change by PATCH, and are never deleted.",
    )
    FORMAT_UNSUPPORTED = (
        "format-unsupported",
        "not-supported",
        "`Accept` or `_format` asks for a format that this response does not have.",
        "Ask for `application/fhir+json` or `application/fhir+xml`.",
    )
    BODY_TYPE_UNSUPPORTED = (
        "body-type-unsupported",
        "not-supported",
        "The Content-Type of the body, its character set or its encoding is not read here.",
        "Send one of the types that the diagnostics name, in UTF-8.",
    )
    RESOURCE_ERASED = (
        "resource-erased",
        "deleted",
        "The content of the resource was erased on an order, such as one under Article 17 GDPR.",
        "Delete what you have of it. It does not come back.",
    )
    RESOURCE_UNKNOWN = (
        "resource-unknown",
        "not-found",
        "There is no such resource or version that your tenant may see.",
        "Take the id from `Location`, or search by the identifier.",
    )
    RECORD_UNKNOWN = (
        "record-unknown",
        "not-found",
        "There is no such webhook endpoint or delivery of your tenant.",
        "List them by GET on the collection.",
    )
    NO_MATCH = (
        "no-match",
        "not-found",
        "No resource matches the condition in the URL.",
        "Search with the same parameters, and correct them.",
    )
    SEVERAL_MATCHES = (
        "several-matches",
        "multiple-matches",
        "The condition must match one resource and matches several.",
        "Name the resource by its identifier, with its system.",
    )
    VERSION_CONFLICT = (
        "version-conflict",
        "conflict",
        "The resource has another version than the one that the request requires.",
        "Read the latest version, apply the change to it, and send its ETag in `If-Match`.",
    )
    PRECONDITION_MALFORMED = (
        "precondition-malformed",
        "conflict",
        "`If-Match` does not have the form of an entity tag.",
        'Send the ETag as it was received, such as `W/"3"`, with its quotation marks.',
    )
    PRECONDITION_REQUIRED = (
        "precondition-required",
        "required",
        "The request does not state which version it is to replace.",
        "Send the ETag of the version that was read in `If-Match`; `*` stands for any version.",
    )
    RANGE_UNSATISFIABLE = (
        "range-unsatisfiable",
        "invalid",
        "The document does not have the requested range.",
        "See its length in `Content-Range`.",
    )
    REQUEST_MALFORMED = (
        "request-malformed",
        "exception",
        "The request is not valid HTTP/1.1.",
        "Let an HTTP library write it. The connection is closed.",
    )
    ADDRESS_TOO_LONG = (
        "address-too-long",
        "too-costly",
        "The first line of the request is longer than 16 KiB.",
        "Send a search as a form to `_search`.",
    )
    HEAD_TOO_LARGE = (
        "head-too-large",
        "too-costly",
        "The request has too many headers, or too long ones.",
        "Send fewer.",
    )
    REQUEST_TIMEOUT = (
        "request-timeout",
        "timeout",
        "The request was not complete in time.",
        "Send it again, over a faster connection.",
    )
    RATE_LIMITED = (
        "rate-limited",
        "throttled",
        "The client sends more requests than it may.",
        "Wait for the seconds in `Retry-After`, then send the same request again.",
    )
    QUOTA_USED_UP = (
        "quota-used-up",
        "throttled",
        "A quota of the client or its tenant is used up for now.",
        "Wait for the seconds in `Retry-After`, then send the same request again.",
    )
    STORAGE_QUOTA_USED_UP = (
        "storage-quota-used-up",
        "business-rule",
        "The tenant stores as much as its quota allows.",
        "Ask the operator of the service.",
    )
    SERVICE_BUSY = (
        "service-busy",
        "transient throttled",
        "The service has too many large requests or connections at the moment.",
        "Send the same request again after the seconds in `Retry-After`.",
    )
    STORE_UNAVAILABLE = (
        "store-unavailable",
        "transient",
        "The database does not answer at the moment.",
        "Send the same request again after the seconds in `Retry-After`.",
    )
    WEBHOOKS_UNAVAILABLE = (
        "webhooks-unavailable",
        "exception",
        "The operator has not set the key that protects the secrets of endpoints.",
        "Ask the operator of the service.",
    )
    TENANT_UNAVAILABLE = (
        "tenant-unavailable",
        "exception",
        "The operator has to restore the key that protects the secret of the tenant.",
        "Ask the operator of the service.",
    )
    INTERNAL_ERROR = (
        "internal-error",
        "exception",
        "A fault of the service.",
        "Send the same request again. If it persists, report the request id to the operator.",
    )
