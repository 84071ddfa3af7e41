"""The tables of documents in a SQLite store: which version has which, and the bytes of large ones.

Small documents are in the row of their version (ADR 30): only `document` leads to them by name.
"""

from __future__ import annotations

_TABLES = (
    """
    CREATE TABLE document (
        tenant TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        PRIMARY KEY (tenant, sha256, id, version)
    ) STRICT, WITHOUT ROWID
    """,
    # The bytes are apart, so that a blob can be marked as fresh or as named without moving them.
    # `title` was read until 0.2.0; now it stays empty.
    """
    CREATE TABLE blob (
        number INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        content_type TEXT NOT NULL,
        title TEXT NOT NULL,
        size INTEGER NOT NULL,
        added INTEGER NOT NULL,
        named INTEGER NOT NULL,
        UNIQUE (tenant, sha256)
    ) STRICT
    """,
    "CREATE INDEX blob_unnamed ON blob (tenant, added) WHERE named = 0",
    "CREATE TABLE blob_bytes (number INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT",
)
_NAMES = """json_each('["' || replace(NEW.documents, ' ', '","') || '"]')"""
# Done here and not by the program: within the one statement that inserts many versions. Most have
# one document: to go through a list costs a tenth of the insert.
TRIGGERS = (
    """
    CREATE TRIGGER version_names_document AFTER INSERT ON version
    WHEN length(NEW.documents) = 64
    BEGIN
        INSERT OR IGNORE INTO document (tenant, sha256, id, version)
            VALUES (NEW.tenant, NEW.documents, NEW.id, NEW.version);
    END
    """,
    """
    CREATE TRIGGER version_names_blob AFTER INSERT ON version
    WHEN length(NEW.documents) = 64 AND length(NEW.attached) = 0
    BEGIN
        UPDATE blob SET named = 1
            WHERE tenant = NEW.tenant AND named = 0 AND sha256 = NEW.documents;
    END
    """,
    f"""
    CREATE TRIGGER version_names_documents AFTER INSERT ON version
    WHEN length(NEW.documents) > 64
    BEGIN
        INSERT OR IGNORE INTO document (tenant, sha256, id, version)
            SELECT NEW.tenant, value, NEW.id, NEW.version FROM {_NAMES};
        UPDATE blob SET named = 1
            WHERE tenant = NEW.tenant AND named = 0 AND sha256 IN (SELECT value FROM {_NAMES});
    END
    """,  # noqa: S608 - names in this file
)
TABLES = (*_TABLES, *TRIGGERS)
ATTACH = (
    "ALTER TABLE version ADD COLUMN attached BLOB NOT NULL DEFAULT x''",
    "DROP TRIGGER version_names_documents",
    *TRIGGERS,
)
"""What lets the rows of an older file hold documents; those that it has stay where they are."""

PIECES = ("CREATE TABLE blob_piece (number INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT",)
