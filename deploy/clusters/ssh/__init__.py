"""Workers on other hosts, started over SSH."""

from deploy.clusters.ssh.cluster import Ssh
from deploy.clusters.ssh.host import Host, Login

__all__ = ["Host", "Login", "Ssh"]
