"""Published and own measurements beside predictions: rows of a table become plans, and what was seen is compared."""
