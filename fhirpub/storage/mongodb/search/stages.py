"""Stages, and parts of them, that pipelines of searches share."""

from __future__ import annotations

from typing import Any

from fhirpub.storage.mongodb.schema import VERSION

KEY: dict[str, Any] = {"id": 1, "version": 1, "next": {"$add": ["$version", 1]}}

LATER = {
    "from": VERSION,
    "let": {"id": "$id", "next": "$next"},
    # The tenant is compared afterwards: it would let the planner consider all other indexes.
    "pipeline": [
        {
            "$match": {
                "$expr": {"$and": [{"$eq": ["$id", "$$id"]}, {"$eq": ["$version", "$$next"]}]}
            }
        },
        {"$project": {"_id": 0, "tenant": 1}},
    ],
    "as": "later",
}
"""What finds the version that took over from a candidate."""

LATER_OF_MEMBER = {
    "from": VERSION,
    "localField": "id",
    "foreignField": "members.id",
    "let": {"carrier": "$carrier.version"},
    "pipeline": [
        {"$match": {"$expr": {"$gt": ["$version", "$$carrier"]}}},
        {"$project": {"_id": 0, "tenant": 1}},
    ],
    "as": "later",
}
"""What finds the versions that brought later versions of a member."""
MEMBER = {
    **{
        name: f"$members.{name}" for name in ("id", "version", "type", "system", "value", "search")
    },
    "tenant": "$tenant",
    "updated": "$updated",
    "carrier": {"id": "$id", "version": "$version"},
}
"""What is needed of a member, and the key of its carrier: the version that brought it."""
WHOLE = {"$replaceWith": {"$mergeObjects": ["$$ROOT", {}]}}
"""Keeps a candidate as it is stored. The server reads ahead 4 MB of what a pipeline needs: that
would be tens of thousands of keys, but it is a few hundred versions."""
