"""Targets: what writes the rows of a sink to a system outside; one module for each connector."""
