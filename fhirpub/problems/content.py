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
    GZIP_INVALID = (
        "gzip-invalid",
        "exception",
        "The body is not one whole gzip stream, as its Content-Encoding states.",
        "Compress it with a library, or send it without Content-Encoding.",
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
        "The body, or the resource without its documents, has more bytes than the limit.",
        "Send less: the diagnostics name the limit.",
    )
    DOCUMENT_TOO_LARGE = (
        "document-too-large",
        "too-costly",
        "A document has more bytes, decoded, than the limit.",
        "Make the PDF smaller, or send a `url` in its place.",
    )
    SEARCH_VALUES_TOO_MANY = (
        "search-values-too-many",
        "too-costly",
        "The resource has too many codings, identifiers, references, times and names to index.",
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
    ENTRIES_TOO_MANY = (
        "entries-too-many",
        "too-costly",
        "There are more entries than one registration can have.",
        "Divide the content among several reports.",
    )
    ENTRY_UNREFERENCED = (
        "entry-unreferenced",
        "incomplete",
        "No reference leads to this entry. It was stored, and only a search finds it.",
        "Refer to it from the resource, or from another entry.",
    )
    ENTRY_IGNORED = (
        "entry-ignored",
        "informational not-supported",
        "An entry of the Parameters is not known here and was not stored.",
        "Correct its name, or leave it out.",
    )
    ELEMENT_REQUIRED = (
        "element-required",
        "exception",
        "An element that must be present is missing or blank.",
        "Add the element at the place in `expression`.",
    )
    ELEMENT_RECOMMENDED = (
        "element-recommended",
        "invalid",
        "An element is missing that readers expect. The resource is stored without it.",
        "Send it, if it is known.",
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
    VALUE_EMPTY = (
        "value-empty",
        "exception invalid",
        "A value is `null`, or an empty string, array or object, which FHIR has nowhere.",
        "Leave the element out.",
    )
    VALUE_INVALID = (
        "value-invalid",
        "exception",
        "A value is not of its FHIR type, such as a string in place of a number.",
        "Send one of the form that the diagnostics describe.",
    )
    CODE_NOT_ALLOWED = (
        "code-not-allowed",
        "exception",
        "The code is not among those that are allowed for the element.",
        "Send one of the codes in the diagnostics, in the same case.",
    )
    BASE64_INVALID = (
        "base64-invalid",
        "exception",
        "The data are not base64 (RFC 4648, section 4).",
        "Encode the bytes with a library, with `+`, `/` and padding, and send nothing else.",
    )
    URI_INVALID = (
        "uri-invalid",
        "exception",
        "A URI that identifies something is relative or malformed.",
        "Send an absolute URI, such as `https://lab.example/codes` or `urn:oid:2.999.1`.",
    )
    ID_REPEATED = (
        "id-repeated",
        "exception",
        "Two elements or contained resources have the same id.",
        "Give each an id of its own, or leave out those to which nothing refers.",
    )
    NARRATIVE_INVALID = (
        "narrative-invalid",
        "exception",
        "A narrative is not the XHTML that FHIR allows.",
        "Write a `div` of namespace `http://www.w3.org/1999/xhtml`, or leave out `text`.",
    )
    INVARIANT_BROKEN = (
        "invariant-broken",
        "exception",
        "Elements contradict each other by a rule of FHIR R4.",
        "Correct them. The diagnostics name the rule.",
    )
    IDENTIFIER_INVALID = (
        "identifier-invalid",
        "invalid too-costly",
        "The resource does not have exactly one usable business identifier.",
        "Send one, with an absolute URI as `system` and a `value` that is never used again.",
    )
    TENANT_IN_IDENTIFIER = (
        "tenant-in-identifier",
        "business-rule",
        "The system of the identifier contains the id of your organization in this service.",
        "Use a URI of your own. The organization is known from the token.",
    )
    ORGANIZATION_MISMATCH = (
        "organization-mismatch",
        "business-rule",
        "The organization names another tenant than the one of the access token.",
        "Use the token of that organization, or correct its identifier.",
    )
    IDENTIFIER_QUESTIONABLE = (
        "identifier-questionable",
        "invalid",
        "The system of an identifier is not the one for identifiers of its type.",
        "Check the system and the type. The resource is stored as it is.",
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
        "An element refers to nothing that was sent, or to a resource of another type.",
        "Refer to it by `Type/<local id>`, or by `#<id>` if it is contained.",
    )
    REFERENCE_TO_IGNORED = (
        "reference-to-ignored",
        "business-rule",
        "A reference leads to an entry that is not taken, so that its target would be lost.",
        "Send the target as a contained resource, and refer to it by `#<id>`.",
    )
    REFERENCE_UNRESOLVED = (
        "reference-unresolved",
        "invalid",
        "A reference leads to nothing that this service holds. It is stored as it is.",
        "Send the resource with it, or refer to it by a full URL.",
    )
    REFERENCE_NOT_CHECKED = (
        "reference-not-checked",
        "informational",
        "A reference may lead to a resource that is held here. It was not looked up.",
        "Nothing, if the id is right.",
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
        "The code was not checked: the service does not hold its code system.",
        "Nothing, if the URL of the system is right.",
    )
    TIME_INVALID = (
        "time-invalid",
        "exception",
        "A date or time does not have the form of FHIR, or cannot be converted to UTC.",
        "Send `2026-03-02`, or `2026-03-02T08:15:00-03:00` with an offset.",
    )
    TIME_ZONE_ASSUMED = (
        "time-zone-assumed",
        "invalid",
        "A time has no offset. It was read in the time zone of the service.",
        "Send times with an offset, such as `2026-03-02T08:15:00-03:00`.",
    )
    TIME_CORRECTED = (
        "time-corrected",
        "invalid",
        "A time was not in the form of FHIR, and was read in the way that is stated.",
        "Send times such as `2026-03-02T08:15:00-03:00`.",
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
    IDENTIFIER_ERASED = (
        "identifier-erased",
        "deleted",
        "What was registered under the identifier was erased, and must not be registered again.",
        "Do not send it again. The operator of the service knows of the order.",
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
        "A rule of a plugin is not kept that has no code of its own. The diagnostics state it.",
        "Correct the element that is named.",
    )
