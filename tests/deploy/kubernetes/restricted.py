"""The rules of the Pod Security Standard `restricted`, as of Kubernetes 1.33, for a pod on Linux.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

_VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"),
    *("persistentVolumeClaim", "projected", "secret"),
}
_PROFILES = ("RuntimeDefault", "Localhost")
_SELINUX = (None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_SYSCTLS = {
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
    *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
    *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}


def containers_of(pod):
    """Return all containers of a pod, whenever they run."""
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return [container for kind in kinds for container in pod.get(kind, ())]


def violations(pod):
    """Return the fields of a pod that the profile forbids, or finds missing."""
    shared = pod.get("securityContext", {})
    volumes = [key for volume in pod.get("volumes", ()) for key in volume if key != "name"]
    rules = {
        **{name: not pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")},
        "volumes": set(volumes) <= _VOLUMES,
        "sysctls": {sysctl["name"] for sysctl in shared.get("sysctls", ())} <= _SYSCTLS,
        **_rules_of_both(shared),
    }
    for container in containers_of(pod):
        rules |= {f"{container['name']}.{name}": met for name, met in _rules(container, shared).items()}
    return [name for name, met in rules.items() if not met]


def _rules_of_both(context):
    """Return what holds of the security context of a pod as of that of a container: field -> whether it is met."""
    linux = context.get("seLinuxOptions", {})
    armour = context.get("appArmorProfile", {}).get("type", "RuntimeDefault")
    return {
        "runAsUser": context.get("runAsUser") != 0,
        "seLinuxOptions": linux.get("type") in _SELINUX and not linux.get("user") and not linux.get("role"),
        "appArmorProfile": armour in _PROFILES,
        "hostProcess": not context.get("windowsOptions", {}).get("hostProcess"),
    }


def _rules(container, shared):
    own = container.get("securityContext", {})
    context = {**shared, **own}  # what a container does not say, its pod says for it
    capabilities = own.get("capabilities", {})
    hooks = [container.get(name, {}) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
    hooks += container.get("lifecycle", {}).values()
    actions = [hook.get(kind, {}) for hook in hooks for kind in ("httpGet", "tcpSocket")]
    return {
        "privileged": not own.get("privileged"),
        "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
        "runAsNonRoot": context.get("runAsNonRoot") is True,
        "seccompProfile": context.get("seccompProfile", {}).get("type") in _PROFILES,
        "capabilities": "ALL" in capabilities.get("drop", ())
        and set(capabilities.get("add", ())) <= {"NET_BIND_SERVICE"},
        "procMount": own.get("procMount", "Default") == "Default",
        "hostPort": not any(port.get("hostPort") for port in container.get("ports", ())),
        "host": not any(action.get("host") for action in actions),
        **_rules_of_both(own),
    }
