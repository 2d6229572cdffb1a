# The image of pawl: Node, the production dependencies, the sources. No compiler and no development dependency is in it.
FROM node:26-bookworm-slim
ENV NODE_ENV=production PAWL_HOST=0.0.0.0 PAWL_INTERNAL_HOST=0.0.0.0 PAWL_DATA_DIR=/data
# 1000 is the user `node` of the base image; as a number it also satisfies a cluster that demands a user other than root.
RUN install -d -o 1000 -g 1000 -m 0700 /data
WORKDIR /app
# The base image brings Node, so the optional packages that hold it for other machines stay out.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional
COPY bin bin
COPY migrations migrations
COPY scripts scripts
COPY src src
USER 1000:1000
VOLUME /data
# 8081 is that of the internal listener, when PAWL_INTERNAL_PORT=8081 asks for one. Never publish it to phones.
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["node", "bin/health.mjs"]
# Node itself is the process that gets the signals: no shell, no npm.
CMD ["node", "bin/pawl.mjs"]
