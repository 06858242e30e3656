"""Normal forms and the passes on functions and scopes."""
