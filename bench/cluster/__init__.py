"""An installation on several hosts, which are network namespaces of one machine.

docs/guides/cluster.md describes what it shows and how to run it.
"""

from .cluster import Cluster, run_cluster

__all__ = ["Cluster", "run_cluster"]
