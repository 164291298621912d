"""Where the shared server of a local model keeps its state: servers/<host>[-<job>[-<step>]]/<model>-p<parallel>."""

from trajectile.model.local.catalogue import Entry, cache_folder
from trajectile.model.serving.folder import ServerFolder
from trajectile.model.serving.places import place


def server_folder(entry: Entry, n_parallel: int) -> ServerFolder:
    """The folder of the server for a model on this machine; on a cluster each job, or step of a job, has its own."""
    return ServerFolder(cache_folder() / "servers" / place() / f"{entry.slug}-p{n_parallel}")
