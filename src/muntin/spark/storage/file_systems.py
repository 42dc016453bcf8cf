"""Arrow's file systems for URLs of Hadoop, with Hadoop's settings.

A process opens each file system once. Credentials come from Spark's Hadoop configuration, which the
driver reads once. If it has none, Arrow looks where the tools of the store do: environment
variables, files of the user, and the service of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from muntin.errors import InputError
from muntin.spark.storage.interface import Location

_CONNECT = 10.0
_REQUEST = 30.0
_LONGEST = 60.0
"""Seconds: the defaults of timeouts, and the most that Hadoop's settings may raise them to."""

_TRIES = 5
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 0.001}

_S3 = (
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.s3a.endpoint",
    "fs.s3a.endpoint.region",
    "fs.s3a.path.style.access",
    "fs.s3a.connection.ssl.enabled",
    "fs.s3a.connection.establish.timeout",
    "fs.s3a.connection.timeout",
    "fs.s3a.aws.credentials.provider",
    "fs.s3a.assumed.role.arn",
)
_GCS = ("fs.gs.storage.root.url", "fs.gs.auth.type")
_AZURE = (
    "fs.azure.account.key",
    "fs.azure.sas.fixed.token",
    "fs.azure.account.oauth2.client.id",
    "fs.azure.account.oauth2.client.secret",
    "fs.azure.account.oauth2.client.endpoint",
)
_HDFS = ("hadoop.security.authentication", "dfs.client.use.datanode.hostname", "dfs.nameservices")


def settings_of(url: str) -> tuple[str, ...]:
    """Return the names of the settings of Hadoop that concern a URL."""
    place = urlsplit(url)
    if place.scheme in {"s3", "s3a"}:
        own = (name.replace("fs.s3a.", f"fs.s3a.bucket.{place.netloc}.", 1) for name in _S3)
        return (*_S3, *own)
    if place.scheme in {"abfs", "abfss"}:
        return (*_AZURE, *(f"{name}.{place.hostname}" for name in _AZURE))
    return {"gs": _GCS, "hdfs": _HDFS}.get(place.scheme, ())


def shows_half_written(url: str) -> bool:
    """Return whether a store shows a file before it is complete."""
    return urlsplit(url).scheme in {"hdfs", "abfs", "abfss"}


@lru_cache(maxsize=8)
def _opened(base: Location) -> Any:
    place = urlsplit(base.url)
    return _SYSTEMS[place.scheme](place.netloc, dict(base.settings))


def file_system(place: Location) -> tuple[Any, str]:
    """Return the file system of a place, and its path in it."""
    parts = urlsplit(place.url)
    system = _opened(Location(f"{parts.scheme}://{parts.netloc}", place.settings))
    path = parts.path.rstrip("/")
    if parts.scheme == "hdfs":
        return system, path
    return system, (parts.username or parts.netloc) + path


def check_supported(url: str) -> None:
    """Raise if Arrow has no file system for a URL, or not in this installation.

    Raises
    ------
    InputError
        With the remedy.
    """
    scheme = urlsplit(url).scheme
    if scheme not in _SYSTEMS:
        raise InputError(
            f"the checkpoint {url} is on a file system that this process cannot reach",
            hint="Give a local or mounted folder, or a URL that starts with s3a://, gs://, "
            "abfss:// or hdfs://",
        )
    if scheme in {"s3", "s3a", "gs"} and "@" in urlsplit(url).netloc:
        raise InputError(
            "the URL of the checkpoint contains credentials",
            hint="Give them in Hadoop's settings, for example spark.hadoop.fs.s3a.secret.key",
        )
    needed = _CLASSES[scheme]
    if not hasattr(fs, needed):
        raise InputError(
            f"the checkpoint {url} needs pyarrow.fs.{needed}, which this pyarrow was built without",
            hint="Install the pyarrow of PyPI or conda-forge on every machine, or use another "
            "store",
        )


# -- one function per store ------------------------------------------------------------------


def _s3(bucket: str, settings: Mapping[str, str]) -> Any:
    def value(name: str) -> str | None:
        own = settings.get(f"fs.s3a.bucket.{bucket}.{name}")
        return own or settings.get(f"fs.s3a.{name}") or None

    endpoint = value("endpoint")
    secure = (value("connection.ssl.enabled") or "true").lower() != "false"
    options: dict[str, Any] = {
        "access_key": value("access.key"),
        "secret_key": value("secret.key"),
        "session_token": value("session.token"),
        "region": value("endpoint.region"),
        "scheme": "https" if secure else "http",
        "connect_timeout": _seconds(value("connection.establish.timeout"), _CONNECT),
        "request_timeout": _seconds(value("connection.timeout"), _REQUEST),
        "allow_delayed_open": True,  # a small file is one request, not a multipart upload
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
    }
    if "Anonymous" in (value("aws.credentials.provider") or "") and not options["access_key"]:
        options["anonymous"] = True
    if value("assumed.role.arn") and not options["access_key"]:
        options["role_arn"] = value("assumed.role.arn")
    if endpoint:
        scheme, _, rest = endpoint.rpartition("://")
        options["endpoint_override"] = rest
        options["scheme"] = scheme or options["scheme"]
        options["region"] = options["region"] or "us-east-1"
        # As Hadoop does: the bucket is part of the host unless paths are asked for.
        options["force_virtual_addressing"] = (value("path.style.access") or "").lower() != "true"
    return fs.S3FileSystem(**{name: one for name, one in options.items() if one is not None})


def _gcs(_: str, settings: Mapping[str, str]) -> Any:
    options: dict[str, Any] = {"retry_time_limit": timedelta(seconds=_LONGEST)}
    root = settings.get("fs.gs.storage.root.url", "")
    if root and "storage.googleapis.com" not in root:
        scheme, _, rest = root.rstrip("/").rpartition("://")
        options |= {"endpoint_override": rest, "scheme": scheme or "https"}
    if settings.get("fs.gs.auth.type") == "UNAUTHENTICATED":
        options["anonymous"] = True
    return fs.GcsFileSystem(**options)


def _azure(authority: str, settings: Mapping[str, str]) -> Any:
    host = authority.rpartition("@")[2]

    def value(name: str) -> str | None:
        return settings.get(f"fs.azure.{name}.{host}") or settings.get(f"fs.azure.{name}") or None

    options: dict[str, Any] = {"account_name": host.partition(".")[0]}
    client = value("account.oauth2.client.id")
    if value("account.key"):
        options["account_key"] = value("account.key")
    elif value("sas.fixed.token"):
        options["sas_token"] = value("sas.fixed.token")
    elif client:
        endpoint = urlsplit(value("account.oauth2.client.endpoint") or "").path
        options |= {
            "client_id": client,
            "client_secret": value("account.oauth2.client.secret"),
            "tenant_id": endpoint.strip("/").partition("/")[0] or None,
        }
    return fs.AzureFileSystem(**{name: one for name, one in options.items() if one is not None})


def _hdfs(authority: str, settings: Mapping[str, str]) -> Any:
    user, _, place = authority.rpartition("@")
    host, _, port = place.partition(":")
    try:
        return fs.HadoopFileSystem(
            host or "default",
            int(port) if port else (8020 if host and "." in host else 0),
            user=user or None,
            extra_conf=dict(settings) or None,
        )
    except OSError as error:
        raise InputError(
            f"hdfs://{authority} cannot be reached: {str(error).splitlines()[0]}",
            hint="Arrow needs Hadoop's native client: set HADOOP_HOME, JAVA_HOME and CLASSPATH "
            "(hadoop classpath --glob) on every machine",
        ) from error


_SYSTEMS: dict[str, Callable[[str, Mapping[str, str]], Any]] = {
    "s3": _s3,
    "s3a": _s3,
    "gs": _gcs,
    "abfs": _azure,
    "abfss": _azure,
    "hdfs": _hdfs,
}
_CLASSES = {
    "s3": "S3FileSystem",
    "s3a": "S3FileSystem",
    "gs": "GcsFileSystem",
    "abfs": "AzureFileSystem",
    "abfss": "AzureFileSystem",
    "hdfs": "HadoopFileSystem",
}


def _seconds(text: str | None, default: float) -> float:
    """Return a duration of Hadoop in seconds.

    >>> _seconds("200s", 1.0), _seconds("5000", 1.0), _seconds(None, 1.0), _seconds("?", 1.0)
    (60.0, 5.0, 1.0, 1.0)
    """
    found = re.fullmatch(r"(\d+)\s*(ms|s|m|h|d|)", (text or "").strip().lower())
    if not found or not int(found.group(1)):
        return default
    return min(int(found.group(1)) * _SECONDS[found.group(2)], _LONGEST)
