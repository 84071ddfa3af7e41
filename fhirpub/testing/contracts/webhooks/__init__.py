"""The contract of a store about webhooks, one module for each group of promises."""
