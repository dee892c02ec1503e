/** For the image's HEALTHCHECK: asks this container's worker whether its loop turns. Exit 0 or 1. */
const { HTTP_HOST: host, HTTP_PORT: port } = process.env
const anyAddress = new Set([undefined, "", "0.0.0.0", "::"])
const name = anyAddress.has(host) ? "localhost" : host?.includes(":") ? `[${host}]` : host

fetch(`http://${name}:${port || 9464}/health/live`).then(
  (response) => process.exit(response.ok ? 0 : 1),
  () => process.exit(1)
)
