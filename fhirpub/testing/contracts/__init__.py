"""The contracts of stores and resource types, one module for each group of promises."""
