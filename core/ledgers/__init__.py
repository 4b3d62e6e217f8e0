"""The three ledgers: FLOPs, bytes held, bytes sent."""
