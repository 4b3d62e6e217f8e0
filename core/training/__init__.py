"""Training: layout, time of a step from kernels up, days."""
