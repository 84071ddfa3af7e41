"""Problems of the entries of batches."""

from __future__ import annotations

from fhirpub.problems.kind import Problem


class BatchProblem(Problem):
    """What is wrong with an entry of a batch, or worth a remark."""

    BATCH_TIMEOUT = (
        "batch-timeout",
        "transient",
        "The batch took longer than it may, so that this entry was not processed.",
        "Send this entry again, in a smaller batch.",
    )
    BATCH_ANSWER_TOO_LARGE = (
        "batch-answer-too-large",
        "too-costly",
        "The resources in the response to the batch are as large as they may be.",
        "Send this entry in another batch.",
    )
    CONDITION_UNSUPPORTED = (
        "condition-unsupported",
        "not-supported",
        "The interaction does not evaluate this condition of an entry.",
        "Leave it out. Registrations are safe to repeat without one.",
    )
    REGISTERED_BEFORE = (
        "registered-before",
        "informational",
        "An entry of a batch repeats a registration, and has its response.",
        "Nothing is to be done.",
    )
    REGISTERED_DIFFERENTLY = (
        "registered-differently",
        "duplicate",
        "The identifier of an entry of a batch is registered with other content, which stays.",
        "Update the resource, or register it under another identifier.",
    )
