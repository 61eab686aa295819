"""For tests of pipelines, ours and our users': driver, golden cases, clocks, faults."""
