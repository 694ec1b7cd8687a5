# The image holds two programs, the shared libraries that they load, and nothing else.
#   docker build -t twinrail .
#   docker buildx build --platform linux/amd64,linux/arm64 -t twinrail .
ARG BASE=docker.io/library/debian:12-slim

FROM ${BASE} AS build
WORKDIR /src
COPY tests/deps tests/deps
RUN tests/deps build && rm -rf /var/lib/apt/lists/*
COPY Makefile LICENSE ./
COPY proto proto
COPY driver driver
RUN make -j"$(nproc)"
COPY tests/image-root tests/image-root
RUN tests/image-root build /out

FROM scratch
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="twinrail" \
      org.opencontainers.image.description="Topology-aware DRA driver that pairs GPUs with RDMA NICs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /out /
ENV PATH=/usr/bin
ENTRYPOINT ["/usr/bin/twinrail"]
CMD ["agent"]
