"""What suites of tests for Relay programs use: helpers, fixtures, an annotator."""
