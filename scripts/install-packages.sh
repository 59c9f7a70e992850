#!/bin/sh
# Installs the system packages that memtrial and its tests use, only those that are missing.
#
#   scripts/install-packages.sh            git, Python with venv and pytest, C tools: what the host base of sandboxes
#                                          needs to build and test the bundled tasks
#   scripts/install-packages.sh --with-docker   also Docker Engine and debootstrap, for the back end `docker`
#   scripts/install-packages.sh --check    only says what is missing; exits 4 if anything is
#
# Needs apt (Debian, Ubuntu) and root; on other systems it says what to install.
set -eu

programs="git:git python3:python3 make:make gcc:gcc patch:patch setsid:util-linux ps:procps"
check=false
for argument in "$@"; do
    case $argument in
    --with-docker) programs="$programs dockerd:docker.io debootstrap:debootstrap" ;;
    --check) check=true ;;
    *)
        echo "usage: $0 [--with-docker] [--check]" >&2
        exit 2
        ;;
    esac
done

PATH=$PATH:/usr/sbin:/sbin
missing=
for pair in $programs; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || missing="$missing ca-certificates"
[ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
# Sandboxes see the system's Python, not one from a home folder.
system_python=/usr/bin/python3
$system_python -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
$system_python -c 'import pytest' 2>/dev/null || missing="$missing python3-pytest"

if [ -z "$missing" ]; then
    echo "nothing is missing"
    exit 0
fi
if $check; then
    echo "missing:$missing" >&2
    exit 4
fi
if ! command -v apt-get >/dev/null; then
    echo "$0: no apt here; with this system's package manager install what Debian calls:$missing" >&2
    exit 4
fi
if [ "$(id -u)" != 0 ]; then
    echo "$0: needs root: sudo $0 $*" >&2
    exit 4
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 # one word a package
apt-get install -q -y --no-install-recommends $missing
