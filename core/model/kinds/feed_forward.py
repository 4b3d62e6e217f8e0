"""What follows token mixing: a dense feed-forward part, routed experts, or a single matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ...numeric import Number
from ...sums import add_parameters
from ...terms import formula
from .. import parameters as count
from .mixer import Matrix, Stream, present

_MOE = "Shazeer 2017, arXiv 1701.06538; shared experts: DeepSeekMoE, arXiv 2401.06066"


class FeedForwardKind(ABC):
    """One kind of feed-forward part. Parameters are of one layer; `tp` is the tensor parallel degree."""

    hidden: Number
    #: What checkpoints of some number formats leave in 16 bits by this name; routed experts are a part of their own.
    part = "dense"

    @abstractmethod
    def matrices(self) -> Number:
        """Parameters of all matrices."""

    @abstractmethod
    def vectors(self) -> Number:
        """Parameters of biases and norms."""

    @abstractmethod
    def share(self, tp: Number) -> Number:
        """Matrix parameters that one tensor parallel rank holds."""

    @abstractmethod
    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        """The matrices of one rank that every token passes."""

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        """Pointwise kernels over what every token passes: activation, biases, norms inside."""
        return ()

    def active_matrices(self) -> Number:
        """Parameters that multiply a token."""
        return self.matrices()

    def common_share(self, tp: Number) -> Number:
        """Matrix parameters that every token meets, on one tensor parallel rank."""
        return self.share(tp)

    def common_vectors(self) -> Number:
        """Parameters of biases and norms outside routed experts."""
        return self.vectors()

    def routed_share(self, ep: Number, etp: Number) -> Number:
        """Parameters of routed experts on one rank of `ep` expert parallel groups of `etp` ranks."""
        return 0.0

    def dense_part(self) -> FeedForward | None:
        """The dense feed-forward part that every token passes, where there is one."""
        return None

    def inactive(self) -> Number:
        """Parameters, biases included, that a token does not meet."""
        return 0.0

    def buffers(self) -> Number:
        """Stored values that are no parameters."""
        return 0.0


@formula("n_in·f/t", "elements")
def ffn_width(ffn_size: Number, tensor_parallel: Number, inputs: Number) -> Number:
    """Width of the first feed-forward projection on one rank; 2 inputs when gated, else 1."""
    return inputs * ffn_size / tensor_parallel


@dataclass(frozen=True)
class FeedForward(FeedForwardKind):
    """A dense feed-forward part: gated (three matrices) or plain (two).

    `inner_norm` 1 is a norm before the second projection; `activation` counts trained values of the activation.
    """

    hidden: Number
    ffn_size: Number
    gated: int
    mlp_bias: int
    inner_norm: int = 0
    activation: Number = 0

    @property
    def matrix_count(self) -> int:
        return 2 + self.gated

    def matrices(self) -> Number:
        return count.ffn_matrices(self.hidden, self.ffn_size, self.matrix_count)

    def vectors(self) -> Number:
        return count.ffn_vectors(
            self.hidden, self.ffn_size, self.matrix_count, self.mlp_bias, self.inner_norm, self.activation
        )

    def share(self, tp: Number) -> Number:
        return count.ffn_share(self.matrices(), tp)

    def dense_part(self) -> FeedForward | None:
        return self

    def local_size(self, tp: Number) -> Number:
        return ffn_width(self.ffn_size, tp, 1)

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        inner = self.local_size(tp)
        activation = Stream(inner, 6.0, 10.0, steps=True) if self.gated else Stream(inner, 4.0, 6.0, steps=True)
        streams = (
            (True, activation),
            (self.mlp_bias, Stream(inner, 0.0, 2.0, 0)),
            (self.inner_norm, Stream(inner, 4.0, 10.0, 1, 2)),
        )
        return tuple(stream for there, stream in streams if there)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        return (
            Matrix("FFN up", self.hidden, ffn_width(self.ffn_size, tp, 1 + self.gated)),
            Matrix("FFN down", self.local_size(tp), self.hidden),
        )


@formula("P_1", "parameters", _MOE)
def expert_matrices(width: Number, size: Number, matrices: Number) -> Number:
    """Parameters of the matrices of one routed expert."""
    return matrices * width * size


@formula("P_1", "parameters", _MOE)
def expert_parameters(matrices: Number, biases: Number) -> Number:
    """Parameters of one routed expert."""
    return matrices + biases


@formula("P_common", "parameters", _MOE)
def common_matrices(
    hidden: Number, experts: Number, shared_size: Number, shared_gate: Number, matrices: Number, latent: Number
) -> Number:
    """Parameters that every token meets: router, shared experts with their gate, and the way into a latent and out."""
    return hidden * experts + matrices * hidden * shared_size + shared_gate * hidden + 2 * hidden * latent


@formula("P_moe", "parameters", _MOE)
def experts_matrices(experts: Number, each: Number, common: Number) -> Number:
    """Parameters of some routed experts and of what every token meets."""
    return experts * each + common


@formula("P_moe,vec", "parameters", _MOE)
def experts_vectors(experts: Number, biases: Number, router_bias: Number, shared: Number) -> Number:
    """Parameters of the biases of routed experts, of a trained bias of the router, and of shared experts."""
    return experts * biases + router_bias * experts + shared


@formula("P_idle", "parameters", _MOE)
def inactive_parameters(experts: Number, experts_per_token: Number, each: Number) -> Number:
    """Parameters of the routed experts that a token is not sent to."""
    return (experts - experts_per_token) * each


@formula("ψ_E", "parameters", "experts are laid over e groups of t_e ranks")
def routed_share(experts: Number, each: Number, expert_parallel: Number, expert_tensor_parallel: Number) -> Number:
    """Matrix parameters of routed experts that one rank holds."""
    return experts * each / (expert_parallel * expert_tensor_parallel)


@formula("b_E", "parameters", "biases are kept whole on the ranks that split an expert")
def routed_biases(experts: Number, biases: Number, expert_parallel: Number) -> Number:
    """Parameters of the biases of routed experts that one rank holds."""
    return experts * biases / expert_parallel


@formula("ψ_common", "parameters", "router and latent are kept whole on every rank")
def common_share(
    hidden: Number,
    experts: Number,
    shared_size: Number,
    shared_gate: Number,
    matrices: Number,
    latent: Number,
    tensor_parallel: Number,
) -> Number:
    """Matrix parameters that every token meets, on one tensor parallel rank."""
    return (
        hidden * experts
        + matrices * hidden * shared_size / tensor_parallel
        + shared_gate * hidden
        + 2 * hidden * latent
    )


@dataclass(frozen=True)
class Experts(FeedForwardKind):
    """Routed experts, some of which a token is sent to, and shared ones that it always meets.

    `size` is the inner width of an expert, `shared_size` that of all shared ones together; with a `latent` width the
    routed experts work on a compressed token. `router_bias` is none, trained or steering (a buffer). `bias` is on the
    routed experts, `shared_bias` on the shared ones; switches are 0 or 1.
    """

    hidden: Number
    experts: Number
    per_token: Number
    size: Number
    gated: int
    bias: int
    shared_size: Number
    shared_bias: int
    shared_gate: int
    router_bias: str
    latent: Number

    @property
    def matrix_count(self) -> int:
        return 2 + self.gated

    @property
    def width(self) -> Number:
        """Width of what a routed expert reads."""
        return self.latent if present(self.latent) else self.hidden

    def expert(self) -> Number:
        """Matrix parameters of one routed expert."""
        return expert_matrices(self.width, self.size, self.matrix_count)

    def _biases(self) -> Number:
        return count.ffn_vectors(self.width, self.size, self.matrix_count, self.bias, 0, 0)

    def common(self) -> Number:
        """Matrix parameters that every token meets."""
        return common_matrices(
            self.hidden, self.experts, self.shared_size, self.shared_gate, self.matrix_count, self.latent
        )

    def matrices(self) -> Number:
        return experts_matrices(self.experts, self.expert(), self.common())

    def active_matrices(self) -> Number:
        return experts_matrices(self.per_token, self.expert(), self.common())

    def vectors(self) -> Number:
        return self._vectors(self._biases())

    def common_vectors(self) -> Number:
        return self._vectors(0.0)

    def _vectors(self, biases: Number) -> Number:
        shared = self.shared().vectors() if present(self.shared_size) else 0.0
        return experts_vectors(self.experts, biases, 1 if self.router_bias == "trained" else 0, shared)

    def shared(self) -> FeedForward:
        """The shared experts as one feed-forward part."""
        return FeedForward(self.hidden, self.shared_size, self.gated, self.shared_bias)

    def dense_part(self) -> FeedForward | None:
        return self.shared() if present(self.shared_size) else None

    def inactive(self) -> Number:
        each = expert_parameters(self.expert(), self._biases())
        return inactive_parameters(self.experts, self.per_token, each)

    def buffers(self) -> Number:
        return self.experts if self.router_bias == "steering" else 0.0

    def routed_share(self, ep: Number, etp: Number) -> Number:
        matrices = routed_share(self.experts, self.expert(), ep, etp)
        return add_parameters(matrices, self.routed_vectors(ep)) if self.bias else matrices

    def routed_vectors(self, ep: Number) -> Number:
        """Parameters of the biases of routed experts on one rank."""
        return routed_biases(self.experts, self._biases(), ep)

    def common_share(self, tp: Number) -> Number:
        return common_share(
            self.hidden, self.experts, self.shared_size, self.shared_gate, self.matrix_count, self.latent, tp
        )

    def share(self, tp: Number) -> Number:
        return add_parameters(self.common_share(tp), routed_share(self.experts, self.expert(), 1, tp))

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        return (self.router(), *self.shared_projections(tp))

    def router(self) -> Matrix:
        """The matrix that scores experts, whole on every rank."""
        return Matrix("router", self.hidden, self.experts, True)

    def shared_projections(self, tp: Number) -> tuple[Matrix, ...]:
        """The matrices of the shared experts on one rank, and those into a latent and out of it."""
        shared = self.shared().projections(tp) if present(self.shared_size) else ()
        if not present(self.latent):
            return shared
        into, out = (
            Matrix("into latent", self.hidden, self.latent, True),
            Matrix("from latent", self.latent, self.hidden, True),
        )
        return (into, *shared, out)

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        return self.shared().pointwise(tp) if present(self.shared_size) else ()

    def expert_projections(self, etp: Number) -> tuple[Matrix, ...]:
        """The matrices of one routed expert on one of the `etp` ranks that split it."""
        return (
            Matrix("expert up", self.width, ffn_width(self.size, etp, 1 + self.gated)),
            Matrix("expert down", ffn_width(self.size, etp, 1), self.width),
        )
