"""The controls that fields are set with: sliders, typed quantities, choices and switches."""
