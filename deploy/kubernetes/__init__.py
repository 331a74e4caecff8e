"""Manifests for Kubernetes, where Dask's operator runs a sweep: templates, and what fills them."""

from evalcube.deploy.kubernetes.manifest import KubernetesJob, manifest, resource_name

__all__ = ["KubernetesJob", "manifest", "resource_name"]
