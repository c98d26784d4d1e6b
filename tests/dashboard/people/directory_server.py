"""A directory of people and groups: OpenLDAP (slapd) with a certificate."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

READY_S = 60.0
SLAPD = shutil.which("slapd", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
CONFIGURATION = """
include {schema}/core.schema
include {schema}/cosine.schema
include {schema}/inetorgperson.schema
modulepath {modules}
moduleload back_mdb
TLSCertificateFile {place}/certificate.pem
TLSCertificateKeyFile {place}/key.pem
database mdb
suffix "dc=lab"
directory {place}
rootdn "cn=reader,dc=lab"
rootpw reading
"""
ENTRIES = """
dn: dc=lab
objectClass: domain
dc: lab

dn: uid=newton,dc=lab
objectClass: inetOrgPerson
uid: newton
cn: Isaac Newton
givenName: Isaac
sn: Newton
mail: newton@lab.example
userPassword: an apple fell

dn: cn=physics,dc=lab
objectClass: groupOfNames
cn: physics
member: uid=newton,dc=lab

"""


@contextmanager
def directory_server(place: Path) -> Iterator[int]:
    """Run it on a port of the loopback."""
    assert SLAPD is not None, "slapd is missing; script/bootstrap --test installs it"
    make_certificate(place)
    root = Path(SLAPD).parents[2]
    given = {"schema": root / "etc/ldap/schema", "modules": root / "usr/lib/ldap", "place": place}
    configuration, entries = place / "slapd.conf", place / "entries.ldif"
    configuration.write_text(CONFIGURATION.format(**given))
    entries.write_text(ENTRIES.lstrip())
    add = Path(SLAPD).with_name("slapadd")
    subprocess.run([add, "-f", configuration, "-l", entries], check=True, capture_output=True, timeout=READY_S)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (place / "log").open("wb") as log:
        argv = [SLAPD, "-d", "0", "-f", configuration, "-h", f"ldap://localhost:{port}/"]
        server = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        wait_for(port, server)
        yield port
    finally:
        server.kill()
        server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and server.poll() is None:
        try:
            socket.create_connection(("localhost", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"slapd does not listen; status {server.poll()}")


def make_certificate(place: Path) -> None:
    """Make a self-signed certificate for the name of this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = sorted({"localhost", socket.gethostname(), socket.getfqdn()})
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (place / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    written = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (place / "key.pem").write_bytes(written)
