"""`python -m relaylab` is the command `relaylab`."""

from relaylab.cli import main

main()
