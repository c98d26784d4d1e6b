# Web, worker and beat are the same image with another command (docker-compose.yml).
FROM debian:12-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 \
 && useradd --create-home --uid 1000 rankwire

WORKDIR /srv/rankwire
COPY . .
RUN script/bootstrap \
 && rm -rf /var/lib/apt/lists/* /root/.cache /root/.npm \
 && chown -R rankwire:rankwire var
USER rankwire
VOLUME /srv/rankwire/var
ENV DJANGO_SETTINGS_MODULE=config.settings PYTHONUNBUFFERED=1 PATH=/srv/rankwire/.venv/bin:$PATH
EXPOSE 8000
CMD ["gunicorn", "--config", "python:config.gunicorn", "--bind", "0.0.0.0:8000", "config.wsgi:application"]
