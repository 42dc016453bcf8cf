"""Formats of streams, tables and sinks: the options of each, and which options are paths.

The tables allow scripts to be checked without Spark. Option names ignore case. The options of
Spark's file formats are those that Spark lists; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from muntin.model.kafka import KAFKA, SINK_OPTIONS

_FILES = """
    path maxFilesPerTrigger maxBytesPerTrigger maxFileAge latestFirst fileNameOnly cleanSource
    sourceArchiveDir maxCachedFiles discardCachedInputRatio pathGlobFilter recursiveFileLookup
    basePath ignoreCorruptFiles ignoreMissingFiles ignoreInvalidPartitionPaths modifiedBefore
    modifiedAfter
"""
"""Options of every file format that Spark reads."""

SPARK_OPTIONS: Mapping[str, str] = {
    "csv": """
        charToEscapeQuoteEscaping charset codec columnNameOfCorruptRecord columnPruning comment
        compression dateFormat delimiter emptyValue enableDateTimeParsingFallback encoding
        enforceSchema escape escapeQuotes extension header ignoreLeadingWhiteSpace
        ignoreTrailingWhiteSpace inferSchema inputBufferSize lineSep locale maxCharsPerColumn
        maxColumns mode multiLine nanValue negativeInf nullValue positiveInf preferDate quote
        quoteAll samplingRatio sep singleVariantColumn timeFormat timeZone timestampFormat
        timestampNTZFormat unescapedQuoteHandling
    """,
    "json": """
        allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers
        allowNumericLeadingZeros allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames
        charset columnNameOfCorruptRecord compression dateFormat dropFieldIfAllNull
        enableDateTimeParsingFallback encoding explodeEmbeddedArray ignoreNullFields inferTimestamp
        lineSep locale mode multiLine prefersDecimal pretty primitivesAsString samplingRatio
        singleVariantColumn sortKeys timeFormat timeZone timestampFormat timestampNTZFormat
        useUnsafeRow writeNonAsciiCharacterAsCodePoint
    """,
    "xml": """
        arrayElementName attributePrefix charset columnNameOfCorruptRecord compression dateFormat
        declaration encoding excludeAttribute ignoreNamespace ignoreSurroundingSpaces indent
        inferSchema locale mode multiLine nullValue preferDate prefersDecimal rootTag rowTag
        rowValidationXSDPath samplingRatio singleVariantColumn timeFormat timeZone timestampFormat
        timestampNTZFormat useLegacyXMLParser validateName valueTag wildcardColName
    """,
    "text": "compression encoding lineSep wholetext",
    "parquet": "compression datetimeRebaseMode int96RebaseMode mergeSchema parquet.compression",
    "orc": "compression mergeSchema orc.compress",
    "avro": """
        avroSchema avroSchemaUrl compression datetimeRebaseMode enableStableIdentifiersForUnionType
        ignoreExtension mode positionalFieldMatching recordName recordNamespace
        recursiveFieldMaxDepth stableIdentifierPrefixForUnionType
    """,
}
"""The options that Spark lists for each file format."""

_GENERATED = {
    "rate": "rowsPerSecond rampUpTime numPartitions",
    "rate-micro-batch": "rowsPerBatch startTimestamp advanceMillisPerBatch numPartitions",
    "socket": "host port includeTimestamp numPartitions",
}
_PACKAGES = """
    bigquery cloudfiles delta eventhubs hudi iceberg jdbc kinesis mongodb paimon pubsub pulsar
    redshift snowflake
"""
EXTERNAL = frozenset(_PACKAGES.split())
"""Formats that come with packages for Spark; their options cannot be checked here."""

_OURS = "format time slack rate distinct"
"""Options of streams that Muntin reads."""


def names_in(*texts: str) -> dict[str, str]:
    """Return the names in the texts, keyed by their lower case."""
    return {name.lower(): name for text in texts for name in text.split()}


STREAM_NAMES = names_in(_OURS)
"""Options of every stream."""

UNREAD_STREAM = STREAM_NAMES
"""Options of a stream without a format, whose rows are pushed."""

STREAMS: Mapping[str, Mapping[str, str]] = {
    **{kind: names_in(_OURS, _FILES, own) for kind, own in SPARK_OPTIONS.items()},
    **{kind: names_in(_OURS, own) for kind, own in _GENERATED.items()},
    "parquet": names_in(_OURS, _FILES, SPARK_OPTIONS["parquet"], "reader"),
    "binaryfile": names_in(_OURS, _FILES),
}
"""Formats of streams, with their options."""

TABLES: Mapping[str, Mapping[str, str]] = {
    "csv": names_in("format path header"),
    "json": names_in("format path"),
    "parquet": names_in("format path"),
}
"""Formats of stored tables, with their options."""

SINKS: Mapping[str, Mapping[str, str]] = {
    **{kind: names_in("path mode maxRecordsPerFile", own) for kind, own in SPARK_OPTIONS.items()},
    "console": names_in("numRows truncate mode"),
    "noop": names_in("mode"),
    KAFKA: names_in(" ".join(SINK_OPTIONS)),
}
"""Formats of sinks, with their options."""

OWN_FILES = ("parquet", "csv", "json")
"""Formats of sinks that Muntin writes without Spark if the folder is local."""

FILE_FORMATS = (*SPARK_OPTIONS, "binaryfile")
"""File formats, which require a path."""

REQUIRED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(FILE_FORMATS, ("path",)),
    "socket": ("host", "port"),
    "rate-micro-batch": ("rowsPerBatch",),
}
"""Options that a stream of a format requires."""

PATHS = ("path", "sourcearchivedir", "basepath", "rowvalidationxsdpath", "avroschemaurl")
"""Options of any format whose values name files or folders, in lower case."""

CONFINED = frozenset({*FILE_FORMATS, "rate", "rate-micro-batch", "console", "memory", "noop"})
"""Formats that access only the files that their options name."""


def is_foreign(kind: str) -> bool:
    """Return whether only Spark or a package can check a format: a class, or a package's name."""
    return "." in kind or kind.lower() in EXTERNAL


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name nearest to a misspelled one, or an empty text.

    >>> did_you_mean("parquett", ["csv", "parquet"])
    "Did you mean 'parquet'?"
    """
    by_case = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), by_case, 1)
    return f"Did you mean {by_case[near[0]]!r}?" if near else ""
