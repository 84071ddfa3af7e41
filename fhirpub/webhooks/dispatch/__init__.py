"""The delivery engine: relays events from the outbox to queues and sends deliveries."""
