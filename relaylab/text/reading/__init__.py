"""Text to programs: lexer, reader, and a function for each production of the grammar."""
