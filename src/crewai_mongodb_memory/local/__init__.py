"""The embedded server: found, started, supervised, and stopped with its last user."""
