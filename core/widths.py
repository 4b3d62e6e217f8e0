"""Bytes of an element that the words of a training plan stand for."""

from __future__ import annotations

from .scenario import Training


def element_bytes(training: Training) -> float:
    """Bytes of an element of activations and of frozen weights; 8-bit recipes keep both in 16 bits."""
    return 4.0 if training.precision == "fp32" else 2.0


def gradient_bytes(training: Training) -> float:
    """Bytes of a gradient as it is accumulated and reduced."""
    return 4.0 if training.gradient_precision == "fp32" else 2.0
