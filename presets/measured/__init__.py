"""Published measurements and, by source, the settings they were run with."""
