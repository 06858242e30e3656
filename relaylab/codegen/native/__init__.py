"""The entry point of a network and its pool of threads, in LLVM IR."""
