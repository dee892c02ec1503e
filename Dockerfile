# syntax=docker/dockerfile:1
FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY tools/empty-package tools/empty-package
# No dev dependencies; no optional ones either: the embedded PostgreSQL is never used with DATABASE_URL.
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY src src
USER node
EXPOSE 9464
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["node", "src/healthcheck.ts"]
# `node` itself is PID 1: npm would not pass SIGTERM on. Node runs TypeScript as it is.
ENTRYPOINT ["node", "src/main.ts"]
CMD ["run"]
