# Takes the future out of the repository of the working folder: `strip.sh COMMIT`. Files and index stay as they are.
set -eu
base=$1
export GIT_NO_REPLACE_OBJECTS=1
dir=$(git rev-parse --absolute-git-dir)
branch=$(git symbolic-ref -q --short HEAD || echo main)
git config core.logAllRefUpdates false
git config gc.auto 0
git config advice.detachedHead false
git config user.name >/dev/null || git config user.name memtrial
git config user.email >/dev/null || git config user.email memtrial@localhost

# What is under way, other worktrees, bookkeeping with names of commits.
rm -rf "$dir"/logs "$dir"/worktrees "$dir"/rebase-apply "$dir"/rebase-merge "$dir"/sequencer "$dir"/refs/stash \
  "$dir"/refs/original "$dir"/NOTES_MERGE_*
rm -f "$dir"/*_HEAD "$dir"/MERGE_* "$dir"/SQUASH_MSG "$dir"/COMMIT_EDITMSG "$dir"/BISECT_* "$dir"/AUTO_MERGE \
  "$dir"/gc.log "$dir"/gc.pid "$dir"/objects/pack/*.keep "$dir"/objects/pack/multi-pack-index*
rm -rf "$dir"/objects/info/commit-graph "$dir"/objects/info/commit-graphs

git remote | while read -r remote; do git remote remove "$remote"; done
git config --get-regexp '^(remote|branch)\..*' 2>/dev/null | cut -d. -f1,2 | sort -u | while read -r section; do
  git config --remove-section "$section" 2>/dev/null || true
done

# The branch at the base commit, and the tags of its past; every other ref goes.
git update-ref --no-deref HEAD "$base"
git update-ref "refs/heads/$branch" "$base"
git symbolic-ref HEAD "refs/heads/$branch"
lists=$(mktemp -d)
{ echo "refs/heads/$branch"; git for-each-ref --merged "$base" --format='%(refname)' refs/tags; } | sort >"$lists/kept"
git for-each-ref --format='%(refname)' | sort | comm -13 "$lists/kept" - | sed 's/^/delete /' | git update-ref --stdin
rm -rf "$lists" "$dir"/logs
