"""What an 8-bit or 4-bit recipe keeps of what it casts: copies of weights, and inputs of products.

Sources: FP8 formats for deep learning (arXiv 2209.05433), Transformer Engine and torchao public code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..catalogue import table
from ..numeric import Number
from ..scenario import Scenario
from ..terms import formula


@dataclass(frozen=True)
class LowPrecision:
    """Bytes of what a plan keeps cast. Matrices of blocks are cast; embedding, head, norms and router are not."""

    #: Of a parameter, in the format with its scales.
    element: float
    #: Of a parameter, in all copies that are kept from its first product of a step to its last; 0: cast for each anew.
    kept: float
    #: Of a parameter that is gathered in the format; 0: gathered in 16 bits.
    gathered: float
    #: No 16-bit weights of the matrices are held beside the cast ones.
    alone: bool
    #: Of an element of the input of a product; 0: kept in 16 bits.
    inputs: float
    #: Of an element that an activation function reads; 0: kept in 16 bits.
    activation_inputs: float

    @property
    def beside_gathered(self) -> float:
        """Bytes of the copies of a parameter beside what is gathered of it."""
        return max(0.0, self.kept - self.gathered)


def low_precision_of(scenario: Scenario, framework: Mapping[str, Any]) -> LowPrecision | None:
    """What a plan keeps cast; None where nothing is: a quantised base is made 16-bit for its products."""
    training, switches = scenario.training, scenario.fp8
    recipe = table("precisions")[training.precision]
    if not recipe["cast"] or training.finetune == "qlora":
        return None
    element = float(recipe["element"])
    replaces = bool(framework.get("cast_kept", False))
    travels = switches.parameter_gather and recipe["gather"] < 2
    alone = replaces and travels and scenario.parallelism.zero > 0 and training.state_precision == "fp32"
    one = scenario.cluster.accelerator.generation in recipe.get("one_copy", ())
    copies = 1 if one else recipe["copies"]
    kept = element * copies if switches.cache_weights else element * alone
    # inputs of frozen matrices are not kept, and adapters read 16-bit ones
    inputs = element if replaces and training.finetune == "full" else 0.0
    read = element if switches.activation_inputs and training.finetune == "full" else 0.0
    return LowPrecision(element, kept, element if travels else 0.0, alone, inputs, read)


@formula("w_q·P_mat", "B", "copies in the order of the forward product and in that of the backward product")
def copied_bytes(width: Number, matrices: Number) -> Number:
    """Low-precision copies of some matrices."""
    return width * matrices
