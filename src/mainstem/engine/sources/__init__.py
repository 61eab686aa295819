"""Sources that run as flows of the engine."""
