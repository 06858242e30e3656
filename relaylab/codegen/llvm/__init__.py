"""LLVM IR as text, compiled to object code, kept in a cache."""
