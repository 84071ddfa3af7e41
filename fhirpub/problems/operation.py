"""Problems of updates, searches, histories and the administration of webhooks."""

from __future__ import annotations

from fhirpub.problems.kind import Problem


class OperationProblem(Problem):
    """What is wrong with what was asked for."""

    UPDATE_EMPTY = (
        "update-empty",
        "exception",
        "The update names no element.",
        "Name at least one element to change.",
    )
    ELEMENT_NOT_UPDATABLE = (
        "element-not-updatable",
        "business-rule",
        "The update names an element that cannot be changed.",
        "Change only the elements in the diagnostics.",
    )
    PATCH_OF_OTHER_FORM = (
        "patch-of-other-form",
        "exception",
        "The body is not the form of patch that its Content-Type states, or a FHIRPath Patch.",
        "Send it with the Content-Type of its form. FHIRPath Patch is not supported.",
    )
    PATCH_MALFORMED = (
        "patch-malformed",
        "exception",
        "An operation of the JSON Patch does not have the form of RFC 6902.",
        "Correct the operation that is named; they are counted from 1.",
    )
    PATCH_FAILED = (
        "patch-failed",
        "business-rule",
        "An operation of the JSON Patch cannot be applied, or its test failed.",
        "Read the resource, and write the patch for its latest version.",
    )
    ATTACHMENT_DIVIDED = (
        "attachment-divided",
        "business-rule",
        "A patch would separate a document from its hash or its attachment.",
        "Replace the whole attachment, with its data and hash.",
    )
    NARRATIVE_OUTDATED = (
        "narrative-outdated",
        "business-rule",
        "The update would contradict the narrative in the text of the resource.",
        "Register the resource without `text`, or with a generated one.",
    )
    PARAMETER_UNKNOWN = (
        "parameter-unknown",
        "not-supported",
        "The search parameter does not exist here.",
        "Correct its name. `/fhir/r4/metadata` lists the parameters of each type.",
    )
    PARAMETER_INVALID = (
        "parameter-invalid",
        "invalid not-supported",
        "A parameter has a value or a modifier that it does not take.",
        "Use one of the form that the diagnostics describe.",
    )
    PARAMETER_EMPTY = (
        "parameter-empty",
        "invalid",
        "A search parameter has no value.",
        "Give it a value, or leave it out.",
    )
    CONDITION_EMPTY = (
        "condition-empty",
        "invalid",
        "A conditional request has no search parameter, so that it would match everything.",
        "Send a condition such as `identifier=<system>|<value>`.",
    )
    PAGE_LINK_INVALID = (
        "page-link-invalid",
        "invalid",
        "The link to a page is not one of this search.",
        "Follow the link `next` unchanged, or begin the search again.",
    )
    SEARCH_TOO_COSTLY = (
        "search-too-costly",
        "too-costly invalid",
        "The search has more conditions or values, or takes more work, than one search may.",
        "Narrow it: add a patient or dates, send fewer values, sort by fewer parameters.",
    )
    INCLUDE_INCOMPLETE = (
        "include-incomplete",
        "incomplete",
        "Resources that were to be included in a page are missing.",
        "Ask for smaller pages, or search for the resources themselves with the scope for them.",
    )
    FIELD_INVALID = (
        "field-invalid",
        "value",
        "A field of a webhook endpoint or of a replay has a value that it does not take.",
        "Use one of the form that the diagnostics describe.",
    )
    FIELD_UNKNOWN = (
        "field-unknown",
        "value",
        "A webhook endpoint or a replay has no such field.",
        "Correct its name.",
    )
    FIELD_REQUIRED = (
        "field-required",
        "required",
        "A field that is required is missing.",
        "Add it.",
    )
    NOT_POSSIBLE = (
        "not-possible",
        "conflict",
        "The state of what an operator means does not allow this.",
        "Read the diagnostics: they name the state, or the records that could be meant.",
    )
    ENDPOINT_STATE = (
        "endpoint-state",
        "business-rule",
        "The webhook endpoint is in a state in which this cannot be done.",
        "See its `state` and `why`; verify, enable or pause it first.",
    )
    ENDPOINT_URL_REFUSED = (
        "endpoint-url-refused",
        "value",
        "The `url` is not one to which webhooks are sent.",
        "Use an https address that is reached from the internet. See the diagnostics.",
    )
    ENDPOINTS_TOO_MANY = (
        "endpoints-too-many",
        "business-rule",
        "The tenant has as many webhook endpoints as it may.",
        "Remove one first, or subscribe one to more event types.",
    )
    SECRETS_TOO_MANY = (
        "secrets-too-many",
        "business-rule",
        "Too many earlier signing secrets of the endpoint are still valid.",
        "Wait for one to end, or rotate with `grace_seconds` 0.",
    )
    ENDPOINT_TEST_FAILED = (
        "endpoint-test-failed",
        "business-rule",
        "The receiver did not accept the test event.",
        "Correct the receiver, and enable the endpoint again.",
    )
    OPERATION_REFUSED = (
        "operation-refused",
        "business-rule",
        "An operation of a plugin cannot be done with this resource.",
        "See the diagnostics, which are the plugin's.",
    )
