"""Values in, values out: no client, no clock, no I/O."""
