"""Programs to text: documents, names, and what each kind of node looks like."""
