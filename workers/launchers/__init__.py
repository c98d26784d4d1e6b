"""Where trials run: a small registry of kinds of cluster, one class each, argv lists and never shell strings."""

from workers.launchers.base import BTL_PORTS, Job, Launcher, Link, Recording, Session
from workers.launchers.pool import SessionPool
from workers.launchers.registry import get, kinds
from workers.processes import Process

__all__ = ["BTL_PORTS", "Job", "Launcher", "Link", "Process", "Recording", "Session", "SessionPool", "get", "kinds"]
