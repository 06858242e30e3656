"""What a kernel is, and how an operand lies in memory."""
