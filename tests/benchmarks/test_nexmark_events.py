"""The events of NEXMark: how many of each kind, what they refer to, and when they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from benchmarks.nexmark.events import (
    ACTIVE,
    FIRST_ID,
    HOT,
    IN_FLIGHT,
    LEAD,
    START,
    Events,
    Load,
    chunks,
    events,
)
from benchmarks.nexmark.files import write_files

COUNT = 100_000
RATE = 10_000


@pytest.fixture(scope="module")
def made() -> Events:
    return events(Load(RATE), 0, COUNT)


def numbers(rows: pa.Table, column: str) -> npt.NDArray[np.int64]:
    array: npt.NDArray[np.int64] = rows.column(column).cast(pa.int64()).to_numpy()
    return array


def newest(made: Events, kind: str, rows: pa.Table) -> npt.NDArray[np.int64]:
    """Return the greatest id of a kind at the time of each row."""
    times = numbers(getattr(made, kind), "date_time")
    return FIRST_ID - 1 + np.searchsorted(times, numbers(rows, "date_time"), side="right")


def test_one_person_and_three_auctions_come_with_46_bids(made: Events) -> None:
    assert [len(rows) for rows in made] == [COUNT // 50, COUNT // 50 * 3, COUNT // 50 * 46]


def test_ids_count_up(made: Events) -> None:
    for rows in (made.person, made.auction):
        assert (numbers(rows, "id") == FIRST_ID + np.arange(len(rows))).all()


def test_times_are_ordered_and_steady(made: Events) -> None:
    for rows in made:
        assert (np.diff(numbers(rows, "date_time")) >= 0).all()
    everything = np.sort(np.concatenate([numbers(rows, "date_time") for rows in made]))
    assert everything[0] == START
    assert (np.bincount((everything - START) // 1_000_000) == RATE).all()
    assert (everything % 1_000 == 0).all()


def test_references_are_to_new_persons_and_auctions_or_the_next_few(made: Events) -> None:
    for rows, column, kind, old in (
        (made.auction, "seller", "person", ACTIVE),
        (made.bid, "bidder", "person", ACTIVE),
        (made.bid, "auction", "auction", IN_FLIGHT),
    ):
        ids, last = numbers(rows, column), newest(made, kind, rows)
        assert (ids >= np.maximum(FIRST_ID, last - old - HOT)).all()
        assert (ids <= last + LEAD).all()
        assert (ids > last).any()


@pytest.mark.parametrize(
    ("kind", "column", "of", "place", "share"),
    [
        ("auction", "seller", "person", 0, 3 / 4),
        ("bid", "bidder", "person", 1, 3 / 4),
        ("bid", "auction", "auction", 0, 1 / 2),
    ],
)
def test_hot_ones_have_their_share(
    made: Events, kind: str, column: str, of: str, place: int, share: float
) -> None:
    rows = getattr(made, kind)
    hot = (newest(made, of, rows) - FIRST_ID) // HOT * HOT + FIRST_ID + place
    found = (numbers(rows, column) == hot).mean()
    assert share - 0.02 < found < share + 0.03


def test_auctions_are_open_as_long_as_it_takes_for_100_others(made: Events) -> None:
    opened = numbers(made.auction, "expires") - numbers(made.auction, "date_time")
    assert opened.min() >= 1_000
    assert opened.mean() / 1_000_000 == pytest.approx(IN_FLIGHT * 50 / 3 / RATE, rel=0.02)


def test_texts_have_the_form_of_the_model(made: Events) -> None:
    for rows, average in zip(made, (200, 500, 100), strict=True):
        fixed = 8 * sum(not pa.types.is_string(kind) for kind in rows.schema.types)
        extra = "extra" if rows is made.bid else None
        texts = [extra] if extra else [f.name for f in rows.schema if pa.types.is_string(f.type)]
        length = sum(pc.mean(pc.binary_length(rows.column(name))).as_py() for name in texts)
        assert length + fixed == pytest.approx(average, rel=0.1)
    url = r"^https://auctions\.example/[a-z]{3,5}/[a-z]{3,5}/[a-z]{3,5}/item\.htm\?query=1"
    assert pc.all(pc.match_substring_regex(made.bid.column("url"), url)).as_py()
    numbered = pc.match_substring_regex(made.bid.column("url"), r"&channel_id=\d+$")
    assert pc.mean(numbered.cast(pa.float64())).as_py() == pytest.approx(0.45, abs=0.02)
    card = r"^\d{4} \d{4} \d{4} \d{4}$"
    assert pc.all(pc.match_substring_regex(made.person.column("credit_card"), card)).as_py()


def test_events_do_not_depend_on_how_they_are_cut(made: Events) -> None:
    parts = list(chunks(Load(RATE), COUNT, 33_333))
    assert len(parts) == 4
    for place, rows in enumerate(made):
        assert pa.concat_tables(part[place] for part in parts).equals(rows)


def test_another_seed_gives_other_events(made: Events) -> None:
    other = events(Load(RATE, seed=2), 0, COUNT)
    assert not any(one.equals(two) for one, two in zip(made, other, strict=True))


def test_files_have_the_events(made: Events, tmp_path: Path) -> None:
    write_files(tmp_path, Load(RATE), 20_000, 7_000)
    for name, rows in made._asdict().items():
        written = ds.dataset(sorted((tmp_path / name).iterdir())).to_table()
        assert written.equals(rows.slice(0, len(written)))
        assert len(written) == len(rows) // 5
    assert (tmp_path / "side_input.csv").exists()
