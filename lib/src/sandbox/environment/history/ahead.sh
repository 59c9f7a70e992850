# ahead.sh STATE: after probe.sh, lays out in the folder STATE/ahead, to be searched, what is accepted without being the
# base commit's: `tags` (annotated tags of the past, which may be younger than what they are on), and of the commit that
# set the environment up `commit` (who, when, message) and under `files` what it changes.
state=$1 at=$1/ahead
mkdir -p "$at/files" "$state/git/info" || exit 1
export GIT_DIR="$state/git" GIT_OBJECT_DIRECTORY="$(cat "$state/objects-at")" GIT_WORK_TREE="$at/files" \
  GIT_INDEX_FILE="$state/ahead-index"
cut -d ' ' -f 1 "$state/refs-kept" | git cat-file --batch-check | sed -n 's/ tag .*//p' |
  git cat-file --batch > "$at/tags"
commit=$(cat "$state/setup")
[ -n "$commit" ] || exit 0
git cat-file commit "$commit" > "$at/commit" || exit 1
git config -f "$GIT_DIR/config" core.bare false
git config -f "$GIT_DIR/config" core.symlinks false
# each byte as it is stored, whatever attributes the commit brings
echo '* -text !eol !ident !filter !working-tree-encoding' > "$GIT_DIR/info/attributes"
git read-tree "$commit" || exit 1
cd "$at/files" || exit 1
git diff-tree -r -z --no-renames --no-commit-id --diff-filter=d --name-only "$(cat "$state/base")" "$commit" |
  git checkout-index -q -z --stdin
