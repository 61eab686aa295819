"""Schemas: their registry, the rules of compatibility, the formats of records."""
