# Prints a line for each trace of the future in the repository of the working folder: `prove.sh COMMIT`. No line is the
# proof: every object is one of the commit's past (or of the one commit that sets the installation aside), every ref
# points there, nothing else names a commit.
set -eu
base=$1
export GIT_NO_REPLACE_OBJECTS=1
dir=$(git rev-parse --absolute-git-dir)
head=$(git rev-parse HEAD)
[ "$head" = "$base" ] || [ "$(git rev-parse 'HEAD^@')" = "$base" ] || echo "HEAD is at $head"
lists=$(mktemp -d)
{ git for-each-ref --merged "$head" --format='%(objectname)'; echo "$head"; } |
  git rev-list --objects --stdin | cut -d' ' -f1 | sort -u >"$lists/past"
git cat-file --batch-all-objects --batch-check='%(objectname) %(objecttype)' | sort -u >"$lists/all"
join -v 2 "$lists/past" "$lists/all" | sed -n '1,20s/^/object that is no part of the past: /p'
git for-each-ref --format='%(refname)' | sort >"$lists/refs"
git for-each-ref --merged "$head" --format='%(refname)' | sort >"$lists/merged"
comm -23 "$lists/refs" "$lists/merged" | sed 's/$/ points past the base commit/'
rm -rf "$lists"
git remote | sed 's/^/remote /'
for name in ORIG_HEAD FETCH_HEAD MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD BISECT_LOG worktrees \
  objects/info/alternates; do
  if [ -e "$dir/$name" ]; then echo "file .git/$name"; fi
done
if [ -d "$dir/logs" ]; then find "$dir/logs" -type f -size +0 | sed 's/^/reflog /'; fi
