"""Commands for webhooks: endpoints, their deliveries, and the verification of a signature."""
