"""Time of one block for one micro-batch on one rank, kernel by kernel."""

from .dispatch import Exchange, ExpertTraffic
from .passes import BlockTime, Core, Pass, Product, mean_block, mean_of_blocks
from .timer import BlockTimer

__all__ = [
    "BlockTime",
    "BlockTimer",
    "Core",
    "Exchange",
    "ExpertTraffic",
    "Pass",
    "Product",
    "mean_block",
    "mean_of_blocks",
]
