"""Error messages of Spark are reduced to the fact that matters to a user."""

from __future__ import annotations

import pytest

from muntin.spark.failures import fact_of

PYTHON = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: \
[FOREACH_BATCH_USER_FUNCTION_ERROR] Reason: Traceback:
  File "x.py", line 3, in call
    raise converted from None
pyspark.errors.exceptions.captured.PythonException:
  An exception was thrown from the Python worker. Please see the stack trace below.
{error}

JVM stacktrace:
org.apache.spark.SparkException: Job aborted due to stage failure: \
Task 0 in stage 2.0 failed 4 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
{error}
"""

JAVA = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: \
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred
py4j.protocol.Py4JJavaError: An error occurred while calling o180.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] \
Encountered error while reading file file:///in/A/1.csv.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors\
$.cannotReadFilesError(QueryExecutionErrors.scala:856)
Caused by: org.apache.spark.SparkException: \
[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed: [2,2,null].
Caused by: org.apache.BadRecordException: \
[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed: [2,2,null].
Caused by: java.lang.RuntimeException
Caused by: org.apache.spark.SparkException: [INTERNAL_ERROR] Cannot parse the value. SQLSTATE: XX000
"""


@pytest.mark.parametrize(
    ("story", "fact"),
    [
        (
            PYTHON.format(
                error=(
                    "muntin.errors.InputError: file 'x' of stream A has no column v. Replace "
                    "the file"
                )
            ),
            "file 'x' of stream A has no column v. Replace the file",
        ),
        (
            PYTHON.format(error="OSError: [Errno 28] No space left on device"),
            "OSError: [Errno 28] No space left on device",
        ),
        (
            JAVA,
            (
                "Encountered error while reading file file:///in/A/1.csv: Malformed: "
                "[2,2,null]: Cannot parse the value"
            ),
        ),
        (
            (
                "[STREAM_FAILED] Query [id = 1] terminated with exception: Worker failed. "
                "SQLSTATE: XXKST\nat x"
            ),
            "Worker failed",
        ),
        (
            (
                "[STREAM_FAILED] Query [id = 1] terminated with exception: Python worker failed "
                "to connect back. SQLSTATE: XXKST"
            ),
            (
                "Python worker failed to connect back within ten seconds: the machine is too "
                "busy, or its Python does not start"
            ),
        ),
        (
            (
                "[STREAM_FAILED] Query [id = 1] terminated with exception: Connection refused\n"
                "{TextSocketV2[host: ::1, port: 7]: -1}"
            ),
            "Connection refused. Sockets that it reads: ::1:7",
        ),
        ("", "no reason was given"),
    ],
)
def test_the_relevant_error_is_extracted(story: str, fact: str) -> None:
    assert fact_of(story) == fact
