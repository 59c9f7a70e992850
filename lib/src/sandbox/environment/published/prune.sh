# Drops what nothing names any more, where there is anything: `prune.sh`. Borrowed objects are copied in first.
set -eu
export GIT_NO_REPLACE_OBJECTS=1
dir=$(git rev-parse --absolute-git-dir)
lists=$(mktemp -d)
git rev-list --objects --all HEAD | cut -d' ' -f1 | sort -u >"$lists/named"
git cat-file --batch-all-objects --batch-check='%(objectname)' | sort -u >"$lists/all"
if [ -e "$dir/objects/info/alternates" ] || [ -n "$(comm -13 "$lists/named" "$lists/all" | head -n 1)" ]; then
  git repack -a -d -q
  rm -f "$dir/objects/info/alternates"
  git prune --expire=now
  git prune-packed -q
fi
rm -rf "$lists" "$dir/gc.log"
