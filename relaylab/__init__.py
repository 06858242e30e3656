"""relaylab: explore tensor compilers by hand."""

__version__ = "0.1.0"
