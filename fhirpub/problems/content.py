"""Problems of a body: its text, its structure, and the rules for what it says."""

from __future__ import annotations

from fhirpub.problems.kind import Problem


class ContentProblem(Problem):
    """What is wrong with what was sent, or worth a remark."""

    BODY_EMPTY = (
        "body-empty",
        "exception",
        "The body has no bytes, or only blanks.",
        "Send the resource as the body. With curl: `--data-binary @file`.",
    )
    BODY_NOT_UTF8 = (
        "body-not-utf8",
        "exception",
        "The body has a byte that is not UTF-8.",
        "Save the file as UTF-8. The diagnostics name the first such byte.",
    )
    JSON_MALFORMED = (
        "json-malformed",
        "exception",
        "The body is not valid JSON (RFC 8259).",
        "Let a library write the JSON. The diagnostics name the line and the column.",
    )
    JSON_NAME_REPEATED = (
        "json-name-repeated",
        "exception",
        "An object of the body has the same name twice, so that readers would differ.",
        "Send each name once; values that repeat are an array.",
    )
    XML_MALFORMED = (
        "xml-malformed",
        "exception",
        "The body is not well-formed XML, or not the XML of a FHIR resource.",
        "Let a FHIR library write the XML, in the namespace `http://hl7.org/fhir`.",
    )
    CHARACTER_FORBIDDEN = (
        "character-forbidden",
        "exception",
        "A string has a character that FHIR does not allow, such as a control character.",
        "Remove it. Tab, carriage return and line feed are allowed.",
    )
    BODY_TOO_COMPLEX = (
        "body-too-complex",
        "exception",
        "The body is nested too deeply, or has too many values.",
        "Divide the content among several resources.",
    )
    BODY_TOO_LARGE = (
        "body-too-large",
        "too-costly",
        "The body, the resource or a document in it has more bytes than the limit.",
        "Send less: the diagnostics name the limit.",
    )
    SEARCH_VALUES_TOO_MANY = (
        "search-values-too-many",
        "too-costly",
        "The resource has more codings, identifiers, references and times than can be indexed.",
        "Send fewer of them, or divide the content among several resources.",
    )
    BODY_UNEXPECTED = (
        "body-unexpected",
        "exception",
        "The body is not the kind of resource that this operation takes.",
        "Send the one that the diagnostics name.",
    )
    ENTRY_MISSING = (
        "entry-missing",
        "exception",
        "The body lacks an entry, or a contained resource, that the operation needs.",
        "Add it under the name in the diagnostics.",
    )
    ENTRY_INVALID = (
        "entry-invalid",
        "exception",
        "An entry of the Parameters does not hold what its name promises.",
        "Give it a name and a resource of the type in the diagnostics.",
    )
    ENTRY_REPEATED = (
        "entry-repeated",
        "exception",
        "Two entries have the same name or the same local id.",
        "Send each once, with an id of its own.",
    )
    ENTRY_IGNORED = (
        "entry-ignored",
        "informational invalid",
        "An entry of the Parameters is not known here and was not stored.",
        "Correct its name, or leave it out.",
    )
    ELEMENT_REQUIRED = (
        "element-required",
        "exception",
        "An element that must be present is missing or blank.",
        "Add the element at the place in `expression`.",
    )
    ELEMENT_UNKNOWN = (
        "element-unknown",
        "exception",
        "FHIR R4 does not define this property here.",
        "Correct its name. What FHIR does not define belongs into an extension.",
    )
    ELEMENT_MALFORMED = (
        "element-malformed",
        "exception",
        "An element has the wrong form, such as an object in place of an array.",
        "Write it as the definition of the type has it.",
    )
    VALUE_INVALID = (
        "value-invalid",
        "exception invalid",
        "A value is not of its FHIR type, or not among the codes that are allowed.",
        "Send one of the form that the diagnostics describe.",
    )
    INVARIANT_BROKEN = (
        "invariant-broken",
        "exception",
        "Elements contradict each other by a rule of FHIR R4.",
        "Correct them. The diagnostics name the rule.",
    )
    IDENTIFIER_INVALID = (
        "identifier-invalid",
        "invalid exception too-costly",
        "The resource does not have exactly one usable business identifier.",
        "Send one, with an absolute URI as `system` and a `value` that is never used again.",
    )
    TENANT_IN_IDENTIFIER = (
        "tenant-in-identifier",
        "business-rule",
        "The system of the identifier contains the id of your organization in this service.",
        "Use a URI of your own. The organization is known from the token.",
    )
    STATUS_NOT_ALLOWED = (
        "status-not-allowed",
        "exception",
        "The status is not among those that the operation can set.",
        "Use one of the statuses in the diagnostics.",
    )
    STATUS_OUT_OF_ORDER = (
        "status-out-of-order",
        "business-rule",
        "The status cannot follow the present one.",
        "Use one of the statuses in the diagnostics.",
    )
    REFERENCE_WRONG = (
        "reference-wrong",
        "business-rule exception",
        "An element does not refer to the resource that was sent with it.",
        "Refer to it by `Type/<local id>`, or by `#<id>` if it is contained.",
    )
    REFERENCE_UNRESOLVED = (
        "reference-unresolved",
        "informational invalid",
        "A reference leads to nothing that this service holds. It is stored as it is.",
        "Send the resource with it, or refer to it by a full URL.",
    )
    MODIFIER_UNSUPPORTED = (
        "modifier-unsupported",
        "business-rule",
        "An element changes the meaning of others in a way that is not understood here.",
        "Leave out modifierExtension and implicitRules.",
    )
    CODE_UNKNOWN = (
        "code-unknown",
        "invalid",
        "The code is not in its code system, as far as this service holds it.",
        "Check the code and the system. The resource is stored as it is.",
    )
    CODE_SYSTEM_UNKNOWN = (
        "code-system-unknown",
        "invalid",
        "The service does not hold this code system or value set, so the code was not checked.",
        "Nothing, if the URL of the system is right.",
    )
    TIME_INVALID = (
        "time-invalid",
        "exception",
        "A time cannot be converted to UTC.",
        "Send a time with an offset between the years 1 and 9999.",
    )
    TIME_ZONE_ASSUMED = (
        "time-zone-assumed",
        "invalid",
        "A time has no offset. It was read in the time zone of the service.",
        "Send times with an offset, such as `2026-03-02T08:15:00-03:00`.",
    )
    DATE_IN_FUTURE = (
        "date-in-future",
        "invalid",
        "A date that must have passed lies in the future.",
        "Check it. The resource is stored as it is.",
    )
    NARRATIVE_QUESTIONABLE = (
        "narrative-questionable",
        "business-rule",
        "A narrative hides content or loads images.",
        "Write it as plain text with simple markup.",
    )
    ATTACHMENT_INCOMPLETE = (
        "attachment-incomplete",
        "exception",
        "An attachment lacks its data, their hash, or a url in their place.",
        "Send `data` with `hash` and `contentType`, or a `url`.",
    )
    HASH_WRONG = (
        "hash-wrong",
        "business-rule invalid",
        "The hash is not that of the data: one of the two may be damaged.",
        "Compare with `sha256sum`. Correct the document, or its hash, by an update.",
    )
    HASH_NOT_CHECKED = (
        "hash-not-checked",
        "informational",
        "The hash is neither SHA-256 nor SHA-1, so it was not compared.",
        "Send the SHA-256 in hex.",
    )
    DOCUMENT_QUESTIONABLE = (
        "document-questionable",
        "informational invalid",
        "The document is not what its content type or size say, or is no PDF.",
        "Check the document. It is stored as it is.",
    )
    IDENTIFIER_IN_USE = (
        "identifier-in-use",
        "duplicate",
        "The identifier is registered with other content than what was sent.",
        "Use another identifier for another report; send a correction as an update.",
    )
    ACCEPTED = (
        "accepted",
        "informational",
        "The resource was registered, or would be.",
        "Nothing.",
    )
    RULE_BROKEN = (
        "rule-broken",
        "business-rule exception invalid value informational",
        "A rule of the resource type is not kept. The diagnostics state it.",
        "Correct the element that is named.",
    )
