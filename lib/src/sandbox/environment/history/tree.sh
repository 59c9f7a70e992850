# tree.sh STATE: after probe.sh, which files of the checkout are not as at the base commit: changed or
# untracked, ignored ones too, each path ended by a NUL.
place=$(pwd) state=$1
real=$(git_dir "$place")
cd "$place" || exit 1
shadow_dir=$state/git
export GIT_DIR="$shadow_dir" GIT_OBJECT_DIRECTORY="$real/objects" GIT_WORK_TREE="$place" GIT_INDEX_FILE="$state/base-index"
git config -f "$shadow_dir/config" core.bare false
git read-tree "$(cat "$state/base")" || exit 1
printf '\0\0'
git -c core.fileMode=false -c core.untrackedCache=false ls-files -z --modified --others 2>/dev/null
