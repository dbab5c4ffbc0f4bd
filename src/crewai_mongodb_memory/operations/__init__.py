"""Every operation of a store, written once as a generator of commands."""
