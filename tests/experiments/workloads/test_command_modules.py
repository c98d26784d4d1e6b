"""Environment modules of a command are loaded by a login shell."""

import subprocess

from experiments import workloads

PROFILE = """PATH=/usr/bin:/bin
export MODE=of-the-profile
module() {
    for each in "${@:2}"; do
        test "$each" != missing || { echo "no module $each" >&2; return 1; }
        PATH="/of/$each:$PATH"; LOADED="$LOADED $each"; export LOADED
    done
}
"""


def run(home, modules, **environment):
    """Run a program that prints its environment, with a profile with “module”."""
    (home / ".bash_profile").write_text(PROFILE)
    words = ["/bin/sh", "-c", 'echo "$1 $MODE $PATH$LOADED"', "sh", "{size}"]
    asked = {"program": words, "placeholders": {"size": {"default": 7}}, "modules": modules, "environment": environment}
    workload = workloads.get("command", asked)
    parameters = workload.parameters_type(**asked, size=8)
    given = workload.environment(parameters, ranks=1)
    return subprocess.run(
        workload.command(parameters, ranks=1),
        env={"HOME": str(home), **given},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_loads_them_in_their_order_and_hands_over_the_words(tmp_path):
    ended = run(tmp_path, ["gcc/12", "openmpi/4.1"])
    assert ended.stdout.split(maxsplit=2) == [
        "8",
        "of-the-profile",
        "/of/openmpi/4.1:/of/gcc/12:/usr/bin:/bin gcc/12 openmpi/4.1\n",
    ]


def test_environment_overrides_the_profile_and_is_extended_by_modules(tmp_path):
    ended = run(tmp_path, ["openmpi/4.1"], PATH="/opt/lab/bin:/usr/bin:/bin", MODE="it's {size}")
    assert ended.stdout == "8 it's 8 /of/openmpi/4.1:/opt/lab/bin:/usr/bin:/bin openmpi/4.1\n"


def test_a_module_that_there_is_not_fails_the_rank_and_runs_nothing(tmp_path):
    ended = run(tmp_path, ["missing"])
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "no module missing" in ended.stderr
