# An image that holds the service and nothing else: docs/operators.md, "In a container".
#
#   docker build --tag fhirpub .      (podman or buildah: with --format docker, for HEALTHCHECK)
#   docker run --publish 127.0.0.1:8080:8080 --volume fhirpub:/var/lib/fhirpub --read-only fhirpub
#
# BASE needs Python 3.11 or newer with venv. It is also what the image is built with, so that
# compiled packages fit.
ARG BASE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
COPY constraints/release.txt constraints/
RUN python3 -m venv /tools \
    && /tools/bin/pip install --no-cache-dir --require-hashes --no-deps -r constraints/release.txt
COPY pyproject.toml setup.py README.md LICENSE ./
COPY schemas schemas
COPY plugins plugins
COPY fhirpub fhirpub
RUN /tools/bin/python -m build --wheel --no-isolation --outdir /wheel

# scripts/release puts the wheel that it publishes in the place of this stage.
FROM scratch AS wheel
COPY --from=build /wheel/ /

FROM ${BASE} AS install
WORKDIR /build
COPY constraints/service.txt constraints/
# pip stays outside of what is copied. Without compiling: its files would hold times.
RUN python3 -m venv /tools \
    && python3 -m venv --without-pip /opt/fhirpub \
    && /tools/bin/pip --python /opt/fhirpub/bin/python install --no-cache-dir --no-compile \
        --require-hashes --no-deps -r constraints/service.txt
COPY --from=wheel / /wheel/
RUN /tools/bin/pip --python /opt/fhirpub/bin/python install --no-cache-dir --no-compile \
        --no-index --no-deps /wheel/*.whl \
    && /tools/bin/pip --python /opt/fhirpub/bin/python check \
    && /opt/fhirpub/bin/python -m compileall -qf --invalidation-mode unchecked-hash /opt/fhirpub/lib

FROM ${BASE}
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="fhirpub" \
    org.opencontainers.image.description="Publish diagnostic reports over FHIR R4: one call, safe to repeat." \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
RUN echo "fhirpub:x:10001:" >> /etc/group \
    && echo "fhirpub:x:10001:10001::/var/lib/fhirpub:/usr/sbin/nologin" >> /etc/passwd \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/fhirpub
COPY --from=install /opt/fhirpub /opt/fhirpub
COPY deploy/container/fhirpub.toml /etc/fhirpub/fhirpub.toml
ENV PATH=/opt/fhirpub/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# Commands read fhirpub.toml in the folder in which they run.
WORKDIR /etc/fhirpub
USER 10001:10001
VOLUME /var/lib/fhirpub
EXPOSE 8080 9464
STOPSIGNAL SIGTERM
# The first start on an older store may upgrade it for minutes before it listens.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/opt/fhirpub/bin/python", "-Sc", "import os; from http.client import HTTPConnection; c = HTTPConnection('127.0.0.1', int(os.environ.get('FHIRPUB_SERVER__PORT', 8080)), timeout=4); c.request('GET', '/health/live'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["fhirpub"]
CMD ["serve"]
