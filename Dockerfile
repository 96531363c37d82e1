# trainmedic on CPU: the embedded default, no torch, no network needed at run time.
#   docker build -t trainmedic .
#   docker run --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 -e TRAINMEDIC_API_KEYS=change-me -v trainmedic:/data trainmedic
# docs/docker.md says how the same steps are run where no builder is at hand.

FROM python:3.11-slim AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/trainmedic
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY kb kb
COPY service service
COPY ingest ingest
COPY ui ui
RUN /opt/trainmedic/bin/pip install --quiet --constraint constraints.txt ".[ui,slack]"
# The index is part of the image: the first answer must not wait for it.
RUN TRAINMEDIC_DATA_DIR=/opt/trainmedic/data /opt/trainmedic/bin/trainmedic index build

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /data --create-home trainmedic
COPY --from=build /opt/trainmedic /opt/trainmedic
RUN mkdir -p /data && cp -r /opt/trainmedic/data/index /data/index && chown -R trainmedic:trainmedic /data
USER trainmedic
WORKDIR /data
VOLUME /data
ENV PATH=/opt/trainmedic/bin:$PATH TRAINMEDIC_DATA_DIR=/data HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
# Beyond loopback a key is needed: TRAINMEDIC_API_KEYS, or TRAINMEDIC_API_KEYS_FILE for a mounted secret.
CMD ["trainmedic", "serve", "--host", "0.0.0.0"]
