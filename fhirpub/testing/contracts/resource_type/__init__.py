"""The contract of a resource type, one module for each group of promises."""
