"""The rows that an address on the hub means: those a cube has asked, those that were fetched, or those of the hub."""

from __future__ import annotations

from evalcube.stages.generate.dataset.hub import shelf
from evalcube.stages.generate.dataset.hub.address import Address, is_hub
from evalcube.stages.generate.dataset.hub.fetch import fetch
from evalcube.stages.generate.dataset.kept import kept_point
from evalcube.stages.generate.dataset.params import DatasetParams


def located(params: DatasetParams) -> DatasetParams:
    """The params with a commit, a format and a digest, if their file is on the hub.

    What the sweep's own cube has asked comes first, then what was fetched before; the hub is asked for the rest.

    Raises
    ------
    TaskError
        The file cannot be fetched.
    """
    if not is_hub(params.file):
        return params
    asked = Address.parse(params.file)
    params = params.model_copy(update={"file": str(asked)})
    kept = kept_point(str(asked))
    named = kept is not None and (not asked.pinned or kept["file"] == str(asked))
    if kept is not None and named and params.sha256 in ("", kept["sha256"]):
        return params.model_copy(update=dict(kept))
    record = shelf.find(str(asked)) or fetch(asked)
    if params.format not in ("auto", record.format):
        raise asked.problem(f"is {record.format} and not {params.format}; leave `format` out")
    if params.sha256 not in ("", record.sha256):
        raise asked.problem(
            f"has the SHA-256 {record.sha256}, and not the one that is given; correct `sha256`"
        )
    found = {"file": record.address, "format": record.format, "sha256": record.sha256}
    return params.model_copy(update=found)
