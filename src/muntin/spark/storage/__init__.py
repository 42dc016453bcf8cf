"""The files of a checkpoint behind one interface: local folders and object stores."""

from muntin.spark.storage.interface import Location, Storage
from muntin.spark.storage.local import LocalStorage
from muntin.spark.storage.places import checkpoint_place, storage_at

__all__ = ["LocalStorage", "Location", "Storage", "checkpoint_place", "storage_at"]
