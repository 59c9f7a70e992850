# Finds the task's repository among folders: `find.sh BASE FOLDER…`. Prints `found FOLDER COMMIT`, or a line for each
# repository that is another one's or stands elsewhere.
set -u
base=$1
shift
git config --system --add safe.directory '*' 2>/dev/null || git config --global --add safe.directory '*' || exit 3
for folder in "$@"; do
  [ -e "$folder/.git" ] && cd "$folder" || continue
  if ! commit=$(git rev-parse -q --verify "$base^{commit}" 2>/dev/null); then
    echo "$folder has no commit $base"
    continue
  fi
  head=$(git rev-parse HEAD)
  # SWE-bench puts one commit of its own on top.
  if [ "$head" != "$commit" ] && [ "$(git rev-parse 'HEAD^@')" != "$commit" ]; then
    echo "$folder stands at $head and not at $base"
    continue
  fi
  echo "found $folder $commit"
  exit 0
done
