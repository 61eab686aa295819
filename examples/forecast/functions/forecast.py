"""A model that learns on the stream: one for each machine, a step with each reading."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from mainstem import State, stateful

RATE = 0.05


@dataclass
class Reading:
    machine: str
    load: float
    ambient: float
    power: float
    at: datetime


@dataclass
class Model:
    """What a machine's model has learned so far."""

    weights: list[float]
    seen: int


@dataclass
class Forecast:
    machine: str
    number: int
    at: datetime
    predicted: float
    power: float
    error: float


@stateful(stream="power_readings", key="machine")
def forecasts(reading: Reading, state: State[Model]) -> Iterator[Forecast]:
    """Predicts the power from load and warmth, and only then looks at it and learns.

    The step is that of stochastic gradient descent on the squared error.
    """
    model = state.value or Model([0.0, 0.0, 0.0], 0)
    inputs = (1.0, reading.load, (reading.ambient - 20.0) / 10.0)
    predicted = sum(w * x for w, x in zip(model.weights, inputs, strict=True))
    error = reading.power - predicted
    model.weights = [w + RATE * error * x for w, x in zip(model.weights, inputs, strict=True)]
    model.seen += 1
    state.value = model
    yield Forecast(reading.machine, model.seen, reading.at, predicted, reading.power, error)
