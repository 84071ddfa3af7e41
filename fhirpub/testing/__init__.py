"""For tests of plugins and stores: contracts to inherit, and a service to talk to."""
