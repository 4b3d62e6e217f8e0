"""A serving plan: memory of an engine, one iteration kernel by kernel, and the steady state built on it."""
