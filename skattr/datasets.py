"""A small table of mixed columns for examples and tests: `load_flats`, and how it was made."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

__all__ = ["load_flats", "make_flats"]

ENERGY = pd.CategoricalDtype(list("ABCDEFG"), ordered=True)
DISTRICTS = {  # how common a district is, and how dear: the last three are rare
    "Station": (0.17, 0.95),
    "Old Town": (0.15, 1.30),
    "Riverside": (0.13, 1.20),
    "Mill": (0.12, 0.90),
    "Gardens": (0.11, 1.05),
    "Hillside": (0.10, 1.15),
    "Market": (0.08, 1.10),
    "University": (0.06, 1.10),
    "Harbour": (0.05, 0.85),
    "Parkside": (0.017, 1.25),
    "Lakeshore": (0.008, 1.45),
    "Quarry": (0.005, 0.75),
}
HEATING = {
    "gas": (0.5, 0.0),
    "communal": (0.25, 25.0),
    "electric": (0.15, -40.0),
    "oil": (0.1, -15.0),
}


def load_flats() -> tuple[pd.DataFrame, pd.Series]:
    """Return 600 flats for rent: X with eight columns of mixed types, and y, the monthly rent.

    The data are synthetic, made by `make_flats`, and come under the licence of this package. The
    columns, and what is missing:

    - `area`: float, square metres, 6 % missing;
    - `rooms`: int;
    - `district`: strings, twelve of them, three of which are rare;
    - `heating`: strings, None in 12 % of the rows;
    - `balcony`: bool;
    - `built`: float, a year, 10 % missing;
    - `listed`: datetime64, a day of 2022 to 2024;
    - `energy`: ordered category, A (best) to G.

    Returns
    -------
    X : DataFrame (600, 8)
        The columns above.
    y : Series (600,)
        `rent`.

    Examples
    --------
    >>> from skattr.datasets import load_flats
    >>> X, y = load_flats()
    >>> X.shape, y.name
    ((600, 8), 'rent')
    >>> X["energy"].cat.categories.tolist()
    ['A', 'B', 'C', 'D', 'E', 'F', 'G']
    """
    with resources.files("skattr").joinpath("data", "flats.csv").open(encoding="utf-8") as file:
        # nothing but an empty cell is missing, whatever words pandas takes for it
        table = pd.read_csv(file, keep_default_na=False, na_values=[""])
    return _with_types(table)


def make_flats(n: int = 600, random_state: Any = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Make flats like those of `load_flats`, which are these with the default arguments.

    A flat has a size, a district, a year and an energy class, the older the worse. The rent is

        (180 + 9.5 area) · district + 4 (100 - area)₊ + 25 √rooms + balcony + heating + age
        - 18 (energy, A = 0) + 0.12 (days since 2022) + noise,

    where a balcony adds 30, in Old Town and Riverside 70, and age is dear at both ends: it adds
    0.012 (built - 1975)². Cells are then emptied at random, with no regard to the rent.

    The bundled file was written by

        X, y = make_flats()
        X.assign(rent=y).to_csv("skattr/data/flats.csv", index=False)

    Parameters
    ----------
    n : int, default=600
        Number of rows.
    random_state : int, RandomState or None, default=0
        Seed.

    Returns
    -------
    X : DataFrame (n, 8)
        As in `load_flats`.
    y : Series (n,)
        `rent`.

    Examples
    --------
    >>> from skattr.datasets import make_flats
    >>> X, y = make_flats(5000, random_state=1)
    >>> X.shape
    (5000, 8)
    """
    rng = check_random_state(random_state)  # a RandomState: its stream is the same for ever
    area = np.round(np.exp(rng.normal(4.15, 0.35, n)), 1)
    rooms = np.clip(np.round(area / 26 + rng.normal(0, 0.6, n)), 1, 6).astype(np.int64)
    district = rng.choice(list(DISTRICTS), n, p=[share for share, _ in DISTRICTS.values()])
    heating = rng.choice(list(HEATING), n, p=[share for share, _ in HEATING.values()])
    balcony = rng.uniform(size=n) < 0.25 + 0.1 * rooms
    built = np.round(1900 + 122 * rng.beta(1.6, 1.1, n))
    day = rng.randint(0, 3 * 365, n, dtype=np.int64)
    energy = np.clip(np.round((2022 - built) / 20 + rng.normal(0, 1.2, n)), 0, 6).astype(np.int64)
    dear = np.array([DISTRICTS[name][1] for name in district])
    rent = (180 + 9.5 * area) * dear + 4 * np.maximum(100 - area, 0) + 25 * np.sqrt(rooms)
    rent += balcony * np.where(np.isin(district, ["Old Town", "Riverside"]), 70, 30)
    rent += np.array([HEATING[name][1] for name in heating]) + 0.012 * (built - 1975) ** 2
    rent += -18 * energy + 0.12 * day + rng.normal(0, 35, n)
    table = pd.DataFrame(
        {
            "area": np.where(rng.uniform(size=n) < 0.06, np.nan, area),
            "rooms": rooms,
            "district": district.tolist(),
            "heating": np.where(rng.uniform(size=n) < 0.1, None, heating.astype(object)),
            "balcony": balcony,
            "built": np.where(rng.uniform(size=n) < 0.09, np.nan, built),
            "listed": np.datetime64("2022-01-01") + day.astype("timedelta64[D]"),
            "energy": pd.Categorical.from_codes(energy, dtype=ENERGY),
            "rent": np.round(rent),
        }
    )
    return _with_types(table)


def _with_types(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Give every column its dtype, whatever pandas made of it, and take the rent away."""
    heating = table["heating"].astype(object)
    typed = table.assign(
        heating=heating.where(heating.notna(), None),
        built=table["built"].astype(np.float64),
        listed=pd.to_datetime(table["listed"], format="%Y-%m-%d").astype("datetime64[ns]"),
        energy=table["energy"].astype(ENERGY),
    )
    rent = typed.pop("rent").astype(np.float64)
    return typed, rent
