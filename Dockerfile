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
COPY . .
# The settings make a secret key wherever they find none: each installation makes its own.
RUN script/bootstrap \
 && rm -rf var \
 && install -d -o rankwire -g rankwire var
USER rankwire
VOLUME /srv/rankwire/var
# Compiled kernels outlive the container: the first analysis of the next one need not wait for them.
ENV DJANGO_SETTINGS_MODULE=config.settings PYTHONUNBUFFERED=1 PATH=/srv/rankwire/.venv/bin:$PATH XDG_CACHE_HOME=/srv/rankwire/var/cache
EXPOSE 8000
CMD ["gunicorn", "--config", "python:config.gunicorn", "--bind", "0.0.0.0:8000", "config.wsgi:application"]
