"""Sources that need no system to be asked: they listen, or make records up, inside the gateway."""
