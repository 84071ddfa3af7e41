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
        "business-rule exception",
        "The update names an element that cannot be changed.",
        "Change only the elements in the diagnostics.",
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
    NARRATIVE_OUTDATED = (
        "narrative-outdated",
        "business-rule",
        "The update would contradict the narrative in the text of the resource.",
        "Register the resource without `text`, or with a generated one.",
    )
    PARAMETER_UNKNOWN = (
        "parameter-unknown",
        "not-supported",
        "The search parameter does not exist here, and was not used.",
        "Correct its name. `/fhir/r4/metadata` lists the parameters of each type.",
    )
    PARAMETER_INVALID = (
        "parameter-invalid",
        "invalid not-supported exception",
        "A parameter has a value or a modifier that it does not take.",
        "Use one of the form that the diagnostics describe.",
    )
    PARAMETER_EMPTY = (
        "parameter-empty",
        "invalid",
        "A search parameter has no value, and was not used.",
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
        "too-costly",
        "The search has more conditions or values, or takes more work, than one search may.",
        "Narrow it: add a patient or dates, send fewer values, sort by fewer parameters.",
    )
    FIELD_INVALID = (
        "field-invalid",
        "value exception",
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
        "required value",
        "A field that is required is missing.",
        "Add it.",
    )
    ENDPOINT_STATE = (
        "endpoint-state",
        "business-rule",
        "The webhook endpoint is in a state in which this cannot be done.",
        "See its `state` and `why`; verify, enable or pause it first.",
    )
