#!/usr/bin/env python3
"""Writes the papers of a static program: what is linked into it, as an SPDX 2.3 document, and under which licences.

papers.py PROGRAM VERSION ARCH LINKED LICENSES_FOLDER OUT_FOLDER

LINKED has a line for each library: name, source package, version, licence, file with the source's description, its SHA-256 (tab-separated).
LICENSES_FOLDER/NAME/ holds the licence texts of library NAME as its source package has them. SOURCE_DATE_EPOCH is the date."""
import datetime
import hashlib
import json
import os
import re
import sys
import urllib.parse


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(name, version, license_id, supplier, **more):
    return {"SPDXID": spdx_id(name), "name": name, "versionInfo": version, "supplier": supplier, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": license_id, "licenseDeclared": license_id, "copyrightText": "NOASSERTION", **more}


def library(line):
    name, source, version, license_id, description, sha256 = line
    more = {"sourceInfo": f"compiled from Debian's source package {source} {version}",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{source}@{urllib.parse.quote(version, safe='.+-~')}?arch=source"}]}
    if sha256:
        more["packageFileName"] = description
        more["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    return package(name, version, license_id, "Organization: Debian", **more)


def sbom(program, version, arch, linked):
    sha256 = digest(program)
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    own = package("motel", version, "Apache-2.0", "NOASSERTION", packageFileName=os.path.basename(program), primaryPackagePurpose="APPLICATION",
                  checksums=[{"algorithm": "SHA256", "checksumValue": sha256}])
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"motel-{version}-linux-{arch}",
            "documentNamespace": f"urn:motel:sbom:{version}:{arch}:{sha256}", "creationInfo": {"created": when, "creators": ["Tool: motel-static-build"]},
            "packages": [own, *(library(line) for line in linked)],
            "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": spdx_id("motel")},
                              *({"spdxElementId": spdx_id("motel"), "relationshipType": "STATIC_LINK", "relatedSpdxElement": spdx_id(line[0])} for line in linked)]}


def licenses(linked, folder):
    seen, out = {}, ["The static motel program contains these libraries, compiled from Debian's source packages. Their licences:\n"]
    for name, source, version, license_id, *_ in linked:
        out.append(f"{'=' * 100}\n{name} {version} (source package {source}): {license_id}\n{'=' * 100}\n")
        for file in sorted(os.listdir(os.path.join(folder, name))):
            with open(os.path.join(folder, name, file), encoding="utf-8", errors="replace") as f:
                text = f.read().strip()
            first = seen.setdefault(hashlib.sha256(text.encode()).hexdigest(), f"{name}: {file}")
            out.append(f"--- {file}\n\n{text}\n" if first == f"{name}: {file}" else f"--- {file}: the same text as in {first}\n")
    return "\n".join(out)


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


def main():
    program, version, arch, linked_file, folder, out = sys.argv[1:]
    with open(linked_file, encoding="utf-8") as f:
        linked = [line.rstrip("\n").split("\t") for line in f]
    write(os.path.join(out, f"motel-{version}-linux-{arch}.spdx.json"), json.dumps(sbom(program, version, arch, linked), indent=1) + "\n")
    write(os.path.join(out, "LICENSES.txt"), licenses(linked, folder))


main()
