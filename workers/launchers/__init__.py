"""Launchers: one class per kind of cluster; argv lists, no shell strings."""

from workers.hosts.processes import Process
from workers.launchers.base import Launcher, Link, Recording, Session, get
from workers.launchers.job import BTL_PORTS, Job, Profile
from workers.launchers.pool import SessionPool

__all__ = ["BTL_PORTS", "Job", "Launcher", "Link", "Process", "Profile", "Recording", "Session", "SessionPool", "get"]
