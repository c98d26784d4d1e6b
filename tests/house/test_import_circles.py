"""No module imports, directly or through others, a module that imports it.

Imports in functions and for type checkers count: they show which modules must know each other.
"""

from __future__ import annotations

from collections import defaultdict

import grimp
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOMS = ("config", "dashboard", "workers", "experiments", "analysis")


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Return the modules of each circle of imports."""
    modules = sorted(graph.modules)
    number = {module: index for index, module in enumerate(modules)}
    imports = [
        (number[module], number[imported])
        for module in modules
        for imported in graph.find_modules_directly_imported_by(module)
    ]
    matrix = coo_array((np.ones(len(imports)), tuple(np.array(imports).T)), shape=(len(modules), len(modules)))
    _, labels = connected_components(matrix.tocsr(), connection="strong")
    members = defaultdict(list)
    for module, label in zip(modules, labels.tolist(), strict=True):
        members[label].append(module)
    return [circle for circle in members.values() if len(circle) > 1]


def test_modules_import_each_other_in_no_circle() -> None:
    assert circles(grimp.build_graph(*ROOMS, cache_dir=None)) == []


def test_circles_are_found_through_other_modules() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")]:
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c"]]
