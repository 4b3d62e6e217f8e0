"""Placeholder until the serving sheet lands."""
from ..report import Sheet


def evaluate_serving(scenario, model):  # noqa: ANN001
    return Sheet()
