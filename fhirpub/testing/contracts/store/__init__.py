"""The contract of a store, one module for each group of promises."""
