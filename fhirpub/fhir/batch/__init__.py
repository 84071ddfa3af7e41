"""The Bundle of a batch, read entry by entry: each resource stays the bytes that were sent."""
