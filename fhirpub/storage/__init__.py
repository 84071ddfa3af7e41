"""What is kept, and where: one contract and its engines."""
