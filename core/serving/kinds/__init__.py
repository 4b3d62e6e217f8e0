"""Kinds of layers as an engine runs them: kernels of their cores when decoding and for prompts."""
