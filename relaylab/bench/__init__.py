"""The benchmark: compiled networks beside other inference engines (`python -m relaylab.bench`)."""
