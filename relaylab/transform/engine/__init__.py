"""What passes are and how they run: kinds of passes, contexts, instruments, history; and what they build with."""
