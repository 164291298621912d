"""What `docker save` writes, without Docker."""

import hashlib
import io
import json
import tarfile
from pathlib import Path


def write(archive: Path, root: Path, tag: str, env: "tuple[str, ...]" = ()) -> Path:
    """Pack the folder `root` as the one layer of the image `tag`."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(root, arcname=".")
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin:/bin", *env], "Cmd": ["/bin/bash"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created": "2026-01-01T00:00:00Z"}],
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(archive, "w") as tar:
        for path, data in ((name, config), ("layer.tar", layer.getvalue()), ("manifest.json", manifest)):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return archive
