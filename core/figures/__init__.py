"""Builders that turn Reports into Figures, one module a chart."""
