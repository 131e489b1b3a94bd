"""What a fitted model knows about raw columns: the levels its encoders were fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

from skattr.pieces.base import Unreadable, unwrap
from skattr.pieces.readers import lightgbm, xgboost

TOGETHER = (StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor)


def known_levels(model: Any) -> dict[Any, Any]:
    """Return column → levels, for the columns that an encoder of the model gets as they are.

    An empty array of text stands for a column that the model takes as text, whatever is in it, and
    a categorical dtype for one that has to have it.
    """
    model = unwrap(model)
    levels: dict[Any, Any] = {}
    todo = [(model, getattr(model, "feature_names_in_", None))]
    while todo:
        step, names = todo.pop()
        todo += _inside(step, names)
        if hasattr(step, "categories_") and names is not None:
            if len(names) == len(step.categories_):
                levels |= dict(zip(names, step.categories_, strict=True))
    if hasattr(model, "get_cat_feature_indices"):  # catboost takes numbers in there as their text
        names = model.feature_names_
        levels |= {names[k]: np.array([], dtype=str) for k in model.get_cat_feature_indices()}
    return levels | _categories(model)


def model_columns(model: Any) -> list[str] | int | None:
    """Return the names of the columns that a model takes, or their number if it knows no names."""
    names = getattr(model, "feature_names_in_", None)
    for attribute in ("feature_name_", "feature_names_", "feature_names"):  # of boosting libraries
        names = getattr(model, attribute, None) if names is None else names
    if names is None and hasattr(model, "feature_name"):  # lightgbm's own Booster
        names = model.feature_name()
    if names is None:
        return getattr(model, "n_features_in_", None)
    names = [str(name) for name in names]
    # what lightgbm and catboost call the columns of an array
    made_up = ([f"Column_{k}" for k in range(len(names))], [str(k) for k in range(len(names))])
    return len(names) if names in made_up else names


def _categories(model: Any) -> dict[Any, pd.CategoricalDtype]:
    """Return column → categories of a lightgbm or xgboost model, which needs them in X."""
    names = model_columns(model)
    if not isinstance(names, list):
        return {}
    for reader in (lightgbm, xgboost):
        if scales := reader.scales(model):
            try:
                front = reader.read(model, scales[0])[0].front
            except Unreadable:  # then it is evaluated
                return {}
            levels = front.categories if reader is lightgbm else front.names
            return {
                names[k]: pd.CategoricalDtype(names_of) for k, names_of in (levels or {}).items()
            }
    return {}


def _inside(step: Any, names: Any) -> list[tuple[Any, Any]]:
    """Return the steps that get raw columns inside a step, each with the names of its columns."""
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            # these leave values what they are
            if inner not in (None, "passthrough") and not isinstance(inner, SimpleImputer):
                return [(inner, names)]
    elif isinstance(step, ColumnTransformer):
        names = getattr(step, "feature_names_in_", names)
        if names is not None:
            places = step._transformer_to_input_indices
            return [
                (inner, [names[k] for k in places.get(name, [])])
                for name, inner, _ in step.transformers_
            ]
    elif isinstance(step, FeatureUnion):
        return [(inner, names) for _, inner in step.transformer_list]
    elif isinstance(step, TOGETHER):
        return [(inner, names) for inner in step.estimators_]
    elif isinstance(step, TransformedTargetRegressor):
        return [(step.regressor_, names)]
    elif getattr(step, "_preprocessor", None) is not None and names is not None:
        # HistGradientBoosting encodes its categories itself
        categorical = [
            name for name, is_own in zip(names, step.is_categorical_, strict=True) if is_own
        ]
        return [(step._preprocessor.named_transformers_["encoder"], categorical)]
    return []
