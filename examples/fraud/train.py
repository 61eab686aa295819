"""Trains the model on made-up payments and writes its numbers into functions/fraud.py.

python examples/fraud/train.py
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

FUNCTIONS = Path(__file__).parent / "functions" / "fraud.py"


def payment(choose: random.Random, *, fraud: bool) -> list[float]:
    """Amount, hour, kilometres from home, whether the card is new to the shop."""
    if fraud:
        amount, hour = choose.lognormvariate(5.5, 0.8), choose.choice((0, 1, 2, 3, 4, 14, 22, 23))
        return [
            round(amount, 2),
            hour,
            round(choose.expovariate(1 / 600), 1),
            choose.random() < 0.9,
        ]
    amount, hour = choose.lognormvariate(3.5, 0.9), choose.randrange(7, 23)
    return [round(amount, 2), hour, round(choose.expovariate(1 / 15), 1), choose.random() < 0.3]


def train() -> Pipeline:
    """The same model every time: payments from a seed, and a solver without chance."""
    choose = random.Random(2026)
    labels = [choose.random() < 0.2 for _ in range(4000)]
    payments = [payment(choose, fraud=label) for label in labels]
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(payments, labels)


def numbers(model: Pipeline) -> dict[str, list[float]]:
    """All that the model has learned."""
    scaler, regression = model.named_steps.values()
    learned = {
        "mean": scaler.mean_,
        "scale": scaler.scale_,
        "coefficients": regression.coef_[0],
        "intercept": regression.intercept_,
    }
    return {name: [round(float(n), 9) for n in values] for name, values in learned.items()}


if __name__ == "__main__":
    lines = (f'"{name}": {json.dumps(values)}' for name, values in numbers(train()).items())
    written = 'MODEL = """{\n' + ",\n".join(lines) + '\n}"""\n'
    text = FUNCTIONS.read_text("utf-8")
    FUNCTIONS.write_text(re.sub(r'MODEL = """.*?"""\n', written, text, flags=re.DOTALL), "utf-8")
    print(f"{FUNCTIONS.name} has the model now; `mainstem apply` takes it to the stream")
