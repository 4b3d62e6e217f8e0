"""How fast a machine does one thing: kernels, collectives, and the constants with their sources."""
