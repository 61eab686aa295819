"""The trained model as a function of SQL."""

import json
from functools import cache
from typing import Annotated

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from mainstem import function

# What the model has learned, written by train.py. It is a part of the function, so it goes with it
# into the catalog, to every worker, and into the function's version.
MODEL = """{
"mean": [106.8389725, 13.29775, 129.329325, 0.42625],
"scale": [193.167533977, 6.203192318, 347.438243221, 0.494531028],
"coefficients": [2.447983892, -0.808981986, 9.372420211, 1.118311456],
"intercept": [-0.791449922]
}"""


@cache
def model() -> Pipeline:
    """The scikit-learn model, put together once in each worker."""
    learned = {name: np.array(values) for name, values in json.loads(MODEL).items()}
    scaler, regression = StandardScaler(), LogisticRegression()
    scaler.mean_, scaler.scale_ = learned["mean"], learned["scale"]
    regression.coef_, regression.intercept_ = learned["coefficients"][None], learned["intercept"]
    regression.classes_ = np.array([False, True])
    return make_pipeline(scaler, regression)


@function(vectorised=True)
def fraud_score(
    amount: Annotated[pa.Array, "double"],
    hour: Annotated[pa.Array, "int"],
    km_from_home: Annotated[pa.Array, "double"],
    new_card: Annotated[pa.Array, "boolean"],
) -> Annotated[pa.Array, "double"]:
    """The probability that a payment is a fraud; a whole batch of payments in one call."""
    columns = (amount, hour, km_from_home, new_card)
    payments = np.column_stack([c.to_numpy(zero_copy_only=False).astype(float) for c in columns])
    return pa.array(model().predict_proba(payments)[:, 1])
