"""What a SQLite store records of clients beside their credentials."""
