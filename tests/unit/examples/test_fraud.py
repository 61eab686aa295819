"""The numbers in the fraud example are those that its training gives."""

from __future__ import annotations

import json
import runpy

import pytest

from play import EXAMPLES

FRAUD = EXAMPLES / "fraud"


def test_the_committed_model_is_the_trained_one():
    training = runpy.run_path(str(FRAUD / "train.py"))
    function = runpy.run_path(str(FRAUD / "functions" / "fraud.py"))
    trained = training["train"]()
    committed = json.loads(function["MODEL"])
    assert training["numbers"](trained).keys() == committed.keys()
    for name, values in training["numbers"](trained).items():
        assert committed[name] == pytest.approx(values, rel=1e-3)
    payments = [[20.0, 12, 3.0, False], [900.0, 3, 800.0, True]]
    scores = function["model"]().predict_proba(payments)[:, 1]
    assert scores == pytest.approx(trained.predict_proba(payments)[:, 1], rel=1e-3)
    assert scores[0] < 0.1 and scores[1] > 0.9
