"""The engine: pure numpy, no Qt, no drawing, no clock."""

from .engine import evaluate
from .report import Report
from .scenario import Scenario
from .scenario_file import load_scenario, read_scenario, save_scenario, write_scenario

__all__ = ["Report", "Scenario", "evaluate", "load_scenario", "read_scenario", "save_scenario", "write_scenario"]
