"""A Hugging Face Hub on loopback. Its API suffices for the real client to create, commit, list and load a dataset."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.server_thread import ServerThread, listening_app

ROOT = Path(__file__).resolve().parents[1]


def run_with_hub(hub: HubDouble, folder: Path, program: str, *words: str) -> str:
    """Run Python code in a new process whose Hub is ``hub`` and whose cache is in ``folder``. Return its output."""
    env = os.environ | {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": "t"}
    env |= {"HF_DATASETS_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class HubDouble(ServerThread):
    """``with HubDouble() as hub: … hub.url``. After ``refuse_commit`` successful commits, every further commit gets status 400."""

    def __init__(self, latency_s: float = 0.0) -> None:
        self.latency_s = latency_s
        self.requests = 0
        self.files: dict[str, bytes] = {}
        self.lfs: dict[str, bytes] = {}
        self.large: set[str] = set()
        self.commits: list[list[str]] = []
        self.created: list[dict[str, Any]] = []
        self.uploads = 0
        self.validated: list[str] = []
        self.refuse_commit: int | None = None

    @property
    def sha(self) -> str:
        return hashlib.sha1(str(len(self.commits)).encode()).hexdigest()

    def listening(self) -> AbstractAsyncContextManager[int]:
        return listening_app(web.route("*", "/{path:.*}", self._answer), largest=1 << 30)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.requests += 1
        await asyncio.sleep(self.latency_s)
        if path == "/api/repos/create":
            self.created.append(await request.json())
            return web.json_response({"url": f"{self.url}/datasets/me/sums", "name": "me/sums", "id": "1"})
        if path == "/api/validate-yaml":
            self.validated.append((await request.json())["content"])
            return web.json_response({"errors": [], "warnings": []})
        if path.endswith("/info/lfs/objects/batch"):
            return await self._batch(request)
        if match := re.fullmatch(r"/lfs/(\w+)", path):
            self.uploads += 1
            self.lfs[match[1]] = await request.read()
            return web.Response()
        if path == "/verify":
            return web.Response()
        if match := re.search(r"/resolve/[^/]+/(.+)", path):
            return self._resolve(request, match[1])
        if not path.startswith("/api/datasets/") or not self.created:
            return _missing("RepoNotFound" if path.startswith("/api/datasets/") else "EntryNotFound")
        if "/preupload/" in path:
            wanted = (await request.json())["files"]
            rows = [
                {
                    "path": f["path"],
                    "uploadMode": "lfs" if f["path"].endswith(".parquet") else "regular",
                    "shouldIgnore": False,
                }
                for f in wanted
            ]
            return web.json_response({"files": rows})
        if "/commit/" in path:
            return await self._commit(request)
        if match := re.search(r"/tree/[^/]+/?(.*)", path):
            return self._tree(match[1], request.query.get("recursive", "").lower() == "true")
        return web.json_response(self._info())

    async def _batch(self, request: web.Request) -> web.Response:
        objects = []
        for item in (await request.json())["objects"]:
            actions = {"upload": {"href": f"{self.url}/lfs/{item['oid']}"}, "verify": {"href": f"{self.url}/verify"}}
            there = item["oid"] in self.lfs
            objects.append({**item, "authenticated": True, **({} if there else {"actions": actions})})
        return web.json_response({"transfer": "basic", "objects": objects}, content_type="application/vnd.git-lfs+json")

    async def _commit(self, request: web.Request) -> web.Response:
        if self.refuse_commit is not None and len(self.commits) >= self.refuse_commit:
            return web.json_response({"error": "cut off"}, status=400)
        touched = []
        for line in (await request.text()).splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                self.files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                self.files[value["path"]] = self.lfs[value["oid"]]
                self.large.add(value["path"])
            elif entry["key"] == "deletedFile":
                self.files.pop(value["path"], None)
            if "path" in value:
                touched.append(value["path"])
        self.commits.append(touched)
        return web.json_response(
            {"commitOid": self.sha, "commitUrl": f"{self.url}/datasets/me/sums/commit/{self.sha}", "success": True}
        )

    def _info(self) -> dict[str, Any]:
        return {
            "_id": "1",
            "id": "me/sums",
            "sha": self.sha,
            "private": True,
            "gated": False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "siblings": [{"rfilename": name} for name in self.files],
        }

    def _tree(self, folder: str, recursive: bool) -> web.Response:
        prefix = f"{folder}/" if folder else ""
        rows: dict[str, dict[str, Any]] = {}
        for name, data in self.files.items():
            if not name.startswith(prefix):
                continue
            rest = name[len(prefix) :]
            if "/" in rest:
                under = prefix + rest.split("/")[0]
                rows.setdefault(under, {"type": "directory", "path": under, "oid": "0" * 40, "size": 0})
                if not recursive:
                    continue
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            rows[name] = {"type": "file", "path": name, "size": len(data), "oid": blob}
            if name in self.large:
                rows[name]["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
        if folder and not rows:
            return _missing("EntryNotFound")
        return web.json_response(list(rows.values()))

    def _resolve(self, request: web.Request, name: str) -> web.Response:
        if name not in self.files:
            return _missing("EntryNotFound")
        data = self.files[name]
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": self.sha, "Accept-Ranges": "bytes"}
        if wanted := re.match(r"bytes=(\d+)-(\d*)", request.headers.get("Range", "")):
            start, stop = int(wanted[1]), min(int(wanted[2] or len(data) - 1), len(data) - 1)
            headers["Content-Range"] = f"bytes {start}-{stop}/{len(data)}"
            return web.Response(body=data[start : stop + 1], status=206, headers=headers)
        if request.method == "HEAD":
            return web.Response(headers={**headers, "Content-Length": str(len(data))})
        return web.Response(body=data, headers=headers)


def _missing(code: str) -> web.Response:
    return web.json_response({"error": code}, status=404, headers={"X-Error-Code": code})
