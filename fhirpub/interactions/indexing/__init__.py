"""What searches compare: the values of the elements of a resource."""
