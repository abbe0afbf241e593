"""Builds what is published of a commit, so that two builds have the same bytes."""

import gzip
import hashlib
import io
import re
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import one_file
from .checks import local_python
from .repository import run
from .versions import Version

COMPOSE = ("docker-compose.yml", "docker-compose.small.yml", "deploy/caddy/Caddyfile")
LOCAL_IMAGE = "notifyproject:local"
SUMS = "SHA256SUMS"
_BUILT_HERE = re.compile(
    r"^  # Built once, .*\n(?=  image:)|^    build: \.\n|^ +pull_policy: (?:never|build)\n",
    re.MULTILINE,
)


class Build:
    """A build of a checkout, in a folder of its own."""

    def __init__(
        self, source: Path, output: Path, *, version: Version, image: str, seconds: str
    ) -> None:
        self.source, self.output, self.version = source, output, version
        self._image = f"{image}:{version}"
        self._seconds = int(seconds)
        self._environment = {"SOURCE_DATE_EPOCH": seconds, "TZ": "UTC", "LC_ALL": "C.UTF-8"}

    def everything(self, *, tools: Path) -> Mapping[str, str]:
        """Build all files, and return their SHA-256 sums. Raises ReleaseError.

        ``tools`` is a virtual environment with the locked tools of a release.
        """
        (self.source / ".venv").symlink_to(tools)
        self.output.mkdir(parents=True)
        self._source_code()
        self._python_client()
        self._command()
        self._npm_packages()
        self._docs()
        self._compose()
        self._chart()
        self._bill_of_materials()
        sums = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.output.iterdir())
        }
        lines = (f"{digest}  {name}\n" for name, digest in sums.items())
        (self.output / SUMS).write_text("".join(lines), encoding="utf-8")
        return sums

    def _run(self, *command: str | Path, cwd: Path) -> None:
        run(*command, cwd=cwd, environment=self._environment)

    def _source_code(self) -> None:
        name = f"notifyproject-{self.version}"
        archive = ("archive", "--format=tar.gz", f"--prefix={name}/", "HEAD")
        self._run("git", *archive, "--output", self.output / f"{name}.tar.gz", cwd=self.source)

    def _python_client(self) -> None:
        # The wheel is built from the source distribution, so that one has all that it needs.
        words = ("build", "--quiet", "--no-build-isolation", "--no-create-gitignore")
        uv, python = self.source / ".venv" / "bin" / "uv", local_python(self.source)
        client = self.source / "clients" / "python"
        self._run(uv, *words, "--python", python, "--out-dir", self.output, client, cwd=self.source)

    def _command(self) -> None:
        """Pack the command `notify` with its libraries, which are those of the lock."""
        installed = self.source / ".data" / "command"
        uv = self.source / ".venv" / "bin" / "uv"
        (wheel,) = self.output.glob("notifyproject_client-*.whl")
        self._run(
            *(uv, "pip", "install", "--quiet", "--python", local_python(self.source)),
            *("--target", installed, "--constraint", ".venv/release.txt"),
            f"notifyproject-client[cli] @ {wheel.as_uri()}",
            cwd=self.source,
        )
        path = self.output / f"notify-{self.version}.pyz"
        path.write_bytes(one_file.packed_command(installed, seconds=self._seconds))
        path.chmod(0o755)
        shutil.rmtree(installed)

    def _npm_packages(self) -> None:
        npm = (("typescript", ("./dist", "./testing/dist")), ("web", ("--workspaces",)))
        for folder, words in npm:
            path = self.source / "clients" / folder
            self._run("npm", "ci", "--no-audit", "--no-fund", cwd=path)
            if folder == "typescript":
                self._run("npm", "run", "build", cwd=path)
            self._run("npm", "pack", *words, "--pack-destination", self.output, cwd=path)

    def _docs(self) -> None:
        self._run(local_python(self.source), "scripts/docs_site.py", cwd=self.source)
        zensical = self.source / ".venv" / "bin" / "zensical"
        self._run(zensical, "build", "--strict", "--clean", cwd=self.source)
        site = self.source / ".data" / "docs"
        files = {str(path.relative_to(site)): path.read_bytes() for path in _files(site)}
        self._pack("docs", files)

    def _compose(self) -> None:
        files = {name: (self.source / name).read_bytes() for name in COMPOSE}
        text = with_image(files["docker-compose.yml"].decode(), image=self._image)
        self._pack("compose", {**files, "docker-compose.yml": text.encode()})

    def _chart(self) -> None:
        content = packed_chart(self.source, seconds=self._seconds)
        (self.output / f"notifyproject-{self.version}.tgz").write_bytes(content)

    def _bill_of_materials(self) -> None:
        """List the libraries that the image has, as they are installed, with their licences."""
        installed = self.source / ".data" / "image"
        uv = self.source / ".venv" / "bin" / "uv"
        python = local_python(self.source)
        self._run(uv, "venv", "--quiet", "--python", python, installed, cwd=self.source)
        self._run(
            *(uv, "pip", "install", "--quiet", "--python", installed, "--require-hashes"),
            *("-r", "requirements.txt"),
            cwd=self.source,
        )
        self._run(
            *(self.source / ".venv" / "bin" / "cyclonedx-py", "environment", installed),
            *("--pyproject", "pyproject.toml", "--mc-type", "application"),
            *("--output-reproducible", "--of", "JSON"),
            *("--output-file", self.output / f"notifyproject-{self.version}.cdx.json"),
            cwd=self.source,
        )
        shutil.rmtree(installed)

    def _pack(self, name: str, files: Mapping[str, bytes]) -> None:
        folder = f"notifyproject-{name}-{self.version}"
        content = packed(folder, files, seconds=self._seconds)
        (self.output / f"{folder}.tar.gz").write_bytes(content)


def packed(folder: str, files: Mapping[str, bytes], *, seconds: int) -> bytes:
    """Return files in a folder as an archive that depends on nothing but them and the time."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mtime, entry.mode = len(content), seconds, 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(archive.getvalue(), mtime=seconds)


def packed_chart(root: Path, *, seconds: int) -> bytes:
    """Return the Helm chart as `helm package` packs it, which notes when it did."""
    chart = root / "deploy" / "helm"
    files = {str(path.relative_to(chart)): path.read_bytes() for path in _files(chart)}
    return packed("notifyproject", files, seconds=seconds)


def with_image(text: str, *, image: str) -> str:
    """Return a Compose file that pulls an image, instead of one that builds it."""
    return _BUILT_HERE.sub("", text).replace(f"image: {LOCAL_IMAGE}\n", f"image: {image}\n")


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
