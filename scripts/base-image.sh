#!/bin/sh
# Makes a Debian root file system that tasks can be built and tested on, and a container image of it.
#
#   scripts/base-image.sh ROOTFS_DIR [IMAGE]
#
# ROOTFS_DIR is filled by debootstrap unless it already holds a finished one. With IMAGE the folder is also imported
# under that name into the engine that DOCKER_HOST names (ENGINE=podman for Podman). Needs root.
#
#   SUITE      Debian suite                (bookworm)
#   MIRROR     Debian mirror               (http://deb.debian.org/debian)
#   PACKAGES   packages, comma-separated   (Python, Go, C and what their builds ask for)
set -eu

case $# in
1 | 2) ;;
*)
    echo "usage: $0 ROOTFS_DIR [IMAGE]" >&2
    exit 2
    ;;
esac
rootfs=$1
image=${2:-}
suite=${SUITE:-bookworm}
mirror=${MIRROR:-http://deb.debian.org/debian}
packages=${PACKAGES:-git,patch,procps,python3,python3-dev,python3-pip,python3-pytest,python3-venv,golang-go,gcc,g++,libc6-dev,make,pkg-config}
finished=$rootfs/etc/memtrial-base

wanted="$suite $packages"
if [ "$(cat "$finished" 2>/dev/null)" != "$wanted" ]; then
    if [ -e "$rootfs" ] && [ -n "$(ls -A "$rootfs")" ]; then
        echo "$0: $rootfs holds something else or an unfinished system: remove it or name another folder" >&2
        exit 3
    fi
    mkdir -p "$rootfs"
    run() {
        "$@" >>"$rootfs.log" 2>&1 || {
            echo "$0: $1 failed; the end of $rootfs.log:" >&2
            tail -n 20 "$rootfs.log" >&2
            exit 4
        }
    }
    : >"$rootfs.log"
    run debootstrap --variant=minbase --include=ca-certificates "$suite" "$rootfs" "$mirror"
    # apt, not debootstrap: only apt understands packages that others provide.
    export DEBIAN_FRONTEND=noninteractive
    run chroot "$rootfs" apt-get update
    # shellcheck disable=SC2046 # one word a package
    run chroot "$rootfs" apt-get install -y --no-install-recommends $(echo "$packages" | tr , ' ')
    # Debian marks its Python as managed; inside a sandbox pip may install beside it.
    rm -f "$rootfs"/usr/lib/python3*/EXTERNALLY-MANAGED
    rm -rf "$rootfs"/var/cache/apt/archives/*.deb "$rootfs"/var/lib/apt/lists/*
    echo "$wanted" >"$finished"
fi
echo "root file system: $rootfs"

if [ -n "$image" ]; then
    tar -C "$rootfs" --one-file-system -c . | "${ENGINE:-docker}" import - "$image" >/dev/null
    echo "image: $image"
fi
