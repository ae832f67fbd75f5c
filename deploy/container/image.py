#!/usr/bin/env python3
"""Writes a container image into one file that is an OCI layout and, for `docker load`, a Docker archive at the same time.

    deploy/container/image.py ROOT OUTPUT VERSION ARCH          ARCH: x86_64 or aarch64

ROOT is the folder that becomes the root file system; all of it belongs to root, but for /var/lib/motel. Needs no engine, no privileges
and nothing but Python. The same ROOT gives the same bytes (SOURCE_DATE_EPOCH: the date of the image, 2026-01-01 when unset).
"""
import datetime
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

USER = 10001
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1767225600"))
SECOND = 10 ** 9


def settings(version):
    """What the Dockerfile says with USER, ENTRYPOINT, CMD, EXPOSE, HEALTHCHECK, LABEL, …; the tests compare the two."""
    return {
        "User": f"{USER}:{USER}",
        "ExposedPorts": {f"{port}/tcp": {} for port in (4317, 4318, 8888, 13133)},
        "Env": ["PATH=/usr/bin:/bin"],
        "Entrypoint": ["/usr/bin/motel"],
        "Cmd": ["--config", "/etc/motel/motel.yaml"],
        "WorkingDir": "/var/lib/motel",
        "StopSignal": "SIGTERM",
        # Docker's; OCI has no such thing and readers of OCI images pass over it.
        "Healthcheck": {"Test": ["CMD", "/usr/bin/motel", "health"], "Interval": 10 * SECOND, "Timeout": 5 * SECOND, "StartPeriod": 10 * SECOND, "Retries": 3},
        "Labels": {
            "org.opencontainers.image.title": "motel",
            "org.opencontainers.image.description": "A mini OpenTelemetry collector: one small native program",
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.licenses": "Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND GPL-2.0-only AND "
                                                 "GPL-3.0-or-later WITH GCC-exception-3.1 AND LGPL-2.1-or-later AND (LGPL-3.0-or-later OR GPL-2.0-or-later) AND MIT AND MPL-2.0 AND OLDAP-2.8 AND curl",
        },
    }


def tar_entry(name, kind=tarfile.REGTYPE, mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, mode, EPOCH
    return info


def layer(root):
    """The root file system as a tar file: sorted, without names of users, with one date."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in sorted(files + folders):
                path = os.path.join(folder, name)
                info = tar.gettarinfo(path, os.path.relpath(path, root))
                owner = USER if info.name.split("/")[:3] == ["var", "lib", "motel"] else 0
                info.uid = info.gid = owner
                info.uname = info.gname = ""
                info.mtime = EPOCH
                if info.isreg():
                    with open(path, "rb") as f:
                        tar.addfile(info, f)
                else:
                    tar.addfile(info)
    return out.getvalue()


def image(root, version, arch):
    """The files of the layout, by their paths."""
    blobs = {}

    def blob(media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def as_json(value):
        return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()

    plain = layer(root)
    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    platform = {"architecture": {"x86_64": "amd64", "aarch64": "arm64"}[arch], "os": "linux"}
    packed = blob("application/vnd.oci.image.layer.v1.tar+gzip", gzip.compress(plain, 9, mtime=0))
    config = blob("application/vnd.oci.image.config.v1+json", as_json({
        "created": created, **platform, "config": settings(version),
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created": created, "created_by": "deploy/container/build"}],
    }))
    manifest = blob("application/vnd.oci.image.manifest.v1+json", as_json({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [packed],
        "annotations": settings(version)["Labels"],
    }))
    name = f"motel:{version}"
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
             "manifests": [{**manifest, "platform": platform, "annotations": {
                 "org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"docker.io/library/{name}"}}]}

    def path_of(descriptor):
        return "blobs/sha256/" + descriptor["digest"].split(":")[1]
    return {
        "oci-layout": as_json({"imageLayoutVersion": "1.0.0"}),
        "index.json": as_json(index),
        "manifest.json": as_json([{"Config": path_of(config), "RepoTags": [name], "Layers": [path_of(packed)]}]),
        **blobs,
    }


def write(files, output):
    with tarfile.open(output + ".new", mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder in ("blobs", "blobs/sha256"):
            tar.addfile(tar_entry(folder, tarfile.DIRTYPE, 0o755))
        for name in sorted(files):
            info = tar_entry(name)
            info.size = len(files[name])
            tar.addfile(info, io.BytesIO(files[name]))
    os.replace(output + ".new", output)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    write(image(sys.argv[1], *sys.argv[3:]), sys.argv[2])
