"""Where the commands of operators act: on a store, or on a running service over HTTP."""
