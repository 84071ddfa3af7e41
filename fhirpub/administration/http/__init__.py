"""Administration over HTTP: the operations at /admin/v1, on a listener of its own."""
