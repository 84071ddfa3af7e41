"""The indexes that a database has, its version, and conditions that several questions share."""

from __future__ import annotations

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb import schema
from fhirpub.storage.upgrades.versions import SchemaVersion

_EXISTS = {"$exists": True}
_INDEXES = {
    "version": {
        "version_key": ["id", "version"],
        "version_by_value": "tenant type value system version updated id".split(),
        "version_by_system": "tenant type system -updated id version".split(),
        "version_by_time": "tenant type -updated id version".split(),
        "version_by_search_value_newest": ["search.field", "search.key", "-updated"],
        "version_documents": ["documents", "tenant"],
        "version_unrelayed": ["updated", "id", "version"],
        "version_unsealed": ["updated", "id", "version"],
        "version_by_member": ["members.id", "-version"],
        "version_by_member_type": ["member_types", "-updated"],
        "version_by_member_value_newest": [
            "members.search.field",
            "members.search.key",
            "-updated",
        ],
    },
    "blob": {"blob_loose": ["tenant", "added"]},
    "blob_piece": {"piece_loose": ["tenant", "added"]},
    "client": {"client_tenant": ["tenant", "created"]},
    "endpoint": {"endpoint_tenant": ["tenant", "created"]},
    "delivery": {
        "delivery_by_sequence": ["endpoint", "sequence"],
        "delivery_by_state": ["endpoint", "state", "sequence"],
        "delivery_ended": ["state", "ended"],
    },
    "quota_count": {"quota_count_owner": ["owner"]},
    "audit_block": {
        "audit_block_by_number": ["tenant", "number"],
        "audit_block_by_time": ["tenant", "-first", "-number"],
        "audit_block_by_key": ["keys", "-first", "-number"],
    },
    "audit_checkpoint": {"audit_checkpoint_by_number": ["tenant", "number"]},
    "revoked_token": {"revoked_token_client": ["client"]},
    "used_assertion": {"used_assertion_owner": ["owner", "until"]},
    "erasure": {"erasure_reuse": ["tenant"]},
    "hold": {"hold_tenant": ["tenant", "since"]},
}
_CONDITIONS = {
    "version_documents": {"documents": _EXISTS},
    "version_unrelayed": {"unrelayed": True},
    "version_unsealed": {"unsealed": True},
    "version_by_member": {"members.id": _EXISTS},
    "version_by_member_type": {"member_types": _EXISTS},
    "version_by_member_value_newest": {"members": _EXISTS},
    "blob_loose": {"loose": True},
    "piece_loose": {"loose": True},
    "delivery_ended": {"ended": _EXISTS},
    "erasure_reuse": {"allows_reuse": True},
}
_ALL = [index for wanted in schema._INDEXES.values() for index in wanted]


def test_each_index_has_its_fields_in_their_order() -> None:
    found = {
        name: {
            index["name"]: [
                field if direction == 1 else f"-{field}"
                for field, direction in index["key"].items()
            ]
            for index in wanted
        }
        for name, wanted in schema._INDEXES.items()
    }

    assert found == _INDEXES


def test_an_index_over_some_documents_names_them() -> None:
    partial = {index["name"]: index.get("partialFilterExpression") for index in _ALL}

    assert {name: condition for name, condition in partial.items() if condition} == _CONDITIONS


def test_keys_of_versions_and_places_in_queues_are_unique() -> None:
    unique = {index["name"] for index in _ALL if index.get("unique")}

    assert unique == {"version_key", "delivery_by_sequence"}


def test_each_collection_is_known_once() -> None:
    assert len(set(schema.COLLECTIONS)) == len(schema.COLLECTIONS) == 20
    assert schema._INDEXES.keys() <= {*schema.COLLECTIONS}


def test_versions_are_found_by_their_numbers_and_ids() -> None:
    found = schema.by_keys([("a", 1), ("b", 2), ("c", 1)])

    assert found == {
        "$or": [
            {"version": 1, "id": {"$in": ["a", "c"]}},
            {"version": 2, "id": {"$in": ["b"]}},
        ]
    }


@pytest.mark.parametrize(
    ("stored", "version"),
    [
        (None, SchemaVersion(0, 0)),
        ({}, SchemaVersion(0, 0)),
        ({"version": 7}, SchemaVersion(7, 7)),
        ({"version": 12, "usable_from": 11}, SchemaVersion(12, 11)),
    ],
)
def test_the_version_of_a_database_is_usable_from_itself_unless_it_names_another(
    stored: dict[str, int] | None, version: SchemaVersion
) -> None:
    assert schema.version_in(stored) == version


@pytest.mark.parametrize(
    "stored",
    [
        {"version": schema.SCHEMA_VERSION},
        {"version": 1},
        {"version": 99, "usable_from": schema.SCHEMA_VERSION},
    ],
)
def test_a_database_that_this_release_may_use_passes(stored: dict[str, int]) -> None:
    schema.require_use(stored)


def test_a_database_that_a_newer_release_has_upgraded_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable) as failed:
        schema.require_use({"version": schema.SCHEMA_VERSION + 1})

    assert "of a newer release" in failed.value.reason


def test_a_document_that_a_version_holds_is_found_in_the_form_of_a_blob() -> None:
    assert schema.attached_as_blob("tenant/of/ab12") == [
        {
            "$match": {
                "documents": "ab12",
                "tenant": "tenant/of",
                "attached.sha256": "ab12",
            }
        },
        {"$limit": 1},
        {"$unwind": "$attached"},
        {"$replaceRoot": {"newRoot": "$attached"}},
        {"$match": {"sha256": "ab12"}},
        {"$set": {"_id": "tenant/of/ab12", "size": {"$binarySize": "$data"}}},
    ]


def test_old_loose_blobs_of_a_tenant_are_found_with_one_version_that_names_them() -> None:
    match, limit, shown, lookup = schema.loose_blobs("t", before=5, limit=9)

    assert match == {"$match": {"tenant": "t", "added": {"$lt": 5}, "loose": True}}
    assert limit == {"$limit": 9}
    assert shown == {"$project": {"sha256": 1, "size": 1}}
    assert lookup["$lookup"] == {
        "from": "version",
        "localField": "sha256",
        "foreignField": "documents",
        "pipeline": [{"$match": {"tenant": "t"}}, {"$limit": 1}, {"$project": {"_id": 1}}],
        "as": "naming",
    }


def test_old_loose_pieces_of_a_tenant_are_found_with_their_blobs() -> None:
    match, limit, lookup, shown = schema.loose_pieces("t", before=5, limit=9)

    assert match == {"$match": {"tenant": "t", "added": {"$lt": 5}, "loose": True}}
    assert limit == {"$limit": 9}
    assert lookup["$lookup"] == {
        "from": "blob",
        "localField": "blob",
        "foreignField": "_id",
        "pipeline": [{"$project": {"loose": 1}}],
        "as": "naming",
    }
    assert shown == {"$project": {"naming": 1}}
