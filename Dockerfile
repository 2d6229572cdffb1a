# The image of pawl: Node, the production dependencies, the sources, and the server out of them in a few files. No compiler and no development
# dependency is in it.
#
# An exact version, and better its digest, which no push to the registry can change. The digest of your registry's copy is printed by
# `docker buildx imagetools inspect node:26.10.0-bookworm-slim`; build with
# `--build-arg NODE_IMAGE=node:26.10.0-bookworm-slim@sha256:...`.
ARG NODE_IMAGE=node:26.10.0-bookworm-slim
FROM ${NODE_IMAGE} AS bundle
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY cli/fault.ts cli/
COPY migrations migrations
COPY scripts scripts
COPY src src
RUN node scripts/bundle.ts

FROM ${NODE_IMAGE}
# The bank's API has a listener of its own, on 8081. Never publish it to phones.
ENV NODE_ENV=production PAWL_HOST=0.0.0.0 PAWL_INTERNAL_HOST=0.0.0.0 PAWL_INTERNAL_PORT=8081 PAWL_DATA_DIR=/data PAWL_DRAIN_SECONDS=5
# Of the commands: what pawl login and pawl phone keep. Nothing else can be written where the file system is read-only.
ENV XDG_CONFIG_HOME=/data/account XDG_DATA_HOME=/data/account
# Memory from jemalloc: a request takes a tenth less processor time than with the allocator of the C library (docs/decisions/0025-allocator.md).
RUN apt-get update && apt-get install --yes --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/*
ENV LD_PRELOAD=libjemalloc.so.2
# A young generation of half of what V8 would take: 30 MiB less, at no cost that could be measured (docs/decisions/0014-memory.md).
ENV NODE_OPTIONS=--max-semi-space-size=16
WORKDIR /app
# The base image brings Node, so the optional packages that hold it for other machines stay out.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional
# 1000 is the user `node` of the base image; as a number it also satisfies a cluster that demands a user other than root.
RUN install -d -o 1000 -g 1000 -m 0700 /data node_modules/.cache/pawl
COPY bin bin
COPY cli cli
COPY migrations migrations
COPY phone phone
COPY src src
COPY --from=bundle /app/dist dist
RUN ln -s /app/bin/pawl.mjs /usr/local/bin/pawl
USER 1000:1000
# Compiled code is made here: containers run with a read-only file system but for /data.
RUN node bin/compile.mjs
VOLUME /data
EXPOSE 8080 8081
# Whether the process is alive: one that migrates, is draining, or whose database is away, is not to be replaced. Balancers ask /health/ready.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["node", "bin/health.mjs"]
# Node itself is the process that gets the signals: no shell, no npm. The old generation grows by less between two collections
# (docs/decisions/0014-memory.md).
CMD ["node", "--disable-sigusr1", "--heap-growing-percent=30", "bin/pawl.mjs", "serve"]
