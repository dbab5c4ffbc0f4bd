"""What keeps objects with connections working where a program copies, pickles, dumps, forks or runs them in threads."""
