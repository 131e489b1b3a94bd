"""Tables of the command: the data are read as the background's types, or a cell is named."""

import io

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, VotingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, cli
from skattr._files import csv_files
from skattr._files.cells import read_as
from skattr._files.tables import read_background, read_data
from skattr._levels import known_levels, model_columns
from tests.helpers.lanes import quickly

NO_LEVELS: dict = {}


def write(folder, name, text, encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return str(path)


def background_of(folder, text, levels=NO_LEVELS, names=None):
    return read_background(write(folder, "train.csv", text), None, names, levels).frame


def same(found, wanted):
    pd.testing.assert_series_equal(found, wanted, check_names=False, check_index=False)


# A CSV background: as pandas infers it ----------------------------------------------------------

CELLS = {
    "integers": ["3", "-1", "007"],
    "integers with a hole": ["3", "", "7"],
    "large integers": ["9223372036854775807", "1", "2"],
    "numbers": ["0.1", "2", "1e-3"],
    "numbers with holes": ["0.1", "NA", "inf"],
    "booleans": ["True", "False", "TRUE"],
    "booleans with a hole": ["True", "", "False"],
    "text": ["a", "b", "c d"],
    "text with a hole": ["a", "", "NA"],
    "text and numbers": ["a", "1", "2.5"],
    "booleans and text": ["True", "x", "False"],
    "dates": ["2024-01-31", "2024-02-01", "2023-12-31"],
    "nothing": ["", "", ""],
}


@pytest.mark.parametrize("name", CELLS)
def test_a_background_is_what_pandas_reads(name, tmp_path):
    text = "".join(f"{cell},{i}\n" for i, cell in enumerate(["column", *CELLS[name]]))
    text = text.replace("column,0", "column,number", 1)
    wanted = pd.read_csv(io.StringIO(text))
    pd.testing.assert_frame_equal(background_of(tmp_path, text), wanted)


MORE_CELLS = {
    "spaces": [" 1", "2 ", "3"],
    "booleans and numbers": ["1", "0", "True"],
    "infinite": ["inf", "-Infinity", "2"],
    "too large for float64": ["1e400", "2"],
    "too large for int64": ["18446744073709551615", "99999999999999999999"],
    "large with a hole": ["9007199254740993", "", "5"],
    "large with a fraction": ["9007199254740993", "0.5"],
    "many digits": ["0.1000000000000000055511151231257827", "3.14159265358979312"],
    "holes only": ["", "NA"],
    "leading zeros": ["007", "+4", "-0"],
}


@pytest.mark.parametrize("cells", [*CELLS.values(), *MORE_CELLS.values()])
def test_what_the_parser_finds_is_what_the_text_says(cells, tmp_path, monkeypatch):
    text = "a,b\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells))
    path = write(tmp_path, "test.csv", text)
    like = pd.DataFrame({"a": [0.5, 1.0], "b": [1, 2]})

    def results():
        found = []
        for call in (
            lambda: read_background(path, None, ["a", "b"], NO_LEVELS),
            lambda: read_data(path, None, NO_LEVELS, like),
            lambda: read_data(path, None, NO_LEVELS, like.astype({"a": int})),
            lambda: read_data(path, None, NO_LEVELS, like.astype({"a": bool})),
        ):
            try:
                found.append(call().frame)
            except ValueError as error:
                found.append(str(error))
        return found

    fast = results()
    monkeypatch.setattr(csv_files, "_is_clean", lambda column: False)
    for one, other in zip(fast, results(), strict=True):
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
        else:
            pd.testing.assert_frame_equal(one, other)


# Data: as the background ------------------------------------------------------------------------

HOLE = np.nan
FITS = {
    # background's column, the data's cells, and what they are
    "booleans": ([True, False], ["True", "true"], [True, True]),
    "booleans with holes": (
        pd.Series([True, HOLE, False], dtype=object),
        ["True", "False"],
        pd.Series([True, False], dtype=object),
    ),
    "booleans, holes in the data only": (
        [True, False],
        ["True", ""],
        pd.Series([True, HOLE], dtype=object),
    ),
    "nullable booleans": (
        pd.Series([True, None], dtype="boolean"),
        ["False", ""],
        pd.Series([False, None], dtype="boolean"),
    ),
    "integers": ([1, 2], ["3", "4"], [3, 4]),
    "integers of one byte": (
        pd.Series([1, 2], dtype="int8"),
        ["3", "4"],
        pd.Series([3, 4], dtype="int8"),
    ),
    "integers that do not fit in one byte": (
        pd.Series([1, 2], dtype="int8"),
        ["3", "400"],
        [3, 400],
    ),
    "a fraction among integers": ([1, 2], ["3", "2.6"], [3.0, 2.6]),
    "a hole among integers": ([1, 2], ["3", ""], [3.0, HOLE]),
    "nullable integers": (
        pd.Series([1, None], dtype="Int64"),
        ["9007199254740993", ""],
        pd.Series([9007199254740993, None], dtype="Int64"),
    ),
    "numbers that look like integers": ([1.5, 2.0], ["3", "4"], [3.0, 4.0]),
    "numbers": ([1.5, HOLE], ["0.1", "-inf"], [0.1, -np.inf]),
    "short numbers": (
        pd.Series([1.5, 2.5], dtype="float32"),
        ["0.1", "7"],
        pd.Series([0.1, 7], dtype="float32"),
    ),
    "text that looks like numbers": (["a", "02"], ["01", "1.50"], ["01", "1.50"]),
    "text that looks like booleans": (["True", "maybe"], ["True", "False"], ["True", "False"]),
    "text with holes": (["a", None], ["NA", "b"], [None, "b"]),
    "objects with None": (
        pd.Series(["a", None], dtype=object),
        ["", "b"],
        pd.Series([None, "b"], dtype=object),
    ),
    "categories": (
        pd.Categorical(["a", "b"], ["b", "a"], ordered=True),
        ["a", ""],
        pd.Categorical(["a", None], ["b", "a"], ordered=True),
    ),
    "a category that is new": (
        pd.Categorical(["a", "b"]),
        ["c", "a"],
        pd.Categorical(["c", "a"], ["a", "b", "c"]),
    ),
    "categories of integers": (
        pd.Categorical([2, 1]),
        ["1", "2"],
        pd.Categorical([1, 2]),
    ),
    "categories of text that looks like integers": (
        pd.Categorical(["01", "1"]),
        ["01", "1"],
        pd.Categorical(["01", "1"]),
    ),
    "categories of booleans": (
        pd.Categorical([True, False, None]),
        ["True", ""],
        pd.Categorical([True, None], [False, True]),
    ),
    "dates": (
        pd.to_datetime(["2024-01-01", "2024-01-02"]),
        ["2024-03-31", ""],
        pd.Series(pd.to_datetime(["2024-03-31", None])),
    ),
    "dates with a zone": (
        pd.to_datetime(["2024-01-01", "2024-01-02"]).tz_localize("Europe/Paris"),
        ["2024-03-31T10:00:00+00:00", ""],
        pd.Series(pd.to_datetime(["2024-03-31 12:00", None]).tz_localize("Europe/Paris")),
    ),
    "durations": (
        pd.to_timedelta(["1 days", "2 days"]),
        ["3 days", ""],
        pd.Series(pd.to_timedelta(["3 days", None])),
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_data_are_read_as_the_background(name, tmp_path):
    like, cells, wanted = FITS[name]
    background = pd.DataFrame({"a": pd.Series(like), "b": 0})
    text = "b,a\n" + "".join(f"0,{cell}\n" for cell in cells)
    found = read_data(write(tmp_path, "test.csv", text), None, NO_LEVELS, background).frame
    assert list(found) == ["a", "b"]
    wanted = pd.Series(wanted)
    if wanted.dtype.kind == "M":
        wanted = wanted.astype(background["a"].dtype)
    same(found["a"], wanted)


@pytest.mark.parametrize("name", [name for name in FITS if "duration" not in name])
def test_parquet_data_are_read_as_the_background(name, tmp_path):
    """A typed file that holds the values wanted gives the same as text does."""
    pytest.importorskip("pyarrow")
    like, _, wanted = FITS[name]
    background = pd.DataFrame({"a": pd.Series(like)})
    wanted = pd.Series(wanted)
    if wanted.dtype.kind == "M":
        wanted = wanted.astype(background["a"].dtype)
    path = tmp_path / "test.parquet"
    wanted.to_frame("a").to_parquet(path)
    found = read_data(str(path), None, NO_LEVELS, background).frame["a"]
    same(found, wanted)


MISFITS = {
    "booleans": ([True, False], ["True", "1"], "'1' is not True or False"),
    "booleans with holes": (pd.Series([True, HOLE], dtype=object), ["True", "yes"], "'yes' is not"),
    "integers": ([1, 2], ["1", "two"], "'two' is not a number"),
    "a hole among integers that are too large": (
        [1, 2],
        ["", "9007199254740993"],
        "beyond 2**53",
    ),
    "numbers": ([1.5, 2.5], ["1.5", "1_000"], "'1_000' is not a number"),
    "decimal commas": ([1.5, 2.5], ["1.5", '"1,5"'], "'1,5' is not a number"),
    "dates": (pd.to_datetime(["2024-01-01"] * 2), ["2024-01-01", "31/12/2024"], "is not a date"),
    "zones": (
        pd.to_datetime(["2024-01-01"] * 2),
        ["2024-01-01", "2024-01-01T00:00:00+01:00"],
        "is not a date",
    ),
    "durations": (pd.to_timedelta(["1 days"] * 2), ["1 days", "long"], "is not a duration"),
    "categories of integers": (pd.Categorical([2, 1]), ["1", "x"], "'x' is not a number"),
    "categories of booleans": (pd.Categorical([True, False]), ["True", "x"], "is not True or"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_named_with_row_and_column(name, tmp_path):
    like, cells, words = MISFITS[name]
    background = pd.DataFrame({"a b": pd.Series(like), "b": 0})
    text = "a b,b,key\n" + "".join(f"{cell},0,r{i}\n" for i, cell in enumerate(cells))
    path = write(tmp_path, "test.csv", text)
    with pytest.raises(ValueError) as error:
        read_data(path, None, NO_LEVELS, background)
    assert f"{path}: row 1, column 'a b': " in str(error.value) and words in str(error.value)
    with pytest.raises(ValueError, match="row 'r1', column 'a b'"):
        read_data(path, "key", NO_LEVELS, background)


@pytest.mark.parametrize(
    ("like", "column"),
    [
        (["a", "b"], [None, 1]),
        ([True, False], [None, 1.0]),
        ([1.0, 2.0], [None, pd.Timestamp("2024-01-01")]),
        (pd.to_datetime(["2024-01-01"]), [None, 3]),
        (pd.to_datetime(["2024-01-01"]), [None, pd.Timestamp("2024-01-01", tz="UTC")]),
        (["a", "b"], pd.Categorical([None, 1])),
    ],
)
def test_typed_columns_of_another_kind_are_named(like, column):
    with pytest.raises(ValueError, match=r"row 1, column 'a': .* is not .*, as this column is in"):
        read_as(pd.Series(column, name="a"), pd.Series(like, name="a"), "test.parquet")


@given(
    st.lists(st.floats(allow_nan=False), min_size=1),
    st.sampled_from([[1.5, 2.0], [1.5, None]]),
)
def test_every_float_comes_back(numbers, like):
    cells = pd.Series([repr(number) for number in numbers], dtype=object)
    found = read_as(cells, pd.Series(like), "test.csv")
    np.testing.assert_array_equal(found.to_numpy(), numbers)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_every_integer_comes_back(numbers):
    cells = pd.Series([str(number) for number in numbers], dtype=object)
    found = read_as(cells, pd.Series([1, 2]), "test.csv")
    assert found.dtype == np.int64 and found.tolist() == numbers


def test_a_background_without_values_leaves_the_data_as_they_look(tmp_path):
    background = background_of(tmp_path, "a,b\n,1\n,2\n")
    path = write(tmp_path, "test.csv", "a,b\n5,1\n,2\n")
    found = read_data(path, None, NO_LEVELS, background).frame
    same(found["a"], pd.Series([5.0, np.nan]))


# What the model knows ---------------------------------------------------------------------------


def frame(**columns):
    return pd.DataFrame(columns)


X = frame(
    code=["01", "1", "02", "2"] * 5,
    none=["None", "some", "NA", "None"] * 5,
    day=pd.to_datetime(["2024-01-01", "2024-01-02"] * 10),
    number=np.arange(20.0),
)
Y = np.arange(20.0) ** 2
ENCODED = [
    (OneHotEncoder(), ["code"]),
    (make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()), ["none"]),
    (OrdinalEncoder(), ["day"]),
    (StandardScaler(), ["number"]),
]
KNOWING = {
    "pipeline": lambda: make_pipeline(make_column_transformer(*ENCODED), Ridge()),
    "search": lambda: GridSearchCV(
        make_pipeline(make_column_transformer(*ENCODED), Ridge()), {"ridge__alpha": [1]}, cv=2
    ),
    "votes": lambda: VotingRegressor(
        [("a", make_pipeline(make_column_transformer(*ENCODED), LinearRegression()))]
    ),
}


@pytest.mark.parametrize("name", quickly(KNOWING, ["pipeline"]))
def test_levels_that_encoders_learned_are_read_as_they_are(name, tmp_path, capsys):
    model = KNOWING[name]().fit(X, Y)
    levels = known_levels(model)
    assert sorted(levels) == ["code", "day", "none"]
    text = X.to_csv(index=False)
    found = background_of(tmp_path, text, levels, list(X))
    assert found["code"].tolist() == X["code"].tolist()
    assert found["none"].tolist() == X["none"].tolist()
    assert found["day"].tolist() == X["day"].tolist()
    joblib.dump(model, tmp_path / "model.joblib")
    path = write(tmp_path, "test.csv", X[:4].to_csv(index=False))
    files = ["--model", str(tmp_path / "model.joblib"), "--data", path, "--allow-pickle"]
    files += ["--background", str(tmp_path / "train.csv")]
    assert cli.main(["explain", *files, "--measure", "partial_dependence"]) == 0
    values = pd.read_csv(io.StringIO(capsys.readouterr().out))[list(X)]
    wanted = MeasureExplainer(model, "partial_dependence").fit(X).explain(X[:4]).to_frame()
    np.testing.assert_allclose(values, wanted)


def test_a_step_that_makes_text_of_numbers_says_nothing_of_raw_columns():
    texts = make_pipeline(FunctionTransformer(_as_text), OneHotEncoder())
    raw = frame(a=[1.0, 2.0], b=[0.0, 1.0])
    model = make_pipeline(make_column_transformer((texts, ["a"])), Ridge()).fit(raw, [0, 1])
    assert known_levels(model) == {}


def _as_text(X):
    return X.astype(str)


def test_histogram_boosting_knows_its_categories():
    raw = X[["number", "code"]].astype({"code": "category"})
    model = HistGradientBoostingRegressor(max_iter=2).fit(raw, Y)
    levels = known_levels(model)
    assert list(levels) == ["code"] and list(levels["code"]) == ["01", "02", "1", "2"]


def test_catboost_takes_text(tmp_path):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(n_estimators=2, verbose=0, allow_writing_files=False)
    model.fit(X[["number", "code"]], Y, cat_features=["code"])
    found = background_of(tmp_path, "number,code\n1,01\n2,1\n", known_levels(model))
    assert found["code"].tolist() == ["01", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosters_that_need_categories_get_them(library, tmp_path, capsys):
    module = pytest.importorskip(library)
    raw = X[["number", "code"]].astype({"code": "category"})
    if library == "lightgbm":
        model = module.LGBMRegressor(n_estimators=3, min_child_samples=2, verbose=-1)
    else:
        model = module.XGBRegressor(n_estimators=3, enable_categorical=True)
    model.fit(raw, Y)
    assert list(known_levels(model)["code"].categories) == ["01", "02", "1", "2"]
    found = background_of(tmp_path, raw.to_csv(index=False), known_levels(model), list(raw))
    pd.testing.assert_frame_equal(found, raw, check_categorical=False)
    explainer = MeasureExplainer(model, "main_effect").fit(found)
    wanted = MeasureExplainer(model, "main_effect").fit(raw).explain(raw)
    np.testing.assert_array_equal(explainer.explain(raw).values, wanted.values)


def test_columns_that_a_model_takes(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    raw = frame(**{"the area": np.arange(50.0), "n": np.arange(50.0) % 7})
    model = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1)
    assert model_columns(model.fit(raw.to_numpy(), raw["n"])) == 2
    assert model_columns(model.booster_) == 2
    names = model_columns(model.fit(raw, raw["n"]))  # lightgbm puts _ for spaces
    path = write(tmp_path, "train.csv", raw.assign(y=1).to_csv(index=False))
    table = read_background(path, None, names, known_levels(model))
    pd.testing.assert_frame_equal(table.frame, raw)
    assert table.ignored == ["y"]
    assert model_columns(Ridge().fit(raw, raw["n"])) == ["the area", "n"]
    assert model_columns(Ridge().fit(raw.to_numpy(), raw["n"])) == 2
    assert model_columns(len) is None


def test_booleans_with_holes_in_the_background(tmp_path, capsys):
    """What the command got wrong: the data's True was the text "True", an unknown level."""
    raw = frame(flag=pd.Series([True, False, None] * 6, dtype=object), n=np.arange(18.0))
    raw["flag"] = raw["flag"].where(raw["flag"].notna(), np.nan)
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((encoder, ["flag"]), remainder="passthrough")
    y = raw["n"] + 10 * (raw["flag"] == True)  # noqa: E712
    model = make_pipeline(columns, DecisionTreeRegressor(random_state=0)).fit(raw, y)
    joblib.dump(model, tmp_path / "model.joblib")
    background = write(tmp_path, "train.csv", raw.to_csv(index=False))
    data = write(tmp_path, "test.csv", raw[:2].to_csv(index=False))
    files = ["--model", str(tmp_path / "model.joblib"), "--allow-pickle", "--data", data]
    assert cli.main(["explain", *files, "--background", background]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    wanted = MeasureExplainer(model, "main_effect").fit(raw).explain(raw[:2])
    np.testing.assert_allclose(found[["flag", "n"]], wanted.to_frame())
    np.testing.assert_allclose(found["prediction"], model.predict(raw[:2]))
    assert abs(found["flag"][0] - found["flag"][1]) > 1


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("separator", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
@pytest.mark.parametrize("names", [["a", "b"], None])
def test_other_separators_are_found_and_named(separator, word, names, tmp_path):
    text = "a,b,c\n1.5,x y,2\n2,z,3\n".replace(",", separator)
    path = write(tmp_path, "train.csv", text)
    table = read_background(path, None, names, NO_LEVELS)
    assert table.notes == [f"columns are separated by {word}"]
    wanted = frame(a=[1.5, 2.0], b=["x y", "z"], c=[2, 3])
    pd.testing.assert_frame_equal(table.frame, wanted[names] if names else wanted)


def test_names_decide_which_separator_it_is(tmp_path):
    path = write(tmp_path, "train.csv", "a;x,b;y;z\n1;2,3;4;5\n")
    table = read_background(path, None, ["b;y;z"], NO_LEVELS)
    assert table.notes == [] and table.ignored == ["a;x"]


def test_decimal_commas(tmp_path):
    path = write(tmp_path, "train.csv", "a;b;c;d\n1,5;x,y;2;NA\n-2,25e3;1,5;3;0,5\n")
    table = read_background(path, None, None, NO_LEVELS)
    assert "numbers have decimal commas" in table.notes
    wanted = frame(a=[1.5, -2250.0], b=["x,y", "1,5"], c=[2, 3], d=[np.nan, 0.5])
    pd.testing.assert_frame_equal(table.frame, wanted)


def test_points_and_commas_are_not_mixed(tmp_path):
    path = write(tmp_path, "train.csv", "a;b\n1,5;1.5\n2,5;2.5\n")
    table = read_background(path, None, None, NO_LEVELS)
    assert table.notes == ["columns are separated by semicolons"]
    assert table.frame["a"].tolist() == ["1,5", "2,5"] and table.frame["b"].tolist() == [1.5, 2.5]


def test_a_mark_at_the_beginning_of_the_file(tmp_path):
    path = write(tmp_path, "train.csv", "a,b\n1,2\n", encoding="utf-8-sig")
    assert list(read_background(path, None, ["a"], NO_LEVELS).frame) == ["a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2,3\n", "the first line names 2 columns, a row has 3"),
        ("a,b\n" + "1,2\n" * 200 + "1,2,3\n", "line 202"),
        ("a,a\n1,2\n", "the columns \\['a'\\] occur in it more than once"),
    ],
)
def test_damaged_files(text, words, tmp_path):
    path = write(tmp_path, "train.csv", text)
    with pytest.raises(ValueError, match=words) as error:
        read_background(path, None, ["a"], NO_LEVELS)
    assert path in str(error.value)


def test_another_encoding_is_named(tmp_path):
    path = write(tmp_path, "train.csv", "a,b\né,2\n", encoding="latin-1")
    with pytest.raises(ValueError, match="not UTF-8"):
        read_background(path, None, ["a"], NO_LEVELS)


def test_a_separator_at_the_end_of_lines(tmp_path):
    found = background_of(tmp_path, "a,b\n1,2,\n3,4,\n")
    pd.testing.assert_frame_equal(found, frame(a=[1, 3], b=[2, 4]))


def test_names_of_rows_stay_what_they_are(tmp_path):
    path = write(tmp_path, "train.csv", "key,a\n007,1\n010,2\n")
    assert read_background(path, "key", ["a"], NO_LEVELS).frame.index.tolist() == ["007", "010"]
    path = write(tmp_path, "train.csv", "key,a\n7,1\n10,2\n")
    assert read_background(path, "key", ["a"], NO_LEVELS).frame.index.tolist() == [7, 10]


def test_parquet_keeps_its_index(tmp_path):
    pytest.importorskip("pyarrow")
    path = str(tmp_path / "train.parquet")
    table = frame(a=[1, 2]).set_axis(pd.Index(["x", "y"], name="key"))
    table.to_parquet(path)
    for index in (None, "key"):
        found = read_background(path, index, ["a"], NO_LEVELS).frame
        pd.testing.assert_frame_equal(found, table)
    with pytest.raises(ValueError, match="no column 'other' for the index; it has 'a'"):
        read_background(path, "other", ["a"], NO_LEVELS)
