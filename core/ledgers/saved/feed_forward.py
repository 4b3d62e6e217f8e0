"""Feed-forward parts: dense ones, and routed experts with shared ones beside them."""

from __future__ import annotations

from ...model.kinds.feed_forward import Experts, FeedForward
from ...model.kinds.mixer import present
from ...numeric import Number, maximum
from ...sums import add_token_bytes
from ...terms import formula
from .keeping import TENSORS, Keeping, Kept, ffn_kept

_ROUTED = "copies of a token at its experts; Shazeer 2017, arXiv 1701.06538"


@formula("FFN", "B/token", TENSORS)
def ffn_bytes(ffn_size: Number, saved: Number) -> Number:
    """Feed-forward tensors of one rank: gate, up and product when gated, else input and output of the activation."""
    return saved * ffn_size


@formula("x", "B/token", "gradients alive in the backward pass of one block")
def ffn_gradients(ffn_size: Number, alive: Number) -> Number:
    """Gradients of the inner width alive in the backward pass of a feed-forward part."""
    return alive * ffn_size


@formula("selected", "B/token", "PyTorch selective checkpointing, every second matrix product: torchtitan public code")
def selected_ffn(ffn_size: Number, element: Number) -> Number:
    """Outputs that recomputation by operator keeps: the gate."""
    return element * ffn_size


@formula("8·E·σ", "B/token", "32-bit logits and probabilities of the tokens that a rank routes")
def router_bytes(experts: Number, share: Number) -> Number:
    """What the router keeps."""
    return 8 * experts * share


@formula("c", "B/token", "a token compressed before its experts, and their result before it is expanded")
def compressed_bytes(latent: Number, share: Number, element: Number) -> Number:
    """Tokens in the width that routed experts read."""
    return 2 * element * latent * share


@formula("k·t_e/t", "copies")
def copies(per_token: Number, expert_tensor: Number, tensor: Number, imbalance: Number) -> Number:
    """Copies of a token that a rank computes, mean over the tokens of a micro-batch, at the rank with most."""
    return per_token * expert_tensor / tensor * imbalance


@formula("R·(c·h + s·f/t_e)", "B/token", _ROUTED)
def routed_bytes(
    rows: Number, width: Number, copied: Number, size: Number, expert_tensor: Number, saved: Number
) -> Number:
    """Copies sent to experts, what experts give back where its weights are learnt from it, and their inner tensors."""
    return rows * (copied * width + saved * size / expert_tensor)


@formula("x_E", "B/token", "experts computed together")
def routed_gradients(
    rows: Number, width: Number, element: Number, size: Number, expert_tensor: Number, alive: Number
) -> Number:
    """Gradients alive in the backward pass of routed experts."""
    return rows * (element * width + alive * size / expert_tensor)


@formula("4h", "B/token", "Hugging Face transformers: the sum over experts and its copy")
def gathered_sums(width: Number) -> Number:
    """What a loop over experts keeps of the sum of their results."""
    return 4 * width


@formula("x_E", "B/token", "one expert after another, the fullest with a quarter more than the mean")
def looped_gradients(
    rows: Number, width: Number, element: Number, size: Number, alive: Number, experts: Number
) -> Number:
    """Gradients alive in the backward pass of one of the experts of a loop."""
    return element * width + 1.25 * alive * size * rows / experts


@formula("max x", "B/token")
def larger_gradients(first: Number, second: Number) -> Number:
    """The larger of two sets of gradients that are alive one after the other."""
    return maximum(first, second)


@formula("R·f/t_e", "elements")
def routed_inner(rows: Number, size: Number, expert_tensor: Number) -> Number:
    """Elements of the inner width of the copies that a rank's experts compute."""
    return rows * size / expert_tensor


@formula("R·h", "elements")
def routed_width(rows: Number, width: Number) -> Number:
    """Elements of the copies that a rank's experts read."""
    return rows * width


def inner_saved(gated: int, keeping: Keeping) -> Number:
    """Bytes that an element of the inner width keeps; the input of the last matrix where something reads it."""
    saved = keeping.framework["gated_saved"] if gated else 4
    if keeping.cheap_again or not keeping.keeps_input("down"):
        saved -= 2
    if keeping.activation_input:
        saved -= (2 - keeping.activation_input) * (2 if gated else 1)
    return saved if keeping.widened == 1 else saved * keeping.widened


def _product_cast(size: Number, inner_norm: int, keeping: Keeping) -> Number:
    """A cast copy of what the last matrix reads: the product, or what a norm made of it; none where it is made anew."""
    if inner_norm:
        return keeping.cast(size, keeping.element)
    return 0.0 if keeping.cheap_again else keeping.cast(size, 2 * keeping.widened)


def _alive(gated: int, keeping: Keeping) -> Number:
    alive = keeping.framework["gated_backward"] if gated else keeping.framework["plain_backward"]
    return alive if keeping.widened == 1 else alive * keeping.widened


@ffn_kept.register
def _(ffn: FeedForward, keeping: Keeping) -> Kept:
    size = ffn.local_size(keeping.tensor)
    saved = inner_saved(ffn.gated, keeping)
    if ffn.inner_norm:
        saved += keeping.element
    gradients = ffn_gradients(size, _alive(ffn.gated, keeping))
    selected = selected_ffn(size, keeping.element) if keeping.by_operator else 0.0
    cast = _product_cast(size, ffn.inner_norm, keeping)
    return Kept(ffn_bytes(size, saved), 0.0, gradients, selected, cast=cast)


@ffn_kept.register
def _(ffn: Experts, keeping: Keeping) -> Kept:
    element, split = keeping.element, keeping.expert_tensor
    rows = copies(ffn.per_token, split, keeping.tensor, keeping.imbalance)
    saved = inner_saved(ffn.gated, keeping)
    copied = element * (keeping.keeps_input("gate", "up") + keeping.keeps_expert_outputs)
    kept = routed_bytes(rows, ffn.width, copied, ffn.size, split, saved)
    kept = add_token_bytes(kept, router_bytes(ffn.experts, keeping.share))
    if present(ffn.latent):
        kept = add_token_bytes(kept, compressed_bytes(ffn.latent, keeping.share, element))
    alive = _alive(ffn.gated, keeping)
    if keeping.framework["expert_loop"]:
        kept = add_token_bytes(kept, gathered_sums(ffn.width))
        gradients = looped_gradients(rows, ffn.width, element, ffn.size, alive, ffn.experts)
    else:
        gradients = routed_gradients(rows, ffn.width, element, ffn.size, split, alive)
    cast = _experts_cast(ffn, rows, keeping) if keeping.cast_input else 0.0
    if not present(ffn.shared_size):
        return Kept(kept, 0.0, gradients, cast=cast)
    shared = ffn_kept(ffn.shared(), keeping)
    return Kept(
        add_token_bytes(kept, shared.tensors),
        0.0,
        larger_gradients(gradients, shared.backward),
        shared.selected,
        cast=add_token_bytes(cast, shared.cast),
    )


def _experts_cast(ffn: Experts, rows: Number, keeping: Keeping) -> Number:
    """Cast copies of what the matrices of routed experts read."""
    copied = keeping.cast(routed_width(rows, ffn.width), keeping.element)
    return add_token_bytes(copied, _product_cast(routed_inner(rows, ffn.size, keeping.expert_tensor), 0, keeping))
