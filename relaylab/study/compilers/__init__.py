"""What other compilers made of a program, read from what they wrote, beside what relaylab makes of it."""

from relaylab.study.compilers.versus import CompilerComparison, compare_compilers

__all__ = ["CompilerComparison", "compare_compilers"]
