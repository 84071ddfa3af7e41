"""What a store promises about erasure: orders, holds, and what remains of a resource."""
