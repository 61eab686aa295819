"""The model against what exists -> a frozen plan -> explain, apply. No I/O of its own."""
