"""The managed local stack: jars, Java, broker, PostgreSQL, engine and gateway, supervised."""
