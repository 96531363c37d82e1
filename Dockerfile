# trainmedic on CPU: the embedded default, no torch, no network needed at run time.
#   docker build -t trainmedic .
#   docker run --init --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 -e TRAINMEDIC_API_KEYS="$(openssl rand -hex 24)" -v trainmedic:/data trainmedic
# compose.yaml is the same with PostgreSQL and the key in a file. docs/run/deployment.md says how it is tested.

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 ORT_DISABLE_TELEMETRY=1
RUN python -m venv /opt/trainmedic
COPY pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY trainmedic trainmedic
COPY kb kb
COPY service service
COPY ingest ingest
COPY ui ui
# The set of `make install`. Afterwards pip is of no use: the image is replaced, never changed.
RUN /opt/trainmedic/bin/pip install --quiet --constraint constraints.txt ".[serve,slack,mcp,notify,ingest,postgres,otel]" ./kb/data \
 && /opt/trainmedic/bin/pip check \
 && /opt/trainmedic/bin/pip uninstall --quiet --yes setuptools pip
# The index is part of trainmedic-data: the first answer must not wait for it, whatever is mounted at /data.
RUN /opt/trainmedic/bin/trainmedic index build --package >/dev/null \
 && mkdir /data

FROM python:3.11-slim-bookworm
# Numbers, so that a cluster can check that it is not root, and a volume can be made to fit.
RUN groupadd --system --gid 10001 trainmedic \
 && useradd --system --uid 10001 --gid 10001 --home-dir /data --shell /usr/sbin/nologin trainmedic
COPY --from=build /opt/trainmedic /opt/trainmedic
COPY --from=build --chown=10001:10001 /data /data
USER 10001:10001
WORKDIR /data
# The history, and the index of your own pages.
VOLUME /data
ENV PATH=/opt/trainmedic/bin:$PATH HOME=/data TRAINMEDIC_DATA_DIR=/data PYTHONDONTWRITEBYTECODE=1
# Nothing of what the image is made of reports home. onnxruntime does by default, and keeps an identifier in HOME.
ENV HF_HUB_OFFLINE=1 HF_HUB_DISABLE_TELEMETRY=1 ORT_DISABLE_TELEMETRY=1 GRADIO_ANALYTICS_ENABLED=False
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ.get('TRAINMEDIC_PORT', 8000)}/livez\", timeout=2)"]
# Beyond loopback a key is needed: TRAINMEDIC_API_KEYS, or TRAINMEDIC_API_KEYS_FILE for a mounted secret.
CMD ["trainmedic", "serve", "--host", "0.0.0.0"]
