"""The pages of operators: the table of operations as forms, and pages made of several of them."""
