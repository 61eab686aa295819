"""The front door: REST, server-sent events, metrics and the page."""
