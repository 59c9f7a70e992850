# Puts the repository of the working folder on a branch at a commit: `settle.sh COMMIT`. Files and index stay as they are.
set -eu
export GIT_NO_REPLACE_OBJECTS=1
branch=$(git symbolic-ref -q --short HEAD || echo main)
git config core.logAllRefUpdates false
git config gc.auto 0
git config advice.detachedHead false
git config user.name >/dev/null || git config user.name memtrial
git config user.email >/dev/null || git config user.email memtrial@localhost
git update-ref --no-deref HEAD "$1"
git update-ref "refs/heads/$branch" "$1"
git symbolic-ref HEAD "refs/heads/$branch"
