"""A Figure on the screen, painted in place."""

from .view import PlotView

__all__ = ["PlotView"]
