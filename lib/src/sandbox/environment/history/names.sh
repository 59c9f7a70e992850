# names.sh STATE: after probe.sh, the files of the base commit and of the commit that set the environment up
# (f <tab> PATH) and the tags of the past (t <tab> TAG), each ended by a NUL.
state=$1
export GIT_DIR="$state/git" GIT_OBJECT_DIRECTORY="$(cat "$state/objects-at")"
for commit in "$(cat "$state/base")" $(cat "$state/setup"); do
  printf '\0'
  git -c core.quotePath=false ls-tree -r -z --name-only "$commit" | tr '\n\0' ' \n' | sed 's/^/f\t/' | tr '\n' '\0'
done
sed -n 's|^[0-9a-f]* refs/tags/|t\t|p' "$state/refs-kept" | tr '\n' '\0'
