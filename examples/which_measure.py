"""Which measure
=============

Which measure should I use, and what does it guarantee? For one data set and one model.

Prints the axioms of each candidate, metrics on held-out rows, and a recommendation in words.

Run it: python examples/which_measure.py
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/which_measure.png"

import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from skattr import MeasureExplainer
from skattr.axioms import check
from skattr.measures import (
    Banzhaf,
    Conditional,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Shapley,
    Uniform,
)
from skattr.metrics import deletion, faithfulness, insertion

CANDIDATES = {
    "partial dependence": PartialDependence(),
    "partial dependence, centred": PartialDependence() - Expectation(),
    "product of marginals, centred": ProductMarginal() - Expectation("product"),
    "conditional, centred": Conditional() - Expectation(),
    "uniform, centred": Uniform() - Expectation("uniform"),
    "Shapley values": Shapley(),
    "Banzhaf values": Banzhaf(),
}
WORDS = {True: "yes", False: "no", None: "?"}
ROWS = 8  # explained for the metrics

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X[["age", "bmi", "bp", "s1", "s2", "s5"]]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
forest = RandomForestRegressor(20, min_samples_leaf=5, random_state=0).fit(X_train, y_train)
background = X_train.iloc[:40]

axioms, metrics = {}, {}
for name, measure in CANDIDATES.items():
    table = check(measure, X_train)
    found = table.to_frame()
    axioms[name] = found.holds.map(WORDS)
    explainer = MeasureExplainer(forest, measure, random_state=0).fit(X_train)
    explanation = explainer.explain(X_test.iloc[:ROWS])
    start = explanation.predictions[:, None]
    away = abs(deletion(explanation, explainer, background).curves - start)
    arrives = abs(insertion(explanation, explainer, background).curves - start)
    metrics[name] = {
        "mass off the data": found.value["off_support"],
        "faithfulness": faithfulness(explanation, explainer, X_train).mean,
        "deletion moves": away.mean(),  # larger is better: important columns are removed early
        "insertion is off": arrives.mean(),  # smaller is better: important columns are put in early
    }

pd.set_option("display.width", 140, "display.max_columns", 20)
print("What each measure guarantees, whatever the model (skattr.axioms.check):\n")
print(pd.DataFrame(axioms).to_string(), end="\n\n")
print(f"On this model, {ROWS} rows it has not seen:\n")
frame = pd.DataFrame(metrics).T
print(frame.round(3).to_string(), end="\n\n")
print("Why partial dependence, not centred, breaks sensitivity:")
print(f"  {check(PartialDependence(), X_train)['sensitivity'].witness}\n")

sensitive = [name for name in frame.index if axioms[name]["sensitivity"] == "yes"]
sensitive = [name for name in sensitive if "values" not in name]  # those have no curves
on_data = frame["mass off the data"].idxmin()
told = frame.loc[sensitive, "insertion is off"].idxmin()
print("Recommendation")
print(
    f"- To say what the MODEL does with a column: {told}.\n"
    "  A column that the forest ignores gets 0, and of those with this guarantee and curves its\n"
    f"  order of columns is the best (insertion is off by {frame['insertion is off'][told]:.1f})."
)
print(
    f"- To say what a column TELLS about the prediction, others varying with it: {on_data}. Only\n"
    f"  {frame['mass off the data'][on_data]:.0%} of its mass lies where there are no data "
    f"({frame['mass off the data'][told]:.0%} for the former). A column\n"
    "  that the model ignores may get an attribution, because it tells about others."
)
print(
    "- Faithfulness asks for conditional expectations, so the conditional measure has it by\n"
    "  definition: this does not speak for it.\n"
    "- Partial dependence that is not centred ranks nothing: its values are all near the mean\n"
    "  prediction.\n"
    "- To have values that add up to the prediction (completeness): Shapley values,\n"
    '  MeasureExplainer(model, "shapley"). Interactions are shared out among their columns. There\n'
    "  is no curve, because the values of a column depend on the whole row."
)
