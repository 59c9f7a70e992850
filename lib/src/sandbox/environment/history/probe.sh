# probe.sh BASE STATE: what the repository of the working folder shows of later than BASE, one finding a line:
# DETECTOR <tab> WHERE <tab> WHAT. Lists for later steps stay in the folder STATE, where it is not empty.
place=$(pwd) base=$1 state=$2
lack=$(missing)
[ -z "$lack" ] || { say '!' "$place" "there is no $lack here to look into the repository with"; exit 0; }
real=$(git_dir "$place")
[ -n "$real" ] || { say '!' "$place" 'there is no git repository here'; exit 0; }
if [ -f "$real/commondir" ]; then say '!' "$place" 'is a linked worktree: look into its main repository'; exit 0; fi
if [ -z "$state" ]; then state=$(mktemp -d) || exit 1; trap 'rm -rf "$state"' EXIT; fi
rm -rf "$state" && mkdir -p "$state" && cd "$state" || exit 1
shadow "$real" "$state/git" || exit 1
git rev-parse --git-dir > /dev/null || exit 1
base=$(git rev-parse --verify -q "${base:-HEAD}^{commit}") ||
  { say '!' "$real" "the base commit ${1:-HEAD} is not in the repository"; exit 0; }
keep "$base" "$state" || exit 1
printf '%s\n' "$base" > base
printf '%s\n' "$real/objects" > objects-at

# unknown: of the ids on standard input, those that are none of the past
unknown() { grep -o "$hex" | grep -v '^0*$' | sort -u | comm -23 - known; }
# first COUNT: the first lines, as one
first() { head -n "$1" | tr '\n' ' ' | sed 's/ $//'; }
count() { wc -l | tr -d ' '; }
subject() { git log -1 --date=short --format='%h %s (%cd)' "$1" 2>/dev/null || printf '%s' "$1"; }
# names FILE: the ids of a file, in words
names() { printf 'names of later objects: %s (%s)' "$(count < "$1")" "$(cut -c 1-12 "$1" | first 3)"; }

# --- refs
while read -r object ref; do
  case $ref in
    refs/heads/*) detector=branch ;; refs/tags/*) detector=tag ;; refs/remotes/*) detector=remote-ref ;;
    refs/notes/*) detector=notes ;; refs/stash) detector=stash ;; refs/replace/*) detector=replace-ref ;;
    *) detector=other-ref ;;
  esac
  if git cat-file -e "$object^{commit}" 2>/dev/null; then
    later=$(git rev-list --count "$object" "^$base" 2>/dev/null)
    if [ "$later" = 0 ]; then
      # a ref of a kind that is never kept, onto the past: only some kinds say more than the commit itself
      case $detector in notes|stash|replace-ref) ;; *) continue ;; esac
    fi
    say "$detector" "$real $ref" "past the base commit by $later, up to $(subject "$object")"
  else
    say "$detector" "$real $ref" "names the object $object"
  fi
done < refs-later
# a symbolic HEAD is seen at its branch
tip=$(git rev-parse --verify -q 'HEAD^{commit}')
if [ -n "$tip" ] && ! grep -qx "$tip" allowed; then
  say head "$real HEAD" "is past the base commit: $(subject "$tip")"
fi
if [ -f "$real/packed-refs" ]; then
  # lines that a newer loose ref hides, or of broken refs
  grep -v '^[#^]' "$real/packed-refs" | sort > packed; sort refs | comm -23 packed - > stale
  unknown < stale > ids
  if [ -s ids ]; then say packed-refs "$real/packed-refs" "stale lines hold $(names ids): $(cut -d ' ' -f 2 stale | first 3)"; fi
fi

# --- files that name commits
(cd "$real" && find . -type f -size -20000 2>/dev/null) | sed 's|^\./||' | sort > files
while read -r file; do
  case $file in
    objects/info/alternates|objects/info/http-alternates)
      say alternates "$real/$file" "objects are also read from: $(first 3 < "$real/$file")"; continue ;;
    objects/pack/*.promisor) detector=promisor ;;
    objects/*|refs/*|modules/*|packed-refs|HEAD|index|hooks/*.sample|config|reftable/*|lfs/*|annex/*) continue ;;
    worktrees/*/index) continue ;;
    worktrees/*) detector=worktree ;;
    logs/*) detector=reflog ;;
    shallow) detector=shallow ;;
    info/grafts) detector=grafts ;;
    rebase-*|sequencer/*|BISECT_*) detector=operation ;;
    *_HEAD|AUTO_MERGE) detector=special-head ;;
    COMMIT_EDITMSG|MERGE_MSG|SQUASH_MSG|TAG_EDITMSG)
      { git log -1 --format=%B "$tip" 2>/dev/null; git log -1 --format=%B "$base"; } | sed '/^$/d' | sort > message
      if grep -v '^#' "$real/$file" | sed '/^[[:space:]]*$/d' | sort | comm -23 - message | grep -q .; then
        say message "$real/$file" "a message of another commit: $(grep -v '^#' "$real/$file" | head -n 1)"
      fi
      continue ;;
    *) detector=git-leftover ;;
  esac
  unknown < "$real/$file" > ids
  if [ -s ids ]; then
    say "$detector" "$real/$file" "holds $(names ids)"
  elif [ "$detector" = operation ]; then
    say operation "$real/$file" 'an unfinished rebase, pick or bisection'
  fi
done < files
for file in "$real/config" "$real/config.worktree"; do
  [ -f "$file" ] || continue
  git config -f "$file" --get-regexp '^remote\..*\.url$' 2>/dev/null | while read -r key url; do
    case $url in
      /*|./*|../*|file:*|*.bundle) what='on this machine' ;;
      *) what='elsewhere' ;;
    esac
    say remote "$file ${key%.url}" "fetches from $url, $what"
  done
  if git config -f "$file" --get-regexp '^(remote\..*\.(promisor|partialclonefilter)|extensions\.partialclone)$' > partial 2>/dev/null; then
    say promisor "$file" "a partial clone: missing objects are fetched ($(first 2 < partial))"
  fi
  if git config -f "$file" --get-regexp '^branch\..*\.description$' > described 2>/dev/null; then
    say git-leftover "$file" "a branch's description: $(first 1 < described)"
  fi
done

# --- the index: what is staged beyond HEAD
for file in "$real"/index "$real"/*index*.lock "$real"/index.* "$real"/worktrees/*/index; do
  [ -f "$file" ] && [ "$(head -c 4 "$file")" = DIRC ] || continue
  cp "$file" index.copy
  # entries without a blob of the past; what was made by intent-to-add has the empty blob
  GIT_INDEX_FILE=$state/index.copy git ls-files --stage 2>/dev/null | awk '$1 != 160000' |
    grep -v " $(git hash-object --stdin < /dev/null) " > entries
  cut -d ' ' -f 2 entries | sort -u | comm -23 - known > ids
  if [ -s ids ]; then
    grep -F -f ids entries | cut -f 2 > paths
    say index "$file" "staged beyond HEAD: $(count < paths) files ($(first 3 < paths))"
  fi
done

# --- objects that nothing kept reaches
all_objects | sort -u > all
cut -d ' ' -f 1 all | comm -23 - known > rest
if [ -s rest ]; then
  # what a ref reaches was told with the ref
  { cut -d ' ' -f 1 refs-later; printf '%s\n' "$tip"; } | sed '/^$/d' | git cat-file --batch-check='%(objectname)' |
    grep "^$hex\$" | sort -u > later-tips
  closure --stdin < later-tips 2>/dev/null | comm -13 - rest > loose-ends
else
  : > loose-ends
fi
# tell DETECTOR WHERE: of the ids in `here`
tell() {
  awk 'NR == FNR { here[$1] = 1; next } $1 in here' here all > typed
  commits=$(grep -c ' commit$' typed)
  what="$(count < here) objects that nothing of the past reaches, $commits of them commits"
  commit=$(sed -n 's/ commit$//p' typed | head -n 1)
  if [ -n "$commit" ]; then what="$what, for example $(subject "$commit")"; else what="$what: $(cut -c 1-12 here | first 3)"; fi
  say "$1" "$2" "$what"
}
if [ -s loose-ends ]; then
  (cd "$real/objects" && find . -type f -path './[0-9a-f][0-9a-f]/*') | tr -d './' | sort -u > loose
  comm -12 loose-ends loose > here
  if [ -s here ]; then tell dangling-loose "$real/objects/$(head -n 1 here | sed 's/^../&\//')"; fi
  comm -23 loose-ends loose > left
  for index in "$real"/objects/pack/*.idx; do
    [ -s left ] && [ -f "${index%.idx}.pack" ] || continue
    git show-index < "$index" 2>/dev/null | cut -d ' ' -f 2 | sort -u > inside
    comm -12 left inside > here
    if [ -s here ]; then
      detector=dangling-packed
      if [ -f "${index%.idx}.mtimes" ]; then detector=cruft-pack; fi
      tell "$detector" "${index%.idx}.pack"
      comm -23 left inside > left.next && mv left.next left
    fi
  done
  if [ -s left ]; then cp left here; tell alternates "$real/objects/info/alternates"; fi
fi
for index in "$real"/objects/pack/*.idx; do
  [ -f "$index" ] && [ ! -f "${index%.idx}.pack" ] || continue
  git show-index < "$index" 2>/dev/null | cut -d ' ' -f 2 | sort -u | comm -23 - known > ids
  if [ -s ids ]; then say pack-remnant "$index" "the index of a pack that is gone holds $(names ids)"; fi
done
# objects that are there, but in a form that git overlooks
for file in "$real"/objects/pack/tmp_* "$real"/objects/tmp_* "$real"/objects/incoming-* "$real"/objects/quarantine*; do
  if [ -e "$file" ]; then say pack-remnant "$file" 'objects of an unfinished transfer'; fi
done
