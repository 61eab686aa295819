"""The descriptions of the connectors, one module for each, whose `SPEC` it is."""
