"""What deletes from a database: sweeps of documents and deliveries, and erasure."""
