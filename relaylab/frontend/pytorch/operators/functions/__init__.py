"""Functions of mathematical physics, of which Relay has none: made of arithmetic, in float64."""
