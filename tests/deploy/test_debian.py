"""The Debian package: lintian's opinion, its contents, and a machine on which it is installed, used and purged."""
import os
import re
import subprocess

from machine import APT
from support import ROOT, version

SMOKE = os.path.join(ROOT, "deploy", "debian", "debian", "tests", "smoke")


def test_version():
    """The changelog is of this version; another one is refused by the build."""
    with open(os.path.join(ROOT, "deploy", "debian", "debian", "changelog"), encoding="utf-8") as f:
        assert f.readline().startswith(f"motel ({version()}-1) ")


def test_build_dependencies():
    """The package asks for what install-packages installs."""
    with open(os.path.join(ROOT, "deploy", "install-packages"), encoding="utf-8") as f:
        wanted = set(re.search(r"^build=\((.*?)\)", f.read(), re.M | re.S)[1].split())
    with open(os.path.join(ROOT, "deploy", "debian", "debian", "control"), encoding="utf-8") as f:
        listed = set(re.findall(r"[a-z][\w.+-]+(?=[ ,:\n])", re.search(r"^Build-Depends:(.*?)^\w", f.read(), re.M | re.S)[1] + ","))
    implied = {"build-essential", "ninja-build", "python3"}
    assert wanted - implied <= listed


def test_lintian(deb):
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", deb], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"^[EW]: ", done.stdout, re.M), done.stdout


def test_contents(deb):
    listing = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
    modes = {line.split()[5].lstrip("."): line.split()[0] for line in listing.splitlines()}
    for path in ("/usr/bin/motel", "/lib/systemd/system/motel.service", "/usr/lib/systemd/user/motel.service", "/etc/motel/motel.yaml",
                 "/usr/share/doc/motel/copyright", "/usr/share/doc/motel/changelog.Debian.gz", "/usr/share/doc/motel/examples/collector.yaml",
                 "/usr/share/man/man1/motel.1.gz", "/usr/share/man/man5/motel.yaml.5.gz", "/usr/share/bash-completion/completions/motel"):
        assert path in modes, listing
    assert modes["/usr/bin/motel"] == "-rwxr-xr-x"
    assert modes["/etc/motel/credentials/"] == "drwx------"
    control = subprocess.run(["dpkg-deb", "-f", deb], capture_output=True, text=True, check=True).stdout
    assert f"Version: {version()}-1\n" in control
    assert "libcurl3-gnutls" in control and "libsystemd" not in control
    conffiles = subprocess.run(["dpkg-deb", "-I", deb, "conffiles"], capture_output=True, text=True, check=True).stdout
    assert conffiles.split() == ["/etc/motel/motel.yaml"]


def test_links_between_the_pages(deb, tmp_path):
    """What the installed pages link to is installed, too; one page names a folder of the tests."""
    subprocess.run(["dpkg-deb", "-x", deb, tmp_path], check=True)
    folder = tmp_path / "usr" / "share" / "doc" / "motel"
    pages = [p for p in folder.rglob("*.md") if "tests" not in p.parts]
    assert len(pages) > 40 and not list(folder.rglob("*.md.gz"))
    missing = set()
    for page in pages:
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in link and not (page.parent / link).exists():
                missing.add(os.path.relpath(page.parent / link, folder))
    assert missing <= {"tests/e2e"}


def test_installed(machine):
    """Neither started nor enabled, for the machine or for users; the package's own smoke test passes."""
    assert machine.run("systemctl", "is-enabled", "motel", check=False).stdout.strip() == "disabled"
    assert machine.run("systemctl", "is-active", "motel", check=False).stdout.strip() == "inactive"
    assert not os.path.lexists(machine.root.path("/etc/systemd/user/default.target.wants/motel.service"))
    assert machine.run("motel", "version").stdout == f"motel version {version()}\n"
    with open(SMOKE, encoding="utf-8") as f:
        assert "smoke: a span came through" in machine.run("bash", "-s", input=f.read()).stdout


def test_upgrade_and_purge(machine):
    """An upgrade keeps a changed configuration and restarts the service; a purge leaves nothing."""
    sample = machine.root.read("/etc/motel/motel.yaml")
    machine.root.write("/etc/motel/motel.yaml", sample + "# changed here\n")
    machine.root.write("/etc/motel/credentials/backend", "a-token\n", 0o600)
    machine.run("systemctl", "start", "motel")
    before = machine.property("MainPID")
    machine.run(*APT, "--reinstall", "install", "/root/motel.deb")
    assert machine.root.read("/etc/motel/motel.yaml").endswith("# changed here\n")
    assert machine.run("systemctl", "is-active", "motel").stdout.strip() == "active"
    assert machine.property("MainPID") != before
    assert machine.run("systemctl", "is-enabled", "motel", check=False).stdout.strip() == "disabled"

    machine.run(*APT, "purge", "motel")
    left = machine.run("find", "/etc", "/usr", "/lib", "/var", "/run", "-name", "*motel*", "-not", "-path", "/run/systemd/*", "-not", "-path", "/var/cache/apt/*",
                       "-not", "-path", "/var/lib/systemd/deb-systemd-*").stdout
    assert left == ""
    assert machine.run("systemctl", "is-active", "motel", check=False).stdout.strip() == "inactive"
    machine.run(*APT, "install", "/root/motel.deb")
    assert machine.root.read("/etc/motel/motel.yaml") == sample
