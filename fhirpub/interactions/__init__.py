"""What can be done with resources, a file each; no HTTP and no database words."""
