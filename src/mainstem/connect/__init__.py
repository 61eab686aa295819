"""Connectors: systems outside that streams and tables come from, or are written to."""
