"""Attention over keys and values of heads. Flash kernels (arXiv 2205.14135) keep a log-sum-exp in place of scores."""

from __future__ import annotations

from ...model.kinds.attention import GroupedAttention, width_of_heads
from ...model.kinds.cross import CrossAttention
from ...model.kinds.mixer import present
from ...numeric import Number, where
from ...sums import add_token_bytes
from ...terms import formula
from .keeping import TENSORS, Keeping, Kept, mixer_kept


@formula("q, k, v, o", "B/token", TENSORS)
def attention_bytes(heads: Number, kv_heads: Number, head_dim: Number, value_dim: Number, element: Number) -> Number:
    """Queries, keys, values and attention output of the heads on one rank."""
    return element * (heads + kv_heads) * (head_dim + value_dim)


@formula("q, k, v, o", "B/token", "LitGPT public code: the values keep one buffer of all three, rotation copies two")
def buffered_attention(heads: Number, kv_heads: Number, head_dim: Number, element: Number) -> Number:
    """The same where one matrix makes queries, keys and values, and keys and values of groups are repeated."""
    return element * head_dim * where(heads == kv_heads, 6 * heads, 4 * heads)


@formula("qk-norm", "B/token", TENSORS)
def qk_norm_bytes(heads: Number, kv_heads: Number, head_dim: Number, element: Number) -> Number:
    """Inputs of the query and key norms."""
    return element * (heads + kv_heads) * head_dim


@formula("o'", "B/token", TENSORS)
def further_outputs(width: Number, count: Number, element: Number) -> Number:
    """Tensors as wide as the attention output: a gate and the product with it, the input of a norm behind it."""
    return count * element * width


@formula("lse", "B/token", "FlashAttention, arXiv 2205.14135")
def log_sum_exp_bytes(heads: Number) -> Number:
    """32-bit log-sum-exp that a flash kernel keeps for each head."""
    return 4 * heads


@formula("scores", "B/token", TENSORS)
def score_bytes(heads: Number, sequence: Number, dropout: Number, element: Number) -> Number:
    """Softmax output that unfused attention keeps; with dropout its mask and its result too (5·a·s in 16 bits)."""
    return (element + (1 + element) * dropout) * heads * sequence


@formula("selected", "B/token", "PyTorch selective checkpointing, every second matrix product: torchtitan public code")
def selected_attention(heads: Number, kv_heads: Number, head_dim: Number, value_dim: Number, element: Number) -> Number:
    """Outputs that recomputation by operator keeps: query, value, attention with its log-sum-exp."""
    return element * (heads * (head_dim + value_dim) + kv_heads * value_dim) + 4 * heads


@formula("k, v·I/s", "B/token", TENSORS, "image states that they are made of, once a stage")
def image_bytes(kv_heads: Number, width: Number, element: Number, images: Number, sequence: Number) -> Number:
    """Keys and values of the image tokens of a sequence, for each token of its text."""
    return element * kv_heads * width * images / sequence


@formula("n_kv·I/s", "elements", "counting: keys and values of image tokens go around as those of text do")
def image_elements_passed(elements: Number, images: Number, sequence: Number) -> Number:
    """Elements of keys and values of image tokens that a rank passes on, for each token of the text."""
    return elements * images / sequence


@formula("q, o", "B/token", "keys and values are those of image tokens")
def across_bytes(heads: Number, head_dim: Number, value_dim: Number, element: Number) -> Number:
    """Queries and output of attention across to image tokens."""
    return element * heads * (head_dim + value_dim)


def scores_kept(heads: Number, keeping: Keeping, keys: Number | None = None) -> Number:
    """What is kept of the scores of some heads over some keys; None: those of the sequence."""
    if keeping.flash:
        return log_sum_exp_bytes(heads)
    if keeping.selective:
        return 0.0
    keys = keeping.sequence if keys is None else keys
    return score_bytes(heads, keys, int(keeping.training.dropout), keeping.element)


def output_cast(width: Number, keeping: Keeping, of_core: bool = True) -> Number:
    """A cast copy of what the output matrix reads: beside what flash kernels keep of their output, where it is that."""
    return keeping.cast(width, 0.0 if of_core and keeping.flash else keeping.element)


@mixer_kept.register
def _(mixer: GroupedAttention, keeping: Keeping) -> Kept:
    heads, kv_heads = mixer.local_heads(keeping.tensor), mixer.local_kv_heads(keeping.tensor)
    element, sizes = keeping.element, (mixer.head_dim, mixer.value_dim)
    if keeping.framework["qkv_buffer"] and not keeping.trained:
        kept = buffered_attention(heads, kv_heads, mixer.head_dim, element)
    else:
        kept = attention_bytes(heads, kv_heads, *sizes, element)
    if mixer.qk_norm:
        kept = add_token_bytes(kept, qk_norm_bytes(heads, kv_heads, mixer.head_dim, element))
    if further := 2 * mixer.output_gate + mixer.inner_norm:
        kept = add_token_bytes(kept, further_outputs(width_of_heads(heads, mixer.value_dim), further, element))
    selected = selected_attention(heads, kv_heads, *sizes, element) if keeping.by_operator else 0.0
    gradients = attention_bytes(heads, kv_heads, *sizes, element)
    cast = output_cast(width_of_heads(heads, mixer.value_dim), keeping, of_core=not further)
    passed = mixer.passed_on(keeping.tensor, keeping.latent)
    return Kept(kept, scores_kept(heads, keeping), gradients, selected, passed, cast)


@mixer_kept.register
def _(mixer: CrossAttention, keeping: Keeping) -> Kept:
    heads = mixer.local_heads(keeping.tensor)
    kept = across_bytes(heads, mixer.head_dim, mixer.value_dim, keeping.element)
    queries = qk_norm_bytes(heads, 0.0, mixer.head_dim, keeping.element)
    selected = kept if keeping.by_operator else 0.0
    cast = output_cast(width_of_heads(heads, mixer.value_dim), keeping)
    if not present(mixer.images):
        return Kept(add_token_bytes(kept, queries), scores_kept(heads, keeping, 0.0), kept, selected, cast=cast)
    kv_heads, seen = mixer.local_kv_heads(keeping.tensor), (keeping.element, mixer.images, keeping.sequence)
    made = image_bytes(kv_heads, mixer.head_dim + mixer.value_dim, *seen)
    kept, norms = add_token_bytes(kept, made), add_token_bytes(queries, image_bytes(kv_heads, mixer.head_dim, *seen))
    passed = image_elements_passed(mixer.image_share(keeping.tensor), mixer.images, keeping.sequence)
    scores = scores_kept(heads, keeping, mixer.images)
    return Kept(add_token_bytes(kept, norms), scores, kept, selected, passed, cast)
