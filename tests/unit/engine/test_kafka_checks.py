"""The options of Kafka's streams and sinks are checked without a broker, all mistakes at once."""

from __future__ import annotations

import pytest

import muntin
from muntin.engine.script_check import Scope, ScriptCheck
from muntin.errors import SqlError
from muntin.model.allowed_paths import AllowedPaths

COLUMNS = "(k INT, v DOUBLE, ts TIMESTAMP)"
KAFKA = "format = 'kafka', servers = 'one:9092, [::1]:9093', topic = 'orders'"
A = f"CREATE STREAM A {COLUMNS} WITH ({KAFKA}, value = 'json');"
Q = "CREATE QUERY q AS SELECT k, v FROM A WINDOW 1 SECOND"
SINK = "sink = 'kafka', servers = 'one:9092', topic = 'out'"


def found(text: str) -> list[str]:
    """Return the mistakes of a script as lines, without their places."""
    return [error.fact + ". " + error.hint for error in ScriptCheck(Scope()).read(text)]


SOUND = [
    A,
    A.replace("value = 'json'", "VALUE = 'CSV', sep = ';', slack = '1 second'"),
    A.replace("value = 'json'", "value = 'avro', kafka.security.protocol = 'SSL'"),
    A.replace("'json'", "'json', key = 'K', startingOffsets = 'latest', dead_letter = 'dead'"),
    A.replace("'json'", "'json', maxOffsetsPerTrigger = 100, failOnDataLoss = 'false'"),
    (
        f"CREATE STREAM A (v INT[], trace VARCHAR, _topic VARCHAR, _partition INT, _offset BIGINT, "
        f"_timestamp TIMESTAMP) WITH ({KAFKA}, value = 'json', headers = 'trace', "
        "time = '_timestamp')"
    ),
    f"{A} {Q} WITH ({SINK}, kafka.acks = 'all', sharing = 'off')",
    f"{A} {Q} EMIT CHANGES WITH ({SINK}, key = 'k, V', op = 'tombstone', value = 'csv')",
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_declarations_have_no_mistakes(text: str) -> None:
    assert found(text) == []


STREAMS = [
    ("format = 'kafka'", ["has no servers", "has no topic", "has no value"]),
    (
        f"{KAFKA}, value = 'jsn', servrs = 'x'",
        ["cannot be 'jsn'. Did you mean 'json'", "'servrs'. Did you mean 'servers'"],
    ),
    (
        f"{KAFKA}, value = 'json', subscribe = 'x', kafka.bootstrap.servers = 'y'",
        ["'subscribe', which cannot be set. Use topic", "Use servers"],
    ),
    (
        f"{KAFKA}, value = 'json', kafka.enable.auto.commit = 'true'",
        ["'kafka.enable.auto.commit', which cannot be set. Leave it out"],
    ),
    (
        "format = 'kafka', servers = 'one', topic = 'a b', value = 'json'",
        ["servers of stream A cannot be 'one'. Give host:port", "topic of stream A cannot be"],
    ),
    (
        f"{KAFKA}, value = 'json', key = 'x', headers = 'k, y'",
        ["key of stream A names the column 'x'", "headers of stream A names the column 'y'"],
    ),
    (f"{KAFKA}, value = 'json', key = 'k, v'", ["several key columns"]),
    (f"{KAFKA}, value = 'json', sep = ';'", ["no option 'sep'"]),
    (
        f"{KAFKA}, value = 'json', maxOffsetsPerTrigger = 'x', startingOffsets = 'now'",
        ["maxOffsetsPerTrigger of stream A cannot be 'x'", "startingOffsets of stream A cannot"],
    ),
    (f"{KAFKA}, value = 'json', failOnDataLoss = 'no'", ["It is true or false"]),
    (f"{KAFKA}, value = 'json', avroSchema = '{{}}'", ["has an avroSchema, but its values are"]),
    (f"{KAFKA}, value = 'avro', avroSchema = 'x'", ["is not a JSON object"]),
]


@pytest.mark.parametrize(("options", "mistakes"), STREAMS)
def test_every_mistake_of_a_stream_is_reported(options: str, mistakes: list[str]) -> None:
    lines = found(f"CREATE STREAM A {COLUMNS} WITH ({options})")
    assert len(lines) == len(mistakes), lines
    for mistake, line in zip(sorted(mistakes), lines, strict=True):
        assert any(mistake in each for each in lines), (mistake, line)


@pytest.mark.parametrize(
    ("columns", "value", "mistake"),
    [
        ("_offset INT", "json", "the column _offset of stream A has type int32. Declare it as BIG"),
        ("x INT[]", "csv", "which csv does not have"),
        ("x INT[]", "avro", "the schema of the messages is needed. Add avroSchema"),
        ("x DECIMAL(9, 2)", "avro", "the schema of the messages is needed"),
    ],
)
def test_columns_have_to_fit_the_messages(columns: str, value: str, mistake: str) -> None:
    script = f"CREATE STREAM A ({columns}, ts TIMESTAMP) WITH ({KAFKA}, value = '{value}')"
    (line,) = found(script)
    assert mistake in line


SINKS = [
    ("sink = 'kafka'", ["has no servers", "has no topic"]),
    (f"{SINK}, key = 'kk'", ["key of the kafka sink of query q names the column 'kk'"]),
    (f"{SINK}, op = 'tomb'", ["op of the kafka sink of query q cannot be 'tomb'. Did you mean"]),
    (f"{SINK}, op = 'tombstone', key = 'k'", ["the query never removes a result"]),
    (f"{SINK}, value = 'xml'", ["value of the kafka sink of query q cannot be 'xml'"]),
    (f"{SINK}, path = 'out'", ["has a path, which has no effect"]),
    (SINK.replace("'out'", "'a, b'"), ["has several topics"]),
    (f"{SINK}, tpic = 'x'", ["there is no setting 'tpic'. Did you mean 'topic'?"]),
    ("topic = 'x'", ["has the option 'topic', which only sink = 'kafka' has"]),
    ("sink = 'console', kafka.acks = '1'", ["'kafka.acks', which only sink = 'kafka' has"]),
]


@pytest.mark.parametrize(("options", "mistakes"), SINKS)
def test_every_mistake_of_a_sink_is_reported(options: str, mistakes: list[str]) -> None:
    lines = found(f"{A} {Q} WITH ({options})")
    assert len(lines) == len(mistakes), lines
    for mistake in mistakes:
        assert any(mistake in each for each in lines), lines


def test_tombstones_need_a_key_and_csv_has_no_lists() -> None:
    lines = found(f"{A} {Q} EMIT CHANGES WITH ({SINK}, op = 'tombstone')")
    assert "a tombstone deletes the value of a key" in lines[0]
    script = f"{A} CREATE QUERY q AS SELECT [k] AS x FROM A WINDOW 1 SECOND WITH ({SINK}, value = "
    assert "column x of type list<" in found(script + "'csv')")[0]
    assert found(script + "'json')") == []


def test_a_mistake_has_the_place_of_its_option() -> None:
    script = f"CREATE STREAM A {COLUMNS} WITH (\n{KAFKA},\n value = 'x')"
    (error,) = ScriptCheck(Scope()).read(script)
    assert (error.place.line, error.place.column) == (3, 2)


def test_kafka_needs_spark_and_is_outside_of_the_allowed_folders() -> None:
    with pytest.raises(SqlError, match=r"stream A reads Kafka, which needs Spark\. Run the script"):
        muntin.Engine().execute(A)
    scope = Scope(AllowedPaths.of(["."]))
    (line,) = map(str, ScriptCheck(scope).read(A))
    assert "can reach more than the allowed folders" in line
