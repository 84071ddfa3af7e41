"""Operations on the audit trail: listed, exported and verified."""
