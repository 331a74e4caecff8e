"""Workers on other hosts, started over SSH."""

from evalcube.deploy.clusters.ssh.cluster import Ssh
from evalcube.deploy.clusters.ssh.host import Host, Login

__all__ = ["Host", "Login", "Ssh"]
