"""The driver's side: what reaches a MongoDB server, and runs operations on it."""
