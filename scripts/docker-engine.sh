#!/bin/sh
# Starts or stops a Docker Engine of its own in a folder, for machines where none runs (CI, containers, test machines).
#
#   scripts/docker-engine.sh start DIR    prints unix://DIR/docker.sock, the value for DOCKER_HOST, when it is up
#   scripts/docker-engine.sh stop DIR     ends it by its pid file
#
# It has no network of its own (no bridge, no firewall rules): containers get `--network none` or `--network host`.
# Needs root and Docker Engine (Debian: scripts/install-packages.sh --with-docker).
set -eu

usage() {
    echo "usage: $0 start|stop DIR" >&2
    exit 2
}

[ $# -eq 2 ] || usage
action=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
DOCKER_HOST=unix://$dir/docker.sock
export DOCKER_HOST

running() {
    [ -s "$dir/pid" ] && kill -0 "$(cat "$dir/pid")" 2>/dev/null
}

start() {
    if running && docker version >/dev/null 2>&1; then
        echo "$DOCKER_HOST"
        return
    fi
    command -v dockerd >/dev/null || {
        echo "$0: no dockerd here; run scripts/install-packages.sh --with-docker" >&2
        exit 4
    }
    rm -f "$dir/pid"
    setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" --host "$DOCKER_HOST" --pidfile "$dir/pid" \
        --iptables=false --ip6tables=false --bridge=none >"$dir/log" 2>&1 </dev/null &
    tries=0
    until docker version >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -ge 120 ]; then
            echo "$0: dockerd did not come up in 60 s; the end of $dir/log:" >&2
            tail -n 20 "$dir/log" >&2
            exit 4
        fi
        sleep 0.5
    done
    echo "$DOCKER_HOST"
}

# The engine leaves mounts (the host's network namespace, layers of containers that were running) when it ends; the
# folder cannot be removed while they stand. Latest first.
unmount_all() {
    cut -d ' ' -f 5 /proc/self/mountinfo | grep -F "$dir/" | tac | while read -r mount; do
        umount -l "$mount"
    done
}

stop() {
    running || {
        unmount_all
        return 0
    }
    pid=$(cat "$dir/pid")
    kill "$pid"
    tries=0
    while kill -0 "$pid" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 60 ] || {
            echo "$0: dockerd (pid $pid) is still ending" >&2
            exit 1
        }
        sleep 0.5
    done
    unmount_all
}

case $action in
start) start ;;
stop) stop ;;
*) usage ;;
esac
