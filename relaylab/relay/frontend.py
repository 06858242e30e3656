"""relay.frontend: importers of other formats."""

__all__: list[str] = []
