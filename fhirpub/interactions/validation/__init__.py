"""Whether a submission is right: it is accepted at once, or what is wrong is explained."""
