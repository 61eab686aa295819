"""SQL text -> a frozen model with source locations. No I/O but the reading of project files."""
