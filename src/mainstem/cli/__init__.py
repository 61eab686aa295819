"""The `mainstem` command: one file for each noun."""
