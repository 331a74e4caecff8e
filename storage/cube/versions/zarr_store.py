"""Zarr's store of a commit: Icechunk's, which also gives the consolidated metadata that the cube has."""

from __future__ import annotations

from functools import lru_cache

from zarr.abc.store import Store
from zarr.storage import WrapperStore

from evalcube.storage.cube.versions.repository import existing
from evalcube.storage.urls import RepositoryAddress


class CommittedStore(WrapperStore[Store]):
    """The objects of a commit, for reading.

    Parameters
    ----------
    address
        Of the repository.
    commit
        The commit's id.
    """

    def __init__(self, address: RepositoryAddress, commit: str) -> None:
        super().__init__(_session(address, commit))
        self._place = (address, commit)

    def __reduce__(self) -> tuple[object, ...]:
        # By its address: each process opens the repository by its own environment, and no credentials travel.
        return CommittedStore, self._place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CommittedStore) and other._place == self._place

    def __hash__(self) -> int:
        return hash(self._place)

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Icechunk needs none, and keeps them as they were committed."""
        return True


@lru_cache(maxsize=16)
def _session(address: RepositoryAddress, commit: str) -> Store:
    store: Store = existing(address).readonly_session(snapshot_id=commit).store
    return store
