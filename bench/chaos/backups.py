"""A logical backup of a database: a consistent snapshot in BSON files, as mongodump writes them."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import bson
from bson import json_util
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo.collection import Collection
from pymongo.database import Database

RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
BATCH = 1_000


def dump(database: Database[dict[str, Any]], folder: Path) -> int:
    """Write all documents as of one point in time, and the indexes; return how many documents."""
    folder.mkdir()
    count = 0
    # Every read of the session sees the same time, up to five minutes ago by default.
    with database.client.start_session(snapshot=True) as session:
        for name in _collections(database):
            with (folder / f"{name}.bson").open("wb") as file:
                raw: Collection[Any] = database.get_collection(name, RAW)
                found = raw.find({}, session=session)
                for document in found.batch_size(BATCH):
                    file.write(document.raw)
                    count += 1
    for name in _collections(database):
        indexes = [
            {key: value for key, value in index.items() if key not in ("v", "ns")}
            for index in database[name].list_indexes()
            if index["name"] != "_id_"
        ]
        (folder / f"{name}.indexes.json").write_text(json_util.dumps(indexes))
    return count


def restore(database: Database[dict[str, Any]], folder: Path) -> int:
    """Insert a backup's documents, and create its indexes; return how many documents."""
    count = 0
    for path in sorted(folder.glob("*.bson")):
        target = database.get_collection(path.stem, RAW)
        for batch in _batches(path):
            target.insert_many(batch, ordered=False)
            count += len(batch)
        indexes = json_util.loads((folder / f"{path.stem}.indexes.json").read_text())
        if indexes:
            database.command("createIndexes", path.stem, indexes=indexes)
    return count


def _collections(database: Database[dict[str, Any]]) -> list[str]:
    names = database.list_collection_names(filter={"type": "collection"})
    return sorted(name for name in names if not name.startswith("system."))


def _batches(path: Path) -> Iterator[list[RawBSONDocument]]:
    with path.open("rb") as file:
        documents = bson.decode_file_iter(file, RAW)
        while batch := list(islice(documents, BATCH)):
            yield batch
