"""Statements of the dialect after binding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from muntin.errors import Place
from muntin.model.catalog import Stream, Table, View
from muntin.plan.query import Query


@dataclass(frozen=True)
class CreateStream:
    """``CREATE STREAM name (columns) WITH (...)``."""

    stream: Stream
    place: Place
    options: Mapping[str, Place] = field(default_factory=dict, compare=False)
    """Where the options of its WITH stand, by their names in lower case."""


@dataclass(frozen=True)
class CreateTable:
    """``CREATE TABLE name (columns) WITH (...)``."""

    table: Table
    place: Place
    options: Mapping[str, Place] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class CreateQuery:
    """``CREATE [OR REPLACE] QUERY name AS SELECT ...``."""

    query: Query
    place: Place
    options: Mapping[str, Place] = field(default_factory=dict, compare=False)
    replaces: bool = False


@dataclass(frozen=True)
class CreateView:
    """``CREATE VIEW name AS SELECT ...``."""

    view: View
    place: Place


@dataclass(frozen=True)
class DropStatement:
    """``DROP STREAM | TABLE | VIEW | QUERY | FUNCTION [IF EXISTS] name``.

    ``kind`` is the lower-case word.
    """

    kind: str
    name: str
    if_exists: bool
    place: Place


@dataclass(frozen=True)
class Set:
    """``SET name = value``."""

    name: str
    value: str
    place: Place


Statement: TypeAlias = CreateStream | CreateTable | CreateView | CreateQuery | DropStatement | Set
