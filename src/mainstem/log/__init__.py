"""Kafka: administration, writing, reading, state in compacted topics, requests between processes.

The only package that imports confluent_kafka; its errors and settings are translated here.
"""
