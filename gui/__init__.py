#: Pixels of the smallest window in which everything has its place.
SMALLEST = (1100, 700)
