"""What each kind of layer keeps for its backward pass: bytes a token of a micro-batch on one rank."""

# each module says what the kinds it names keep
from . import attention, feed_forward, latent, scans, simple  # noqa: F401
from .keeping import Keeping, Kept, ffn_kept, mixer_kept

__all__ = ["Keeping", "Kept", "ffn_kept", "mixer_kept"]
