# Web, worker and beat are the same image with another command (docker-compose.yml).
FROM debian:12-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 \
 && useradd --create-home --uid 1000 rankwire

WORKDIR /srv/rankwire
# What is installed follows from these files alone: a change of the sources installs nothing again.
COPY script/bootstrap script/packages.txt script/
COPY requirements.lock package.json package-lock.json .npmrc ./
RUN script/bootstrap --locked \
 && rm -rf /var/lib/apt/lists/* /root/.cache /root/.npm
# The decoder's kernels follow from the analysis alone. A new volume begins with them, and its first analysis need not wait.
COPY analysis analysis
RUN install -d -o rankwire -g rankwire var var/cache
USER rankwire
RUN XDG_CACHE_HOME=/srv/rankwire/var/cache .venv/bin/python -m analysis.warm_up
USER root
# What of C is loaded into trials follows from these two.
COPY workers workers
RUN .venv/bin/python -c 'from workers.profile.library import library; from workers.testbed.relay_library import made_relay; library(); made_relay()'
COPY . .
# The settings make a secret key wherever they find none: each installation makes its own.
RUN script/bootstrap --no-kernels \
 && find var -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +
USER rankwire
VOLUME /srv/rankwire/var
# Kernels that change later are compiled once: they outlive the container.
ENV DJANGO_SETTINGS_MODULE=config.settings PYTHONUNBUFFERED=1 PATH=/srv/rankwire/.venv/bin:$PATH XDG_CACHE_HOME=/srv/rankwire/var/cache
EXPOSE 8000
CMD ["gunicorn", "--config", "python:config.gunicorn", "--bind", "0.0.0.0:8000", "config.wsgi:application"]
