"""Types of resources and events, written by `scripts/client-models`."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

Anything: TypeAlias = Any


class Attachment(TypedDict):
    contentType: NotRequired[str]
    language: NotRequired[str]
    data: NotRequired[str]
    url: NotRequired[str]
    size: NotRequired[int]
    hash: NotRequired[str]
    title: NotRequired[str]
    creation: NotRequired[str]


class AuditEventAgentNetwork(TypedDict):
    address: NotRequired[str]
    type: NotRequired[Literal["1", "2", "3", "4", "5"]]


class AuditEventEntityDetail(TypedDict):
    type: NotRequired[str]
    valueString: NotRequired[str]
    valueBase64Binary: NotRequired[str]


class BundleEntryRequest(TypedDict):
    method: NotRequired[Literal["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]]
    url: NotRequired[str]
    ifNoneMatch: NotRequired[str]
    ifModifiedSince: NotRequired[str]
    ifMatch: NotRequired[str]
    ifNoneExist: NotRequired[str]


class BundleEntrySearch(TypedDict):
    mode: NotRequired[Literal["match", "include", "outcome"]]
    score: NotRequired[float]


class BundleLink(TypedDict):
    relation: NotRequired[str]
    url: NotRequired[str]


class Coding(TypedDict):
    system: NotRequired[str]
    version: NotRequired[str]
    code: NotRequired[str]
    display: NotRequired[str]
    userSelected: NotRequired[bool]


class DocumentReferenceContent(TypedDict):
    attachment: Attachment
    format: NotRequired[Coding]


class Duration(TypedDict):
    value: NotRequired[float]
    comparator: NotRequired[Literal["<", "<=", ">=", ">"]]
    unit: NotRequired[str]
    system: NotRequired[str]
    code: NotRequired[str]


class ImagingStudySeriesInstance(TypedDict):
    uid: NotRequired[str]
    sopClass: Coding
    number: NotRequired[int]
    title: NotRequired[str]


class ImmunizationEducation(TypedDict):
    documentType: NotRequired[str]
    reference: NotRequired[str]
    publicationDate: NotRequired[str]
    presentationDate: NotRequired[str]


class Meta(TypedDict):
    versionId: NotRequired[str]
    lastUpdated: NotRequired[str]
    source: NotRequired[str]
    profile: NotRequired[list[str | None]]
    security: NotRequired[list[Coding]]
    tag: NotRequired[list[Coding]]


class Narrative(TypedDict):
    status: NotRequired[Literal["generated", "extensions", "additional", "empty"]]
    div: str


class Period(TypedDict):
    start: NotRequired[str]
    end: NotRequired[str]


class Quantity(TypedDict):
    value: NotRequired[float]
    comparator: NotRequired[Literal["<", "<=", ">=", ">"]]
    unit: NotRequired[str]
    system: NotRequired[str]
    code: NotRequired[str]


class Range(TypedDict):
    low: NotRequired[Quantity]
    high: NotRequired[Quantity]


class Ratio(TypedDict):
    numerator: NotRequired[Quantity]
    denominator: NotRequired[Quantity]


class Resource(TypedDict):
    """
    A FHIR R4 resource of any type.
    """

    resourceType: str


class SampledData(TypedDict):
    origin: Quantity
    period: NotRequired[float]
    factor: NotRequired[float]
    lowerLimit: NotRequired[float]
    upperLimit: NotRequired[float]
    dimensions: NotRequired[int]
    data: NotRequired[str]


class TimingRepeat(TypedDict):
    boundsDuration: NotRequired[Duration]
    boundsRange: NotRequired[Range]
    boundsPeriod: NotRequired[Period]
    count: NotRequired[int]
    countMax: NotRequired[int]
    duration: NotRequired[float]
    durationMax: NotRequired[float]
    durationUnit: NotRequired[Literal["s", "min", "h", "d", "wk", "mo", "a"]]
    frequency: NotRequired[int]
    frequencyMax: NotRequired[int]
    period: NotRequired[float]
    periodMax: NotRequired[float]
    periodUnit: NotRequired[Literal["s", "min", "h", "d", "wk", "mo", "a"]]
    dayOfWeek: NotRequired[list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]]]
    timeOfDay: NotRequired[list[str | None]]
    when: NotRequired[
        list[
            Literal[
                "MORN",
                "MORN.early",
                "MORN.late",
                "NOON",
                "AFT",
                "AFT.early",
                "AFT.late",
                "EVE",
                "EVE.early",
                "EVE.late",
                "NIGHT",
                "PHS",
                "HS",
                "WAKE",
                "C",
                "CM",
                "CD",
                "CV",
                "AC",
                "ACM",
                "ACD",
                "ACV",
                "PC",
                "PCM",
                "PCD",
                "PCV",
            ]
        ]
    ]
    offset: NotRequired[int]


class Request(TypedDict):
    method: Literal["GET", "HEAD", "POST", "PATCH"]
    url: str
    ifMatch: NotRequired[str]
    ifNoneMatch: NotRequired[str]
    ifModifiedSince: NotRequired[str]
    ifNoneExist: NotRequired[str]


class EntryItem(TypedDict):
    fullUrl: NotRequired[str]
    resource: NotRequired[Resource]
    request: Request


class Batch(TypedDict):
    resourceType: Literal["Bundle"]
    type: Literal["batch"]
    entry: NotRequired[list[EntryItem]]


class Health(TypedDict):
    status: Literal["alive", "ready"]


MergePatch: TypeAlias = dict[str, Any]
"""
RFC 7396.
"""


class OAuthError(TypedDict):
    error: str
    error_description: str


class Object(TypedDict):
    pass


class ParameterItem(TypedDict):
    name: str
    resource: NotRequired[Resource]


class Parameters(TypedDict):
    resourceType: Literal["Parameters"]
    parameter: list[ParameterItem]


class RevocationRequest(TypedDict):
    token: str
    token_type_hint: NotRequired[str]
    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    client_assertion_type: NotRequired[str]
    client_assertion: NotRequired[str]


class Token(TypedDict):
    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    scope: NotRequired[str]


class TokenRequest(TypedDict):
    grant_type: Literal["client_credentials"]
    audience: NotRequired[str]
    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    scope: NotRequired[str]
    client_assertion_type: NotRequired[str]
    client_assertion: NotRequired[str]


class Attempt(TypedDict):
    number: int
    begun: str
    answer: NotRequired[str]
    status: NotRequired[int | None]
    reason: NotRequired[str]
    why: str
    milliseconds: NotRequired[int]


class Delivery(TypedDict):
    event_id: str
    event_type: str
    sequence: int
    status: Literal["pending", "delivering", "retrying", "delivered", "dead", "held", "cancelled"]
    resource: str
    created: str
    next_attempt: str | None
    ended: str | None
    attempts: list[Attempt]


class DeliveryList(TypedDict):
    deliveries: list[Delivery]
    next: str | None


class DeliveryWithBody(TypedDict):
    event_id: str
    event_type: str
    sequence: int
    status: Literal["pending", "delivering", "retrying", "delivered", "dead", "held", "cancelled"]
    resource: str
    created: str
    next_attempt: str | None
    ended: str | None
    attempts: list[Attempt]
    body: dict[str, Any]


class DisclosedEndpoint(TypedDict):
    id: str
    url: str
    event_types: list[str]
    payload: Literal["standard", "id-only"]
    ordering: Literal["none", "per_resource", "strict"]
    description: str
    state: Literal["unverified", "active", "paused", "disabled", "deleted"]
    why: str
    created: str
    revision: int
    old_secrets_until: list[str]
    signing_secret: NotRequired[str]
    bearer_token: NotRequired[str]


class WebhookEndpoint(TypedDict):
    id: str
    url: str
    event_types: list[str]
    payload: Literal["standard", "id-only"]
    ordering: Literal["none", "per_resource", "strict"]
    description: str
    state: Literal["unverified", "active", "paused", "disabled", "deleted"]
    why: str
    created: str
    revision: int
    old_secrets_until: list[str]


class EndpointList(TypedDict):
    endpoints: list[WebhookEndpoint]


class EventType(TypedDict):
    name: str
    resource_type: str | None
    title: str
    schema: dict[str, Any] | None


class EventTypeList(TypedDict):
    event_types: list[EventType]
    shared_schemas: list[dict[str, Any]]


class Event(TypedDict):
    event_id: str
    event_type: str
    sequence: int
    status: Literal["pending", "delivering", "retrying", "delivered", "dead", "held", "cancelled"]
    body: dict[str, Any]


class EventList(TypedDict):
    events: list[Event]
    last_sequence: int
    next: str | None


class Replayed(TypedDict):
    reopened: int
    state: Literal["unverified", "active", "paused", "disabled", "deleted"]
    next: dict[str, Any] | None


class ByHourItem(TypedDict):
    since: str
    succeeded: int
    failed: int


class ByDayItem(TypedDict):
    since: str
    succeeded: int
    failed: int


class Stats(TypedDict):
    state: Literal["unverified", "active", "paused", "disabled", "deleted"]
    deliveries: dict[str, int]
    last_sequence: int
    oldest_undelivered: str | None
    window_seconds: int
    attempts: int
    success_rate: float | None
    p50_milliseconds: float | None
    p95_milliseconds: float | None
    by_hour: list[ByHourItem]
    by_day: list[ByDayItem]
    breaker: str
    failures_in_a_row: int
    failing_since: str | None
    warned: bool
    throttled_until: str | None


class Trial(TypedDict):
    passed: bool
    state: Literal["unverified", "active", "paused", "disabled", "deleted"]
    event_id: str
    event_type: str
    note: str
    status: int | None
    reason: str
    why: str
    milliseconds: int


class UpdateDiagnosticReport(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["DiagnosticReport"]
    status: NotRequired[
        Literal[
            "registered",
            "partial",
            "preliminary",
            "final",
            "amended",
            "corrected",
            "appended",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    conclusion: NotRequired[str]
    presentedForm: NotRequired[list[Attachment]]


class UpdateDocumentReference(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["DocumentReference"]
    status: NotRequired[Literal["current", "superseded", "entered-in-error"]]
    docStatus: NotRequired[Literal["preliminary", "final", "amended", "entered-in-error"]]
    description: NotRequired[str]
    content: NotRequired[list[DocumentReferenceContent]]


class CompositionEventIdentifier(TypedDict):
    """
    The resource's business identifier.
    """

    system: str
    value: str


class CompositionEventAuthor(TypedDict):
    """
    Who wrote the composition; a property that the sender did not give is absent.
    """

    author_type: str
    lastname: NotRequired[str]
    firstname: NotRequired[str]
    person_sex: NotRequired[Literal["male", "female", "other", "unknown"]]
    date_of_birth: NotRequired[str]
    person_id_type: NotRequired[str]
    person_id_number: NotRequired[str]
    tin: NotRequired[str]


class CompositionEventCoding(TypedDict):
    system: NotRequired[str]
    code: NotRequired[str]
    display: NotRequired[str]


class CompositionEventCodeableConcept(TypedDict):
    coding: NotRequired[list[CompositionEventCoding]]
    text: NotRequired[str]


class CompositionEventPeriod(TypedDict):
    start: NotRequired[str]
    end: NotRequired[str]


class CompositionEventReference(TypedDict):
    reference: NotRequired[str]
    display: NotRequired[str]


class EnvelopeData(TypedDict):
    resource_type: str
    id: str
    version_id: str
    self: str


class ServiceData(TypedDict):
    endpoint_id: str
    self: str


class DeviceRequestCreatedData(TypedDict):
    resource_type: Literal["DeviceRequest"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[CompositionEventIdentifier]
    status: NotRequired[Literal["draft", "active", "on-hold", "revoked", "completed", "unknown"]]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "directive",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    codeCodeableConcept: NotRequired[CompositionEventCodeableConcept]
    codeReference: NotRequired[CompositionEventReference]
    authoredOn: NotRequired[str]
    author: NotRequired[CompositionEventAuthor]


class DeviceRequestUpdatedData(TypedDict):
    resource_type: Literal["DeviceRequest"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[CompositionEventIdentifier]
    status: NotRequired[
        Literal[
            "draft", "active", "on-hold", "revoked", "completed", "entered-in-error", "unknown"
        ]
    ]
    previous_status: NotRequired[
        Literal[
            "draft", "active", "on-hold", "revoked", "completed", "entered-in-error", "unknown"
        ]
    ]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "directive",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    codeCodeableConcept: NotRequired[CompositionEventCodeableConcept]
    codeReference: NotRequired[CompositionEventReference]
    authoredOn: NotRequired[str]
    author: NotRequired[CompositionEventAuthor]


class Identifier1(TypedDict):
    """
    The report's business identifier.
    """

    system: str
    value: str


class DiagnosticReportCreatedData(TypedDict):
    resource_type: Literal["DiagnosticReport"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[Identifier1]
    status: NotRequired[Literal["registered", "partial", "preliminary", "final", "unknown"]]


class DiagnosticReportUpdatedData(TypedDict):
    resource_type: Literal["DiagnosticReport"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[Identifier1]
    status: NotRequired[
        Literal[
            "partial",
            "preliminary",
            "final",
            "amended",
            "corrected",
            "appended",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    previous_status: NotRequired[
        Literal[
            "registered",
            "partial",
            "preliminary",
            "final",
            "amended",
            "corrected",
            "appended",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    added: NotRequired[list[str]]
    changed: NotRequired[list[str]]


EncounterOutpatientCreatedData = TypedDict(
    "EncounterOutpatientCreatedData",
    {
        "resource_type": Literal["Encounter"],
        "id": str,
        "version_id": str,
        "self": str,
        "identifier": NotRequired[CompositionEventIdentifier],
        "status": NotRequired[
            Literal[
                "planned",
                "arrived",
                "triaged",
                "in-progress",
                "onleave",
                "finished",
                "cancelled",
                "unknown",
            ]
        ],
        "class": NotRequired[CompositionEventCoding],
        "type": NotRequired[list[CompositionEventCodeableConcept]],
        "serviceType": NotRequired[CompositionEventCodeableConcept],
        "period": NotRequired[CompositionEventPeriod],
        "author": NotRequired[CompositionEventAuthor],
    },
)


EncounterOutpatientUpdatedData = TypedDict(
    "EncounterOutpatientUpdatedData",
    {
        "resource_type": Literal["Encounter"],
        "id": str,
        "version_id": str,
        "self": str,
        "identifier": NotRequired[CompositionEventIdentifier],
        "status": NotRequired[
            Literal[
                "planned",
                "arrived",
                "triaged",
                "in-progress",
                "onleave",
                "finished",
                "cancelled",
                "entered-in-error",
                "unknown",
            ]
        ],
        "previous_status": NotRequired[
            Literal[
                "planned",
                "arrived",
                "triaged",
                "in-progress",
                "onleave",
                "finished",
                "cancelled",
                "entered-in-error",
                "unknown",
            ]
        ],
        "class": NotRequired[CompositionEventCoding],
        "type": NotRequired[list[CompositionEventCodeableConcept]],
        "serviceType": NotRequired[CompositionEventCodeableConcept],
        "period": NotRequired[CompositionEventPeriod],
        "author": NotRequired[CompositionEventAuthor],
    },
)


class EndpointDisabledData(TypedDict):
    endpoint_id: str
    self: str
    why: str


class EndpointFailingData(TypedDict):
    endpoint_id: str
    self: str


class EndpointTestData(TypedDict):
    endpoint_id: str
    self: str


class EndpointVerificationData(TypedDict):
    endpoint_id: str
    self: str
    challenge: str


class MedicationRequestCreatedData(TypedDict):
    resource_type: Literal["MedicationRequest"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[CompositionEventIdentifier]
    status: NotRequired[
        Literal["active", "on-hold", "cancelled", "completed", "stopped", "draft", "unknown"]
    ]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    doNotPerform: NotRequired[bool]
    medicationCodeableConcept: NotRequired[CompositionEventCodeableConcept]
    medicationReference: NotRequired[CompositionEventReference]
    authoredOn: NotRequired[str]
    author: NotRequired[CompositionEventAuthor]


class MedicationRequestUpdatedData(TypedDict):
    resource_type: Literal["MedicationRequest"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[CompositionEventIdentifier]
    status: NotRequired[
        Literal[
            "active",
            "on-hold",
            "cancelled",
            "completed",
            "entered-in-error",
            "stopped",
            "draft",
            "unknown",
        ]
    ]
    previous_status: NotRequired[
        Literal[
            "active",
            "on-hold",
            "cancelled",
            "completed",
            "entered-in-error",
            "stopped",
            "draft",
            "unknown",
        ]
    ]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    doNotPerform: NotRequired[bool]
    medicationCodeableConcept: NotRequired[CompositionEventCodeableConcept]
    medicationReference: NotRequired[CompositionEventReference]
    authoredOn: NotRequired[str]
    author: NotRequired[CompositionEventAuthor]


class MessageExhaustedData(TypedDict):
    endpoint_id: str
    self: str
    event_id: str
    event_type: str
    sequence: int
    attempts: int


class ObservationCreatedData(TypedDict):
    resource_type: Literal["Observation"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[CompositionEventIdentifier]
    status: NotRequired[
        Literal[
            "registered", "preliminary", "final", "amended", "corrected", "cancelled", "unknown"
        ]
    ]
    category: NotRequired[list[CompositionEventCodeableConcept]]
    code: NotRequired[CompositionEventCodeableConcept]
    effectiveDateTime: NotRequired[str]
    effectivePeriod: NotRequired[CompositionEventPeriod]
    effectiveTiming: NotRequired[dict[str, Any]]
    effectiveInstant: NotRequired[str]
    issued: NotRequired[str]
    author: NotRequired[CompositionEventAuthor]


class ObservationUpdatedData(TypedDict):
    resource_type: Literal["Observation"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[CompositionEventIdentifier]
    status: NotRequired[
        Literal[
            "registered",
            "preliminary",
            "final",
            "amended",
            "corrected",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    previous_status: NotRequired[
        Literal[
            "registered",
            "preliminary",
            "final",
            "amended",
            "corrected",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    category: NotRequired[list[CompositionEventCodeableConcept]]
    code: NotRequired[CompositionEventCodeableConcept]
    effectiveDateTime: NotRequired[str]
    effectivePeriod: NotRequired[CompositionEventPeriod]
    effectiveTiming: NotRequired[dict[str, Any]]
    effectiveInstant: NotRequired[str]
    issued: NotRequired[str]
    author: NotRequired[CompositionEventAuthor]


class ServiceRequestCreatedData(TypedDict):
    resource_type: Literal["ServiceRequest"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[CompositionEventIdentifier]
    status: NotRequired[Literal["draft", "active", "on-hold", "revoked", "completed", "unknown"]]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "directive",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    doNotPerform: NotRequired[bool]
    category: NotRequired[list[CompositionEventCodeableConcept]]
    code: NotRequired[CompositionEventCodeableConcept]
    authoredOn: NotRequired[str]
    author: NotRequired[CompositionEventAuthor]


class ServiceRequestUpdatedData(TypedDict):
    resource_type: Literal["ServiceRequest"]
    id: str
    version_id: str
    self: str
    identifier: NotRequired[CompositionEventIdentifier]
    status: NotRequired[
        Literal[
            "draft", "active", "on-hold", "revoked", "completed", "entered-in-error", "unknown"
        ]
    ]
    previous_status: NotRequired[
        Literal[
            "draft", "active", "on-hold", "revoked", "completed", "entered-in-error", "unknown"
        ]
    ]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "directive",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    doNotPerform: NotRequired[bool]
    category: NotRequired[list[CompositionEventCodeableConcept]]
    code: NotRequired[CompositionEventCodeableConcept]
    authoredOn: NotRequired[str]
    author: NotRequired[CompositionEventAuthor]


class DeviceRequestErasedData(TypedDict):
    resource_type: Literal["DeviceRequest"]
    id: str
    version_id: str
    self: str


class DiagnosticReportErasedData(TypedDict):
    resource_type: Literal["DiagnosticReport"]
    id: str
    version_id: str
    self: str


class DocumentReferenceErasedData(TypedDict):
    resource_type: Literal["DocumentReference"]
    id: str
    version_id: str
    self: str


class EncounterErasedData(TypedDict):
    resource_type: Literal["Encounter"]
    id: str
    version_id: str
    self: str


class EncounterOutpatientErasedData(TypedDict):
    resource_type: Literal["Encounter"]
    id: str
    version_id: str
    self: str


class ImagingStudyErasedData(TypedDict):
    resource_type: Literal["ImagingStudy"]
    id: str
    version_id: str
    self: str


class ImmunizationErasedData(TypedDict):
    resource_type: Literal["Immunization"]
    id: str
    version_id: str
    self: str


class MedicationRequestErasedData(TypedDict):
    resource_type: Literal["MedicationRequest"]
    id: str
    version_id: str
    self: str


class ObservationErasedData(TypedDict):
    resource_type: Literal["Observation"]
    id: str
    version_id: str
    self: str


class ServiceRequestErasedData(TypedDict):
    resource_type: Literal["ServiceRequest"]
    id: str
    version_id: str
    self: str


class SpecimenErasedData(TypedDict):
    resource_type: Literal["Specimen"]
    id: str
    version_id: str
    self: str


class Address(TypedDict):
    use: NotRequired[Literal["home", "work", "temp", "old", "billing"]]
    type: NotRequired[Literal["postal", "physical", "both"]]
    text: NotRequired[str]
    line: NotRequired[list[str | None]]
    city: NotRequired[str]
    district: NotRequired[str]
    state: NotRequired[str]
    postalCode: NotRequired[str]
    country: NotRequired[str]
    period: NotRequired[Period]


class BundleEntryResponse(TypedDict):
    status: NotRequired[str]
    location: NotRequired[str]
    etag: NotRequired[str]
    lastModified: NotRequired[str]
    outcome: NotRequired[Resource]


class CodeableConcept(TypedDict):
    coding: NotRequired[list[Coding]]
    text: NotRequired[str]


class ContactPoint(TypedDict):
    system: NotRequired[Literal["phone", "fax", "email", "pager", "url", "sms", "other"]]
    value: NotRequired[str]
    use: NotRequired[Literal["home", "work", "temp", "old", "mobile"]]
    rank: NotRequired[int]
    period: NotRequired[Period]


class DeviceRequestParameter(TypedDict):
    code: NotRequired[CodeableConcept]
    valueCodeableConcept: NotRequired[CodeableConcept]
    valueQuantity: NotRequired[Quantity]
    valueRange: NotRequired[Range]
    valueBoolean: NotRequired[bool]


class DosageDoseAndRate(TypedDict):
    type: NotRequired[CodeableConcept]
    doseRange: NotRequired[Range]
    doseQuantity: NotRequired[Quantity]
    rateRatio: NotRequired[Ratio]
    rateRange: NotRequired[Range]
    rateQuantity: NotRequired[Quantity]


EncounterClassHistory = TypedDict(
    "EncounterClassHistory",
    {
        "class": Coding,
        "period": Period,
    },
)


class EncounterStatusHistory(TypedDict):
    status: NotRequired[
        Literal[
            "planned",
            "arrived",
            "triaged",
            "in-progress",
            "onleave",
            "finished",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    period: Period


class HumanName(TypedDict):
    use: NotRequired[
        Literal["usual", "official", "temp", "nickname", "anonymous", "old", "maiden"]
    ]
    text: NotRequired[str]
    family: NotRequired[str]
    given: NotRequired[list[str | None]]
    prefix: NotRequired[list[str | None]]
    suffix: NotRequired[list[str | None]]
    period: NotRequired[Period]


class MedicationRequestDispenseRequestInitialFill(TypedDict):
    quantity: NotRequired[Quantity]
    duration: NotRequired[Duration]


class MedicationRequestSubstitution(TypedDict):
    allowedBoolean: NotRequired[bool]
    allowedCodeableConcept: NotRequired[CodeableConcept]
    reason: NotRequired[CodeableConcept]


class ObservationReferenceRange(TypedDict):
    low: NotRequired[Quantity]
    high: NotRequired[Quantity]
    type: NotRequired[CodeableConcept]
    appliesTo: NotRequired[list[CodeableConcept]]
    age: NotRequired[Range]
    text: NotRequired[str]


class OperationOutcomeIssue(TypedDict):
    severity: NotRequired[Literal["fatal", "error", "warning", "information"]]
    code: NotRequired[
        Literal[
            "invalid",
            "structure",
            "required",
            "value",
            "invariant",
            "security",
            "login",
            "unknown",
            "expired",
            "forbidden",
            "suppressed",
            "processing",
            "not-supported",
            "duplicate",
            "multiple-matches",
            "not-found",
            "deleted",
            "too-long",
            "code-invalid",
            "extension",
            "too-costly",
            "business-rule",
            "conflict",
            "transient",
            "lock-error",
            "no-store",
            "exception",
            "timeout",
            "incomplete",
            "throttled",
            "informational",
        ]
    ]
    details: NotRequired[CodeableConcept]
    diagnostics: NotRequired[str]
    location: NotRequired[list[str | None]]
    expression: NotRequired[list[str | None]]


class OrganizationContact(TypedDict):
    purpose: NotRequired[CodeableConcept]
    name: NotRequired[HumanName]
    telecom: NotRequired[list[ContactPoint]]
    address: NotRequired[Address]


class PatientCommunication(TypedDict):
    language: CodeableConcept
    preferred: NotRequired[bool]


class Timing(TypedDict):
    event: NotRequired[list[str | None]]
    repeat: NotRequired[TimingRepeat]
    code: NotRequired[CodeableConcept]


class EnvelopeEvent(TypedDict):
    """
    What every webhook has. Receivers must ignore properties that they do not know.
    """

    transaction_id: str
    event_id: str
    event_type: str
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: EnvelopeData


class ServiceEvent(TypedDict):
    """
    What every webhook has that is about an endpoint, not about a resource. Receivers must ignore properties that they do not know.
    """

    transaction_id: str
    event_id: str
    event_type: str
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    data: ServiceData


class DeviceRequestCreatedEvent(TypedDict):
    """
    A request for a device was registered. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["device_request.created"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: DeviceRequestCreatedData


class DeviceRequestUpdatedEvent(TypedDict):
    """
    A request for a device was updated. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["device_request.updated"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: DeviceRequestUpdatedData


class DiagnosticReportCreatedEvent(TypedDict):
    """
    A report was registered. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["diagnostic_report.created"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: DiagnosticReportCreatedData


class DiagnosticReportUpdatedEvent(TypedDict):
    """
    A report was updated. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["diagnostic_report.updated"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: DiagnosticReportUpdatedData


class EncounterOutpatientCreatedEvent(TypedDict):
    """
    An encounter was registered. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["encounter_outpatient.created"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: EncounterOutpatientCreatedData


class EncounterOutpatientUpdatedEvent(TypedDict):
    """
    An encounter was updated. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["encounter_outpatient.updated"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: EncounterOutpatientUpdatedData


class EndpointDisabledEvent(TypedDict):
    """
    An endpoint was disabled; what is to be delivered is held. Sent to the tenant's other endpoints that ask for it by name.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["endpoint.disabled"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    data: EndpointDisabledData


class EndpointFailingEvent(TypedDict):
    """
    Nothing could be delivered to an endpoint for long; it will be disabled if that goes on. Sent to the tenant's other endpoints that ask for it by name.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["endpoint.failing"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    data: EndpointFailingData


class EndpointTestEvent(TypedDict):
    """
    A try whether the endpoint can be reached. Its sequence is 0: it has no place among the events of the endpoint, and comes whatever they are.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["endpoint.test"]
    timestamp: str
    sequence: Literal[0]
    api_version: Literal["1"]
    data: EndpointTestData


class EndpointVerificationEvent(TypedDict):
    """
    The endpoint has to prove that it wants events. It does so by a 2xx answer whose body holds the challenge. Its sequence is 0: it has no place among the events of the endpoint, and comes whatever they are.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["endpoint.verification"]
    timestamp: str
    sequence: Literal[0]
    api_version: Literal["1"]
    data: EndpointVerificationData


class MedicationRequestCreatedEvent(TypedDict):
    """
    A prescription of a medication was registered. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["medication_request.created"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: MedicationRequestCreatedData


class MedicationRequestUpdatedEvent(TypedDict):
    """
    A prescription of a medication was updated. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["medication_request.updated"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: MedicationRequestUpdatedData


class MessageExhaustedEvent(TypedDict):
    """
    A delivery was given up after all its attempts. Sent to the tenant's other endpoints that ask for it by name.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["message.exhausted"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    data: MessageExhaustedData


class ObservationCreatedEvent(TypedDict):
    """
    An observation was registered. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["observation.created"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: ObservationCreatedData


class ObservationUpdatedEvent(TypedDict):
    """
    An observation was updated. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["observation.updated"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: ObservationUpdatedData


class ServiceRequestCreatedEvent(TypedDict):
    """
    A request for a service was registered. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["service_request.created"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: ServiceRequestCreatedData


class ServiceRequestUpdatedEvent(TypedDict):
    """
    A request for a service was updated. An endpoint whose payload is ids gets none of the properties of data named here.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["service_request.updated"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: ServiceRequestUpdatedData


class DeviceRequestErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["device_request.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: DeviceRequestErasedData


class DiagnosticReportErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["diagnostic_report.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: DiagnosticReportErasedData


class DocumentReferenceErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["document_reference.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: DocumentReferenceErasedData


class EncounterErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["encounter.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: EncounterErasedData


class EncounterOutpatientErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["encounter_outpatient.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: EncounterOutpatientErasedData


class ImagingStudyErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["imaging_study.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: ImagingStudyErasedData


class ImmunizationErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["immunization.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: ImmunizationErasedData


class MedicationRequestErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["medication_request.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: MedicationRequestErasedData


class ObservationErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["observation.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: ObservationErasedData


class ServiceRequestErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["service_request.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: ServiceRequestErasedData


class SpecimenErasedEvent(TypedDict):
    """
    A resource was erased on an order. Delete what you hold of it; self answers 410.
    """

    transaction_id: str
    event_id: str
    event_type: Literal["specimen.erased"]
    timestamp: str
    sequence: int
    api_version: Literal["1"]
    traceparent: NotRequired[str]
    data: SpecimenErasedData


class ContactDetail(TypedDict):
    name: NotRequired[str]
    telecom: NotRequired[list[ContactPoint]]


class Dosage(TypedDict):
    sequence: NotRequired[int]
    text: NotRequired[str]
    additionalInstruction: NotRequired[list[CodeableConcept]]
    patientInstruction: NotRequired[str]
    timing: NotRequired[Timing]
    asNeededBoolean: NotRequired[bool]
    asNeededCodeableConcept: NotRequired[CodeableConcept]
    site: NotRequired[CodeableConcept]
    route: NotRequired[CodeableConcept]
    method: NotRequired[CodeableConcept]
    doseAndRate: NotRequired[list[DosageDoseAndRate]]
    maxDosePerPeriod: NotRequired[Ratio]
    maxDosePerAdministration: NotRequired[Quantity]
    maxDosePerLifetime: NotRequired[Quantity]


class ObservationComponent(TypedDict):
    code: CodeableConcept
    valueQuantity: NotRequired[Quantity]
    valueCodeableConcept: NotRequired[CodeableConcept]
    valueString: NotRequired[str]
    valueBoolean: NotRequired[bool]
    valueInteger: NotRequired[int]
    valueRange: NotRequired[Range]
    valueRatio: NotRequired[Ratio]
    valueSampledData: NotRequired[SampledData]
    valueTime: NotRequired[str]
    valueDateTime: NotRequired[str]
    valuePeriod: NotRequired[Period]
    dataAbsentReason: NotRequired[CodeableConcept]
    interpretation: NotRequired[list[CodeableConcept]]
    referenceRange: NotRequired[list[ObservationReferenceRange]]


class OperationOutcome(TypedDict):
    """
    OperationOutcome of FHIR R4 (4.0.1).
    """

    resourceType: Literal["OperationOutcome"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    issue: list[OperationOutcomeIssue]


class Response(TypedDict):
    status: str
    location: NotRequired[str]
    etag: NotRequired[str]
    lastModified: NotRequired[str]
    outcome: NotRequired[OperationOutcome]


class EntryItem1(TypedDict):
    resource: NotRequired[Resource]
    response: Response


class BatchResponse(TypedDict):
    resourceType: Literal["Bundle"]
    type: Literal["batch-response"]
    entry: NotRequired[list[EntryItem1]]


class RegisteredDeviceRequestIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredDiagnosticReportIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredDocumentReferenceIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredEncounterIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredImagingStudyIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredMedicationRequestIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredObservationIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredServiceRequestIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredSpecimenIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class RegisteredImmunizationIssues(TypedDict):
    name: Literal["issues"]
    resource: OperationOutcome


class Annotation(TypedDict):
    authorReference: NotRequired[Reference]
    authorString: NotRequired[str]
    time: NotRequired[str]
    text: NotRequired[str]


class AuditEvent(TypedDict):
    """
    AuditEvent of FHIR R4 (4.0.1).
    """

    resourceType: Literal["AuditEvent"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    type: Coding
    subtype: NotRequired[list[Coding]]
    action: NotRequired[Literal["C", "R", "U", "D", "E"]]
    period: NotRequired[Period]
    recorded: NotRequired[str]
    outcome: NotRequired[Literal["0", "4", "8", "12"]]
    outcomeDesc: NotRequired[str]
    purposeOfEvent: NotRequired[list[CodeableConcept]]
    agent: list[AuditEventAgent]
    source: AuditEventSource
    entity: NotRequired[list[AuditEventEntity]]


class AuditEventAgent(TypedDict):
    type: NotRequired[CodeableConcept]
    role: NotRequired[list[CodeableConcept]]
    who: NotRequired[Reference]
    altId: NotRequired[str]
    name: NotRequired[str]
    requestor: NotRequired[bool]
    location: NotRequired[Reference]
    policy: NotRequired[list[str | None]]
    media: NotRequired[Coding]
    network: NotRequired[AuditEventAgentNetwork]
    purposeOfUse: NotRequired[list[CodeableConcept]]


class AuditEventEntity(TypedDict):
    what: NotRequired[Reference]
    type: NotRequired[Coding]
    role: NotRequired[Coding]
    lifecycle: NotRequired[Coding]
    securityLabel: NotRequired[list[Coding]]
    name: NotRequired[str]
    description: NotRequired[str]
    query: NotRequired[str]
    detail: NotRequired[list[AuditEventEntityDetail]]


class AuditEventSource(TypedDict):
    site: NotRequired[str]
    observer: Reference
    type: NotRequired[list[Coding]]


class Binary(TypedDict):
    """
    Binary of FHIR R4 (4.0.1).
    """

    resourceType: Literal["Binary"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    contentType: NotRequired[str]
    securityContext: NotRequired[Reference]
    data: NotRequired[str]


class Bundle(TypedDict):
    """
    Bundle of FHIR R4 (4.0.1).
    """

    resourceType: Literal["Bundle"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    identifier: NotRequired[Identifier]
    type: NotRequired[
        Literal[
            "document",
            "message",
            "transaction",
            "transaction-response",
            "batch",
            "batch-response",
            "history",
            "searchset",
            "collection",
        ]
    ]
    timestamp: NotRequired[str]
    total: NotRequired[int]
    link: NotRequired[list[BundleLink]]
    entry: NotRequired[list[BundleEntry]]
    signature: NotRequired[Signature]


class BundleEntry(TypedDict):
    link: NotRequired[list[BundleLink]]
    fullUrl: NotRequired[str]
    resource: NotRequired[
        Union[
            "DeviceRequest",
            "DiagnosticReport",
            "DocumentReference",
            "Encounter",
            "ImagingStudy",
            "MedicationRequest",
            "Observation",
            "ServiceRequest",
            "Specimen",
            "Immunization",
            "Patient",
            "Organization",
            "Practitioner",
            AuditEvent,
            OperationOutcome,
        ]
    ]
    search: NotRequired[BundleEntrySearch]
    request: NotRequired[BundleEntryRequest]
    response: NotRequired[BundleEntryResponse]


class DeviceRequest(TypedDict):
    """
    DeviceRequest of FHIR R4 (4.0.1).
    """

    resourceType: Literal["DeviceRequest"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    instantiatesCanonical: NotRequired[list[str | None]]
    instantiatesUri: NotRequired[list[str | None]]
    basedOn: NotRequired[list[Reference]]
    priorRequest: NotRequired[list[Reference]]
    groupIdentifier: NotRequired[Identifier]
    status: NotRequired[
        Literal[
            "draft", "active", "on-hold", "revoked", "completed", "entered-in-error", "unknown"
        ]
    ]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "directive",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    codeReference: NotRequired[Reference]
    codeCodeableConcept: NotRequired[CodeableConcept]
    parameter: NotRequired[list[DeviceRequestParameter]]
    subject: Reference
    encounter: NotRequired[Reference]
    occurrenceDateTime: NotRequired[str]
    occurrencePeriod: NotRequired[Period]
    occurrenceTiming: NotRequired[Timing]
    authoredOn: NotRequired[str]
    requester: NotRequired[Reference]
    performerType: NotRequired[CodeableConcept]
    performer: NotRequired[Reference]
    reasonCode: NotRequired[list[CodeableConcept]]
    reasonReference: NotRequired[list[Reference]]
    insurance: NotRequired[list[Reference]]
    supportingInfo: NotRequired[list[Reference]]
    note: NotRequired[list[Annotation]]
    relevantHistory: NotRequired[list[Reference]]


class DiagnosticReport(TypedDict):
    """
    DiagnosticReport of FHIR R4 (4.0.1).
    """

    resourceType: Literal["DiagnosticReport"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    basedOn: NotRequired[list[Reference]]
    status: NotRequired[
        Literal[
            "registered",
            "partial",
            "preliminary",
            "final",
            "amended",
            "corrected",
            "appended",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    category: NotRequired[list[CodeableConcept]]
    code: CodeableConcept
    subject: NotRequired[Reference]
    encounter: NotRequired[Reference]
    effectiveDateTime: NotRequired[str]
    effectivePeriod: NotRequired[Period]
    issued: NotRequired[str]
    performer: NotRequired[list[Reference]]
    resultsInterpreter: NotRequired[list[Reference]]
    specimen: NotRequired[list[Reference]]
    result: NotRequired[list[Reference]]
    imagingStudy: NotRequired[list[Reference]]
    media: NotRequired[list[DiagnosticReportMedia]]
    conclusion: NotRequired[str]
    conclusionCode: NotRequired[list[CodeableConcept]]
    presentedForm: NotRequired[list[Attachment]]


class DiagnosticReportMedia(TypedDict):
    comment: NotRequired[str]
    link: Reference


class DocumentReference(TypedDict):
    """
    DocumentReference of FHIR R4 (4.0.1).
    """

    resourceType: Literal["DocumentReference"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    masterIdentifier: NotRequired[Identifier]
    identifier: NotRequired[list[Identifier]]
    status: NotRequired[Literal["current", "superseded", "entered-in-error"]]
    docStatus: NotRequired[Literal["preliminary", "final", "amended", "entered-in-error"]]
    type: NotRequired[CodeableConcept]
    category: NotRequired[list[CodeableConcept]]
    subject: NotRequired[Reference]
    date: NotRequired[str]
    author: NotRequired[list[Reference]]
    authenticator: NotRequired[Reference]
    custodian: NotRequired[Reference]
    relatesTo: NotRequired[list[DocumentReferenceRelatesTo]]
    description: NotRequired[str]
    securityLabel: NotRequired[list[CodeableConcept]]
    content: list[DocumentReferenceContent]
    context: NotRequired[DocumentReferenceContext]


class DocumentReferenceContext(TypedDict):
    encounter: NotRequired[list[Reference]]
    event: NotRequired[list[CodeableConcept]]
    period: NotRequired[Period]
    facilityType: NotRequired[CodeableConcept]
    practiceSetting: NotRequired[CodeableConcept]
    sourcePatientInfo: NotRequired[Reference]
    related: NotRequired[list[Reference]]


class DocumentReferenceRelatesTo(TypedDict):
    code: NotRequired[Literal["replaces", "transforms", "signs", "appends"]]
    target: Reference


Encounter = TypedDict(
    "Encounter",
    {
        "resourceType": Literal["Encounter"],
        "id": NotRequired[str],
        "meta": NotRequired[Meta],
        "implicitRules": NotRequired[str],
        "language": NotRequired[str],
        "text": NotRequired[Narrative],
        "contained": NotRequired[list[Resource]],
        "identifier": NotRequired[list["Identifier"]],
        "status": NotRequired[
            Literal[
                "planned",
                "arrived",
                "triaged",
                "in-progress",
                "onleave",
                "finished",
                "cancelled",
                "entered-in-error",
                "unknown",
            ]
        ],
        "statusHistory": NotRequired[list[EncounterStatusHistory]],
        "class": Coding,
        "classHistory": NotRequired[list[EncounterClassHistory]],
        "type": NotRequired[list[CodeableConcept]],
        "serviceType": NotRequired[CodeableConcept],
        "priority": NotRequired[CodeableConcept],
        "subject": NotRequired["Reference"],
        "episodeOfCare": NotRequired[list["Reference"]],
        "basedOn": NotRequired[list["Reference"]],
        "participant": NotRequired[list["EncounterParticipant"]],
        "appointment": NotRequired[list["Reference"]],
        "period": NotRequired[Period],
        "length": NotRequired[Duration],
        "reasonCode": NotRequired[list[CodeableConcept]],
        "reasonReference": NotRequired[list["Reference"]],
        "diagnosis": NotRequired[list["EncounterDiagnosis"]],
        "account": NotRequired[list["Reference"]],
        "hospitalization": NotRequired["EncounterHospitalization"],
        "location": NotRequired[list["EncounterLocation"]],
        "serviceProvider": NotRequired["Reference"],
        "partOf": NotRequired["Reference"],
    },
)


class EncounterDiagnosis(TypedDict):
    condition: Reference
    use: NotRequired[CodeableConcept]
    rank: NotRequired[int]


class EncounterHospitalization(TypedDict):
    preAdmissionIdentifier: NotRequired[Identifier]
    origin: NotRequired[Reference]
    admitSource: NotRequired[CodeableConcept]
    reAdmission: NotRequired[CodeableConcept]
    dietPreference: NotRequired[list[CodeableConcept]]
    specialCourtesy: NotRequired[list[CodeableConcept]]
    specialArrangement: NotRequired[list[CodeableConcept]]
    destination: NotRequired[Reference]
    dischargeDisposition: NotRequired[CodeableConcept]


class EncounterLocation(TypedDict):
    location: Reference
    status: NotRequired[Literal["planned", "active", "reserved", "completed"]]
    physicalType: NotRequired[CodeableConcept]
    period: NotRequired[Period]


class EncounterParticipant(TypedDict):
    type: NotRequired[list[CodeableConcept]]
    period: NotRequired[Period]
    individual: NotRequired[Reference]


class Identifier(TypedDict):
    use: NotRequired[Literal["usual", "official", "temp", "secondary", "old"]]
    type: NotRequired[CodeableConcept]
    system: NotRequired[str]
    value: NotRequired[str]
    period: NotRequired[Period]
    assigner: NotRequired[Reference]


class ImagingStudy(TypedDict):
    """
    ImagingStudy of FHIR R4 (4.0.1).
    """

    resourceType: Literal["ImagingStudy"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    status: NotRequired[
        Literal["registered", "available", "cancelled", "entered-in-error", "unknown"]
    ]
    modality: NotRequired[list[Coding]]
    subject: Reference
    encounter: NotRequired[Reference]
    started: NotRequired[str]
    basedOn: NotRequired[list[Reference]]
    referrer: NotRequired[Reference]
    interpreter: NotRequired[list[Reference]]
    endpoint: NotRequired[list[Reference]]
    numberOfSeries: NotRequired[int]
    numberOfInstances: NotRequired[int]
    procedureReference: NotRequired[Reference]
    procedureCode: NotRequired[list[CodeableConcept]]
    location: NotRequired[Reference]
    reasonCode: NotRequired[list[CodeableConcept]]
    reasonReference: NotRequired[list[Reference]]
    note: NotRequired[list[Annotation]]
    description: NotRequired[str]
    series: NotRequired[list[ImagingStudySeries]]


class ImagingStudySeries(TypedDict):
    uid: NotRequired[str]
    number: NotRequired[int]
    modality: Coding
    description: NotRequired[str]
    numberOfInstances: NotRequired[int]
    endpoint: NotRequired[list[Reference]]
    bodySite: NotRequired[Coding]
    laterality: NotRequired[Coding]
    specimen: NotRequired[list[Reference]]
    started: NotRequired[str]
    performer: NotRequired[list[ImagingStudySeriesPerformer]]
    instance: NotRequired[list[ImagingStudySeriesInstance]]


class ImagingStudySeriesPerformer(TypedDict):
    function: NotRequired[CodeableConcept]
    actor: Reference


class Immunization(TypedDict):
    """
    Immunization of FHIR R4 (4.0.1).
    """

    resourceType: Literal["Immunization"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    status: NotRequired[Literal["completed", "entered-in-error", "not-done"]]
    statusReason: NotRequired[CodeableConcept]
    vaccineCode: CodeableConcept
    patient: Reference
    encounter: NotRequired[Reference]
    occurrenceDateTime: NotRequired[str]
    occurrenceString: NotRequired[str]
    recorded: NotRequired[str]
    primarySource: NotRequired[bool]
    reportOrigin: NotRequired[CodeableConcept]
    location: NotRequired[Reference]
    manufacturer: NotRequired[Reference]
    lotNumber: NotRequired[str]
    expirationDate: NotRequired[str]
    site: NotRequired[CodeableConcept]
    route: NotRequired[CodeableConcept]
    doseQuantity: NotRequired[Quantity]
    performer: NotRequired[list[ImmunizationPerformer]]
    note: NotRequired[list[Annotation]]
    reasonCode: NotRequired[list[CodeableConcept]]
    reasonReference: NotRequired[list[Reference]]
    isSubpotent: NotRequired[bool]
    subpotentReason: NotRequired[list[CodeableConcept]]
    education: NotRequired[list[ImmunizationEducation]]
    programEligibility: NotRequired[list[CodeableConcept]]
    fundingSource: NotRequired[CodeableConcept]
    reaction: NotRequired[list[ImmunizationReaction]]
    protocolApplied: NotRequired[list[ImmunizationProtocolApplied]]


class ImmunizationPerformer(TypedDict):
    function: NotRequired[CodeableConcept]
    actor: Reference


class ImmunizationProtocolApplied(TypedDict):
    series: NotRequired[str]
    authority: NotRequired[Reference]
    targetDisease: NotRequired[list[CodeableConcept]]
    doseNumberPositiveInt: NotRequired[int]
    doseNumberString: NotRequired[str]
    seriesDosesPositiveInt: NotRequired[int]
    seriesDosesString: NotRequired[str]


class ImmunizationReaction(TypedDict):
    date: NotRequired[str]
    detail: NotRequired[Reference]
    reported: NotRequired[bool]


class MedicationRequest(TypedDict):
    """
    MedicationRequest of FHIR R4 (4.0.1).
    """

    resourceType: Literal["MedicationRequest"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    status: NotRequired[
        Literal[
            "active",
            "on-hold",
            "cancelled",
            "completed",
            "entered-in-error",
            "stopped",
            "draft",
            "unknown",
        ]
    ]
    statusReason: NotRequired[CodeableConcept]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    category: NotRequired[list[CodeableConcept]]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    doNotPerform: NotRequired[bool]
    reportedBoolean: NotRequired[bool]
    reportedReference: NotRequired[Reference]
    medicationCodeableConcept: NotRequired[CodeableConcept]
    medicationReference: NotRequired[Reference]
    subject: Reference
    encounter: NotRequired[Reference]
    supportingInformation: NotRequired[list[Reference]]
    authoredOn: NotRequired[str]
    requester: NotRequired[Reference]
    performer: NotRequired[Reference]
    performerType: NotRequired[CodeableConcept]
    recorder: NotRequired[Reference]
    reasonCode: NotRequired[list[CodeableConcept]]
    reasonReference: NotRequired[list[Reference]]
    instantiatesCanonical: NotRequired[list[str | None]]
    instantiatesUri: NotRequired[list[str | None]]
    basedOn: NotRequired[list[Reference]]
    groupIdentifier: NotRequired[Identifier]
    courseOfTherapyType: NotRequired[CodeableConcept]
    insurance: NotRequired[list[Reference]]
    note: NotRequired[list[Annotation]]
    dosageInstruction: NotRequired[list[Dosage]]
    dispenseRequest: NotRequired[MedicationRequestDispenseRequest]
    substitution: NotRequired[MedicationRequestSubstitution]
    priorPrescription: NotRequired[Reference]
    detectedIssue: NotRequired[list[Reference]]
    eventHistory: NotRequired[list[Reference]]


class MedicationRequestDispenseRequest(TypedDict):
    initialFill: NotRequired[MedicationRequestDispenseRequestInitialFill]
    dispenseInterval: NotRequired[Duration]
    validityPeriod: NotRequired[Period]
    numberOfRepeatsAllowed: NotRequired[int]
    quantity: NotRequired[Quantity]
    expectedSupplyDuration: NotRequired[Duration]
    performer: NotRequired[Reference]


class Observation(TypedDict):
    """
    Observation of FHIR R4 (4.0.1).
    """

    resourceType: Literal["Observation"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    basedOn: NotRequired[list[Reference]]
    partOf: NotRequired[list[Reference]]
    status: NotRequired[
        Literal[
            "registered",
            "preliminary",
            "final",
            "amended",
            "corrected",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    category: NotRequired[list[CodeableConcept]]
    code: CodeableConcept
    subject: NotRequired[Reference]
    focus: NotRequired[list[Reference]]
    encounter: NotRequired[Reference]
    effectiveDateTime: NotRequired[str]
    effectivePeriod: NotRequired[Period]
    effectiveTiming: NotRequired[Timing]
    effectiveInstant: NotRequired[str]
    issued: NotRequired[str]
    performer: NotRequired[list[Reference]]
    valueQuantity: NotRequired[Quantity]
    valueCodeableConcept: NotRequired[CodeableConcept]
    valueString: NotRequired[str]
    valueBoolean: NotRequired[bool]
    valueInteger: NotRequired[int]
    valueRange: NotRequired[Range]
    valueRatio: NotRequired[Ratio]
    valueSampledData: NotRequired[SampledData]
    valueTime: NotRequired[str]
    valueDateTime: NotRequired[str]
    valuePeriod: NotRequired[Period]
    dataAbsentReason: NotRequired[CodeableConcept]
    interpretation: NotRequired[list[CodeableConcept]]
    note: NotRequired[list[Annotation]]
    bodySite: NotRequired[CodeableConcept]
    method: NotRequired[CodeableConcept]
    specimen: NotRequired[Reference]
    device: NotRequired[Reference]
    referenceRange: NotRequired[list[ObservationReferenceRange]]
    hasMember: NotRequired[list[Reference]]
    derivedFrom: NotRequired[list[Reference]]
    component: NotRequired[list[ObservationComponent]]


class Organization(TypedDict):
    """
    Organization of FHIR R4 (4.0.1).
    """

    resourceType: Literal["Organization"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    active: NotRequired[bool]
    type: NotRequired[list[CodeableConcept]]
    name: NotRequired[str]
    alias: NotRequired[list[str | None]]
    telecom: NotRequired[list[ContactPoint]]
    address: NotRequired[list[Address]]
    partOf: NotRequired[Reference]
    contact: NotRequired[list[OrganizationContact]]
    endpoint: NotRequired[list[Reference]]


class Patient(TypedDict):
    """
    Patient of FHIR R4 (4.0.1).
    """

    resourceType: Literal["Patient"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    active: NotRequired[bool]
    name: NotRequired[list[HumanName]]
    telecom: NotRequired[list[ContactPoint]]
    gender: NotRequired[Literal["male", "female", "other", "unknown"]]
    birthDate: NotRequired[str]
    deceasedBoolean: NotRequired[bool]
    deceasedDateTime: NotRequired[str]
    address: NotRequired[list[Address]]
    maritalStatus: NotRequired[CodeableConcept]
    multipleBirthBoolean: NotRequired[bool]
    multipleBirthInteger: NotRequired[int]
    photo: NotRequired[list[Attachment]]
    contact: NotRequired[list[PatientContact]]
    communication: NotRequired[list[PatientCommunication]]
    generalPractitioner: NotRequired[list[Reference]]
    managingOrganization: NotRequired[Reference]
    link: NotRequired[list[PatientLink]]


class PatientContact(TypedDict):
    relationship: NotRequired[list[CodeableConcept]]
    name: NotRequired[HumanName]
    telecom: NotRequired[list[ContactPoint]]
    address: NotRequired[Address]
    gender: NotRequired[Literal["male", "female", "other", "unknown"]]
    organization: NotRequired[Reference]
    period: NotRequired[Period]


class PatientLink(TypedDict):
    other: Reference
    type: NotRequired[Literal["replaced-by", "replaces", "refer", "seealso"]]


class Practitioner(TypedDict):
    """
    Practitioner of FHIR R4 (4.0.1).
    """

    resourceType: Literal["Practitioner"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    active: NotRequired[bool]
    name: NotRequired[list[HumanName]]
    telecom: NotRequired[list[ContactPoint]]
    address: NotRequired[list[Address]]
    gender: NotRequired[Literal["male", "female", "other", "unknown"]]
    birthDate: NotRequired[str]
    photo: NotRequired[list[Attachment]]
    qualification: NotRequired[list[PractitionerQualification]]
    communication: NotRequired[list[CodeableConcept]]


class PractitionerQualification(TypedDict):
    identifier: NotRequired[list[Identifier]]
    code: CodeableConcept
    period: NotRequired[Period]
    issuer: NotRequired[Reference]


class Reference(TypedDict):
    reference: NotRequired[str]
    type: NotRequired[str]
    identifier: NotRequired[Identifier]
    display: NotRequired[str]


class ServiceRequest(TypedDict):
    """
    ServiceRequest of FHIR R4 (4.0.1).
    """

    resourceType: Literal["ServiceRequest"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    instantiatesCanonical: NotRequired[list[str | None]]
    instantiatesUri: NotRequired[list[str | None]]
    basedOn: NotRequired[list[Reference]]
    replaces: NotRequired[list[Reference]]
    requisition: NotRequired[Identifier]
    status: NotRequired[
        Literal[
            "draft", "active", "on-hold", "revoked", "completed", "entered-in-error", "unknown"
        ]
    ]
    intent: NotRequired[
        Literal[
            "proposal",
            "plan",
            "directive",
            "order",
            "original-order",
            "reflex-order",
            "filler-order",
            "instance-order",
            "option",
        ]
    ]
    category: NotRequired[list[CodeableConcept]]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    doNotPerform: NotRequired[bool]
    code: NotRequired[CodeableConcept]
    orderDetail: NotRequired[list[CodeableConcept]]
    quantityQuantity: NotRequired[Quantity]
    quantityRatio: NotRequired[Ratio]
    quantityRange: NotRequired[Range]
    subject: Reference
    encounter: NotRequired[Reference]
    occurrenceDateTime: NotRequired[str]
    occurrencePeriod: NotRequired[Period]
    occurrenceTiming: NotRequired[Timing]
    asNeededBoolean: NotRequired[bool]
    asNeededCodeableConcept: NotRequired[CodeableConcept]
    authoredOn: NotRequired[str]
    requester: NotRequired[Reference]
    performerType: NotRequired[CodeableConcept]
    performer: NotRequired[list[Reference]]
    locationCode: NotRequired[list[CodeableConcept]]
    locationReference: NotRequired[list[Reference]]
    reasonCode: NotRequired[list[CodeableConcept]]
    reasonReference: NotRequired[list[Reference]]
    insurance: NotRequired[list[Reference]]
    supportingInfo: NotRequired[list[Reference]]
    specimen: NotRequired[list[Reference]]
    bodySite: NotRequired[list[CodeableConcept]]
    note: NotRequired[list[Annotation]]
    patientInstruction: NotRequired[str]
    relevantHistory: NotRequired[list[Reference]]


class Signature(TypedDict):
    type: list[Coding]
    when: NotRequired[str]
    who: Reference
    onBehalfOf: NotRequired[Reference]
    targetFormat: NotRequired[str]
    sigFormat: NotRequired[str]
    data: NotRequired[str]


class Specimen(TypedDict):
    """
    Specimen of FHIR R4 (4.0.1).
    """

    resourceType: Literal["Specimen"]
    id: NotRequired[str]
    meta: NotRequired[Meta]
    implicitRules: NotRequired[str]
    language: NotRequired[str]
    text: NotRequired[Narrative]
    contained: NotRequired[list[Resource]]
    identifier: NotRequired[list[Identifier]]
    accessionIdentifier: NotRequired[Identifier]
    status: NotRequired[Literal["available", "unavailable", "unsatisfactory", "entered-in-error"]]
    type: NotRequired[CodeableConcept]
    subject: NotRequired[Reference]
    receivedTime: NotRequired[str]
    parent: NotRequired[list[Reference]]
    request: NotRequired[list[Reference]]
    collection: NotRequired[SpecimenCollection]
    processing: NotRequired[list[SpecimenProcessing]]
    container: NotRequired[list[SpecimenContainer]]
    condition: NotRequired[list[CodeableConcept]]
    note: NotRequired[list[Annotation]]


class SpecimenCollection(TypedDict):
    collector: NotRequired[Reference]
    collectedDateTime: NotRequired[str]
    collectedPeriod: NotRequired[Period]
    duration: NotRequired[Duration]
    quantity: NotRequired[Quantity]
    method: NotRequired[CodeableConcept]
    bodySite: NotRequired[CodeableConcept]
    fastingStatusCodeableConcept: NotRequired[CodeableConcept]
    fastingStatusDuration: NotRequired[Duration]


class SpecimenContainer(TypedDict):
    identifier: NotRequired[list[Identifier]]
    description: NotRequired[str]
    type: NotRequired[CodeableConcept]
    capacity: NotRequired[Quantity]
    specimenQuantity: NotRequired[Quantity]
    additiveCodeableConcept: NotRequired[CodeableConcept]
    additiveReference: NotRequired[Reference]


class SpecimenProcessing(TypedDict):
    description: NotRequired[str]
    procedure: NotRequired[CodeableConcept]
    additive: NotRequired[list[Reference]]
    timeDateTime: NotRequired[str]
    timePeriod: NotRequired[Period]


class UsageContext(TypedDict):
    code: Coding
    valueCodeableConcept: NotRequired[CodeableConcept]
    valueQuantity: NotRequired[Quantity]
    valueRange: NotRequired[Range]
    valueReference: NotRequired[Reference]


class RegisterDeviceRequest(TypedDict):
    """
    A DeviceRequest with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterDeviceRequestDeviceRequest",
            "RegisterDeviceRequestPatient",
            "RegisterDeviceRequestOrganization",
            "RegisterDeviceRequestPractitioner",
        ]
    ]


class RegisterDeviceRequestDeviceRequest(TypedDict):
    name: Literal["deviceRequest"]
    resource: DeviceRequest


class RegisterDeviceRequestPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterDeviceRequestOrganization(TypedDict):
    name: Literal["organization"]
    resource: Organization


class RegisterDeviceRequestPractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredDeviceRequest(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[Union["RegisteredDeviceRequestDeviceRequest", RegisteredDeviceRequestIssues]]


class RegisteredDeviceRequestDeviceRequest(TypedDict):
    name: Literal["deviceRequest"]
    resource: DeviceRequest


DeviceRequestOrOutcome: TypeAlias = DeviceRequest | OperationOutcome


RegisteredDeviceRequestOrOutcome: TypeAlias = RegisteredDeviceRequest | OperationOutcome


ValidateDeviceRequest: TypeAlias = RegisterDeviceRequest | DeviceRequest | Parameters


class UpdateDeviceRequest(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["DeviceRequest"]
    status: NotRequired[
        Literal[
            "draft", "active", "on-hold", "revoked", "completed", "entered-in-error", "unknown"
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    occurrenceDateTime: NotRequired[str]
    occurrencePeriod: NotRequired[Period]
    occurrenceTiming: NotRequired[Timing]
    note: NotRequired[list[Annotation]]


class RegisterDiagnosticReport(TypedDict):
    """
    A DiagnosticReport with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterDiagnosticReportDiagnosticReport",
            "RegisterDiagnosticReportPatient",
            "RegisterDiagnosticReportOrganization",
            "RegisterDiagnosticReportObservation",
            "RegisterDiagnosticReportSpecimen",
            "RegisterDiagnosticReportServiceRequest",
            "RegisterDiagnosticReportPractitioner",
        ]
    ]


class RegisterDiagnosticReportDiagnosticReport(TypedDict):
    name: Literal["diagnosticReport"]
    resource: DiagnosticReport


class RegisterDiagnosticReportPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterDiagnosticReportOrganization(TypedDict):
    name: Literal["organization"]
    resource: Organization


class RegisterDiagnosticReportObservation(TypedDict):
    name: Literal["observation"]
    resource: Observation


class RegisterDiagnosticReportSpecimen(TypedDict):
    name: Literal["specimen"]
    resource: Specimen


class RegisterDiagnosticReportServiceRequest(TypedDict):
    name: Literal["serviceRequest"]
    resource: ServiceRequest


class RegisterDiagnosticReportPractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredDiagnosticReport(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisteredDiagnosticReportDiagnosticReport",
            RegisteredDiagnosticReportIssues,
            "RegisteredDiagnosticReportObservation",
            "RegisteredDiagnosticReportSpecimen",
            "RegisteredDiagnosticReportServiceRequest",
            "RegisteredDiagnosticReportPractitioner",
        ]
    ]


class RegisteredDiagnosticReportDiagnosticReport(TypedDict):
    name: Literal["diagnosticReport"]
    resource: DiagnosticReport


class RegisteredDiagnosticReportObservation(TypedDict):
    name: Literal["observation"]
    valueReference: Reference


class RegisteredDiagnosticReportSpecimen(TypedDict):
    name: Literal["specimen"]
    valueReference: Reference


class RegisteredDiagnosticReportServiceRequest(TypedDict):
    name: Literal["serviceRequest"]
    valueReference: Reference


class RegisteredDiagnosticReportPractitioner(TypedDict):
    name: Literal["practitioner"]
    valueReference: Reference


DiagnosticReportOrOutcome: TypeAlias = DiagnosticReport | OperationOutcome


RegisteredDiagnosticReportOrOutcome: TypeAlias = RegisteredDiagnosticReport | OperationOutcome


ValidateDiagnosticReport: TypeAlias = RegisterDiagnosticReport | DiagnosticReport | Parameters


class RegisterDocumentReference(TypedDict):
    """
    A DocumentReference with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterDocumentReferenceDocumentReference",
            "RegisterDocumentReferencePatient",
            "RegisterDocumentReferenceOrganization",
            "RegisterDocumentReferencePractitioner",
        ]
    ]


class RegisterDocumentReferenceDocumentReference(TypedDict):
    name: Literal["documentReference"]
    resource: DocumentReference


class RegisterDocumentReferencePatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterDocumentReferenceOrganization(TypedDict):
    name: Literal["organization"]
    resource: Organization


class RegisterDocumentReferencePractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredDocumentReference(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union["RegisteredDocumentReferenceDocumentReference", RegisteredDocumentReferenceIssues]
    ]


class RegisteredDocumentReferenceDocumentReference(TypedDict):
    name: Literal["documentReference"]
    resource: DocumentReference


DocumentReferenceOrOutcome: TypeAlias = DocumentReference | OperationOutcome


RegisteredDocumentReferenceOrOutcome: TypeAlias = RegisteredDocumentReference | OperationOutcome


ValidateDocumentReference: TypeAlias = RegisterDocumentReference | DocumentReference | Parameters


class RegisterEncounter(TypedDict):
    """
    A Encounter with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterEncounterEncounter",
            "RegisterEncounterPatient",
            "RegisterEncounterOrganization",
            "RegisterEncounterPractitioner",
        ]
    ]


class RegisterEncounterEncounter(TypedDict):
    name: Literal["encounter"]
    resource: Encounter


class RegisterEncounterPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterEncounterOrganization(TypedDict):
    name: Literal["organization"]
    resource: Organization


class RegisterEncounterPractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredEncounter(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[Union["RegisteredEncounterEncounter", RegisteredEncounterIssues]]


class RegisteredEncounterEncounter(TypedDict):
    name: Literal["encounter"]
    resource: Encounter


EncounterOrOutcome: TypeAlias = Encounter | OperationOutcome


RegisteredEncounterOrOutcome: TypeAlias = RegisteredEncounter | OperationOutcome


ValidateEncounter: TypeAlias = RegisterEncounter | Encounter | Parameters


class UpdateEncounter(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["Encounter"]
    status: NotRequired[
        Literal[
            "planned",
            "arrived",
            "triaged",
            "in-progress",
            "onleave",
            "finished",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    statusHistory: NotRequired[list[EncounterStatusHistory]]
    period: NotRequired[Period]
    length: NotRequired[Duration]
    reasonCode: NotRequired[list[CodeableConcept]]
    diagnosis: NotRequired[list[EncounterDiagnosis]]


class RegisterImagingStudy(TypedDict):
    """
    A ImagingStudy with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterImagingStudyImagingStudy",
            "RegisterImagingStudyPatient",
            "RegisterImagingStudyPractitioner",
        ]
    ]


class RegisterImagingStudyImagingStudy(TypedDict):
    name: Literal["imagingStudy"]
    resource: ImagingStudy


class RegisterImagingStudyPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterImagingStudyPractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredImagingStudy(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[Union["RegisteredImagingStudyImagingStudy", RegisteredImagingStudyIssues]]


class RegisteredImagingStudyImagingStudy(TypedDict):
    name: Literal["imagingStudy"]
    resource: ImagingStudy


ImagingStudyOrOutcome: TypeAlias = ImagingStudy | OperationOutcome


RegisteredImagingStudyOrOutcome: TypeAlias = RegisteredImagingStudy | OperationOutcome


ValidateImagingStudy: TypeAlias = RegisterImagingStudy | ImagingStudy | Parameters


class UpdateImagingStudy(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["ImagingStudy"]
    status: NotRequired[
        Literal["registered", "available", "cancelled", "entered-in-error", "unknown"]
    ]
    numberOfSeries: NotRequired[int]
    numberOfInstances: NotRequired[int]
    note: NotRequired[list[Annotation]]
    description: NotRequired[str]
    series: NotRequired[list[ImagingStudySeries]]


class RegisterMedicationRequest(TypedDict):
    """
    A MedicationRequest with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterMedicationRequestMedicationRequest",
            "RegisterMedicationRequestPatient",
            "RegisterMedicationRequestOrganization",
            "RegisterMedicationRequestPractitioner",
        ]
    ]


class RegisterMedicationRequestMedicationRequest(TypedDict):
    name: Literal["medicationRequest"]
    resource: MedicationRequest


class RegisterMedicationRequestPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterMedicationRequestOrganization(TypedDict):
    name: Literal["organization"]
    resource: Organization


class RegisterMedicationRequestPractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredMedicationRequest(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union["RegisteredMedicationRequestMedicationRequest", RegisteredMedicationRequestIssues]
    ]


class RegisteredMedicationRequestMedicationRequest(TypedDict):
    name: Literal["medicationRequest"]
    resource: MedicationRequest


MedicationRequestOrOutcome: TypeAlias = MedicationRequest | OperationOutcome


RegisteredMedicationRequestOrOutcome: TypeAlias = RegisteredMedicationRequest | OperationOutcome


ValidateMedicationRequest: TypeAlias = RegisterMedicationRequest | MedicationRequest | Parameters


class UpdateMedicationRequest(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["MedicationRequest"]
    status: NotRequired[
        Literal[
            "active",
            "on-hold",
            "cancelled",
            "completed",
            "entered-in-error",
            "stopped",
            "draft",
            "unknown",
        ]
    ]
    statusReason: NotRequired[CodeableConcept]
    note: NotRequired[list[Annotation]]


class RegisterObservation(TypedDict):
    """
    A Observation with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterObservationObservation",
            "RegisterObservationPatient",
            "RegisterObservationOrganization",
            "RegisterObservationPractitioner",
        ]
    ]


class RegisterObservationObservation(TypedDict):
    name: Literal["observation"]
    resource: Observation


class RegisterObservationPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterObservationOrganization(TypedDict):
    name: Literal["organization"]
    resource: Organization


class RegisterObservationPractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredObservation(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[Union["RegisteredObservationObservation", RegisteredObservationIssues]]


class RegisteredObservationObservation(TypedDict):
    name: Literal["observation"]
    resource: Observation


ObservationOrOutcome: TypeAlias = Observation | OperationOutcome


RegisteredObservationOrOutcome: TypeAlias = RegisteredObservation | OperationOutcome


ValidateObservation: TypeAlias = RegisterObservation | Observation | Parameters


class UpdateObservation(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["Observation"]
    status: NotRequired[
        Literal[
            "registered",
            "preliminary",
            "final",
            "amended",
            "corrected",
            "cancelled",
            "entered-in-error",
            "unknown",
        ]
    ]
    issued: NotRequired[str]
    valueQuantity: NotRequired[Quantity]
    valueCodeableConcept: NotRequired[CodeableConcept]
    valueString: NotRequired[str]
    valueBoolean: NotRequired[bool]
    valueInteger: NotRequired[int]
    valueRange: NotRequired[Range]
    valueRatio: NotRequired[Ratio]
    valueSampledData: NotRequired[SampledData]
    valueTime: NotRequired[str]
    valueDateTime: NotRequired[str]
    valuePeriod: NotRequired[Period]
    dataAbsentReason: NotRequired[CodeableConcept]
    interpretation: NotRequired[list[CodeableConcept]]
    note: NotRequired[list[Annotation]]
    component: NotRequired[list[ObservationComponent]]


class RegisterServiceRequest(TypedDict):
    """
    A ServiceRequest with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterServiceRequestServiceRequest",
            "RegisterServiceRequestPatient",
            "RegisterServiceRequestOrganization",
            "RegisterServiceRequestPractitioner",
        ]
    ]


class RegisterServiceRequestServiceRequest(TypedDict):
    name: Literal["serviceRequest"]
    resource: ServiceRequest


class RegisterServiceRequestPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterServiceRequestOrganization(TypedDict):
    name: Literal["organization"]
    resource: Organization


class RegisterServiceRequestPractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredServiceRequest(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union["RegisteredServiceRequestServiceRequest", RegisteredServiceRequestIssues]
    ]


class RegisteredServiceRequestServiceRequest(TypedDict):
    name: Literal["serviceRequest"]
    resource: ServiceRequest


ServiceRequestOrOutcome: TypeAlias = ServiceRequest | OperationOutcome


RegisteredServiceRequestOrOutcome: TypeAlias = RegisteredServiceRequest | OperationOutcome


ValidateServiceRequest: TypeAlias = RegisterServiceRequest | ServiceRequest | Parameters


class UpdateServiceRequest(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["ServiceRequest"]
    status: NotRequired[
        Literal[
            "draft", "active", "on-hold", "revoked", "completed", "entered-in-error", "unknown"
        ]
    ]
    priority: NotRequired[Literal["routine", "urgent", "asap", "stat"]]
    occurrenceDateTime: NotRequired[str]
    occurrencePeriod: NotRequired[Period]
    occurrenceTiming: NotRequired[Timing]
    note: NotRequired[list[Annotation]]
    patientInstruction: NotRequired[str]


class RegisterSpecimen(TypedDict):
    """
    A Specimen with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[Union["RegisterSpecimenSpecimen", "RegisterSpecimenPatient"]]


class RegisterSpecimenSpecimen(TypedDict):
    name: Literal["specimen"]
    resource: Specimen


class RegisterSpecimenPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisteredSpecimen(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[Union["RegisteredSpecimenSpecimen", RegisteredSpecimenIssues]]


class RegisteredSpecimenSpecimen(TypedDict):
    name: Literal["specimen"]
    resource: Specimen


SpecimenOrOutcome: TypeAlias = Specimen | OperationOutcome


RegisteredSpecimenOrOutcome: TypeAlias = RegisteredSpecimen | OperationOutcome


ValidateSpecimen: TypeAlias = RegisterSpecimen | Specimen | Parameters


class UpdateSpecimen(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["Specimen"]
    status: NotRequired[Literal["available", "unavailable", "unsatisfactory", "entered-in-error"]]
    receivedTime: NotRequired[str]
    condition: NotRequired[list[CodeableConcept]]
    note: NotRequired[list[Annotation]]


class RegisterImmunization(TypedDict):
    """
    A Immunization with what belongs to it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[
        Union[
            "RegisterImmunizationImmunization",
            "RegisterImmunizationPatient",
            "RegisterImmunizationOrganization",
            "RegisterImmunizationPractitioner",
        ]
    ]


class RegisterImmunizationImmunization(TypedDict):
    name: Literal["immunization"]
    resource: Immunization


class RegisterImmunizationPatient(TypedDict):
    name: Literal["patient"]
    resource: Patient


class RegisterImmunizationOrganization(TypedDict):
    name: Literal["organization"]
    resource: Organization


class RegisterImmunizationPractitioner(TypedDict):
    name: Literal["practitioner"]
    resource: Practitioner


class RegisteredImmunization(TypedDict):
    """
    The resource in summary, then the issues found in it.
    """

    resourceType: Literal["Parameters"]
    parameter: list[Union["RegisteredImmunizationImmunization", RegisteredImmunizationIssues]]


class RegisteredImmunizationImmunization(TypedDict):
    name: Literal["immunization"]
    resource: Immunization


ImmunizationOrOutcome: TypeAlias = Immunization | OperationOutcome


RegisteredImmunizationOrOutcome: TypeAlias = RegisteredImmunization | OperationOutcome


ValidateImmunization: TypeAlias = RegisterImmunization | Immunization | Parameters


class UpdateImmunization(TypedDict):
    """
    The fields to replace, at least one.
    """

    resourceType: Literal["Immunization"]
    status: NotRequired[Literal["completed", "entered-in-error", "not-done"]]
    statusReason: NotRequired[CodeableConcept]
    note: NotRequired[list[Annotation]]
    reaction: NotRequired[list[ImmunizationReaction]]
