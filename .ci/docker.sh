#!/usr/bin/env bash
# Sets up a Docker engine and the sandbox image from Debian packages alone; no registry is needed. A step is skipped when
# its result exists already, so this can run again at no cost. Needs root and a Debian mirror.
#   DOCKER_SOCKET  where the engine listens, if one has to be started   [/var/run/docker.sock]
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
socket="${DOCKER_SOCKET:-/var/run/docker.sock}"
state=/var/lib/bestofn-ci
base=bestofn-base:bookworm
export DEBIAN_FRONTEND=noninteractive DOCKER_HOST="unix://$socket"

engine_answers() { [ -S "$socket" ] && curl -sf --unix-socket "$socket" http://docker/_ping >/dev/null; }

install_packages() {
  local missing=()
  command -v dockerd >/dev/null || missing+=(docker.io)
  command -v debootstrap >/dev/null || missing+=(debootstrap)
  command -v curl >/dev/null || missing+=(curl)
  [ ${#missing[@]} -eq 0 ] && return
  apt-get update -qq
  # The package would start the engine with networks that a bare machine does not have, so start_engine does it.
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
  rm -f /usr/sbin/policy-rc.d
}

mount_cgroups() {
  # A machine without systemd has no cgroup mounts; an engine needs one of the two versions.
  mountpoint -q /sys/fs/cgroup && return
  mount -t cgroup2 none /sys/fs/cgroup
}

start_engine() {
  engine_answers && return
  mount_cgroups
  mkdir -p "$state"
  rm -f /var/run/docker.pid
  setsid nohup dockerd --host "unix://$socket" --iptables=false --ip6tables=false --bridge=none \
    --storage-driver overlay2 --data-root "$state/docker" --exec-root /run/bestofn-docker \
    >"$state/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 100); do engine_answers && return; sleep 0.3; done
  echo "dockerd did not answer within 30 s; the end of $state/dockerd.log:" >&2
  tail -n 30 "$state/dockerd.log" >&2
  exit 1
}

import_base() {
  docker image inspect "$base" >/dev/null 2>&1 && return
  local tree; tree="$(mktemp -d)"
  debootstrap --variant=minbase bookworm "$tree" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$state/debootstrap.log" 2>&1 \
    || { tail -n 20 "$state/debootstrap.log" >&2; exit 1; }
  # The image build uses the name servers and proxies of this machine.
  cp /etc/resolv.conf "$tree/etc/resolv.conf" 2>/dev/null || true
  cp -r /etc/apt/apt.conf.d/. "$tree/etc/apt/apt.conf.d/" 2>/dev/null || true
  tar -C "$tree" -c . | docker import - "$base" >/dev/null
  rm -rf "$tree"
}

build_image() {
  local tag; tag="bestofn-sandbox:$(sha256sum "$root/sandbox/images/Dockerfile" | cut -c1-12)"
  docker image inspect "$tag" >/dev/null 2>&1 || DOCKER_BUILDKIT=0 docker build --quiet --network=host \
    --build-arg BASE="$base" --build-arg HTTP_PROXY="${HTTP_PROXY:-}" --build-arg http_proxy="${http_proxy:-}" \
    --tag "$tag" "$root/sandbox/images"
  echo "sandbox image: $tag"
}

install_packages
start_engine
import_base
build_image
