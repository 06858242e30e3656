"""The emitter: loop programs to LLVM IR."""
