"""The running product from the outside, as its users meet it; all share one stack."""
