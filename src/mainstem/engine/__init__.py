"""Spark: flows from queries, exactly once into the log; the only package that imports pyspark."""
