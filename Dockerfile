# syntax=docker/dockerfile:1

# Two images, each one static program and the public certificate authorities, run as nobody in particular:
#   docker build --target operator  --tag rowgate-operator:0.1.0  .
#   docker build --target dataplane --tag rowgate-dataplane:0.1.0 .
# There is no shell in them and nothing to keep up to date but the programs.

# The version in rust-toolchain.toml (tests/tidy/main.rs compares the two), which is left out: it would fetch clippy too.
FROM rust:1.95.0-slim-bookworm AS build
# musl-tools is the C compiler of ring, mimalloc and zstd.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates musl-tools \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
# aarch64 or x86_64, whichever this builder is.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    target="$(uname -m)-unknown-linux-musl" \
 && rustup target add "$target" \
 && cargo build --release --locked --target "$target" --package rowgate-dataplane \
 && cargo build --release --locked --target "$target" --package rowgate-operator \
 && mkdir /programs \
 && cp "target/$target/release/rowgate-dataplane" "target/$target/release/rowgate-operator" /programs \
 && strip --strip-debug /programs/*

FROM scratch AS base
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# charts/rowgate says the same number.
USER 65532:65532

FROM base AS operator
COPY --from=build /programs/rowgate-operator /rowgate-operator
EXPOSE 8082
ENTRYPOINT ["/rowgate-operator"]

FROM base AS dataplane
COPY --from=build /programs/rowgate-dataplane /rowgate-dataplane
EXPOSE 8080 8081
ENTRYPOINT ["/rowgate-dataplane"]
