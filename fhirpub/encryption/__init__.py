"""The encryption of secrets at rest: the cipher, and the keys that the store does not hold."""
