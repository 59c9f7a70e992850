# strip.sh BASE: takes out of the repository of the working folder all that is no part of the base commit's past. The files of
# the checkout, the configuration and the hooks stay. Prints one line for each thing it takes away.
#
# Killed at any moment it leaves a usable repository, and the same command goes on: first a pack is written that holds
# the whole past, then refs are dropped one by one, then files, and only then objects that nothing names any more.
place=$(pwd) base=$1
lack=$(missing)
[ -z "$lack" ] || { echo "there is no $lack here" >&2; exit 3; }
real=$(git_dir "$place")
[ -n "$real" ] || { echo "there is no git repository at $place" >&2; exit 3; }
if [ -f "$real/commondir" ]; then echo "$place is a linked worktree: strip its main repository" >&2; exit 3; fi
# One strip at a time. The lock is on the folder itself, so nothing is left behind, and every child holds it too: where
# only this shell is killed, the next strip waits for what runs on. Without `flock` there is none.
if command -v flock > /dev/null; then
  exec 9< "$real"
  tries=0
  until flock -n 9; do
    # 1: it is held; else this file system has no such locks
    [ $? = 1 ] || break
    tries=$((tries + 1))
    if [ $tries -gt 120 ]; then echo "another strip is at work in $real" >&2; exit 3; fi
    sleep 1
  done
fi
if ls "$real"/*.lock > /dev/null 2>&1; then echo "git is at work in $real: $(ls "$real"/*.lock)" >&2; exit 3; fi
if find "$real" -type l | grep -q .; then
  echo "$real holds symbolic links, for example $(find "$real" -type l | head -n 1): what they point at is not touched" >&2
  exit 3
fi
state=$(mktemp -d) || exit 1
trap 'rm -rf "$state"' EXIT
cd "$state" || exit 1

took() { printf 'took\t%s\n' "$1"; }

# strip_one REAL AT BASE: one repository, with the new folder AT to work in
strip_one() (
  real=$1 at=$2
  mkdir "$at" && cd "$at" || exit 1
  shadow "$real" "$at/git" || exit 1
  git rev-parse --git-dir > /dev/null || exit 1
  base=$(git rev-parse --verify -q "${3:-HEAD}^{commit}") || { echo "the base commit ${3:-HEAD} is not in $real" >&2; exit 3; }
  keep "$base" "$at" || exit 1
  tip=$(git rev-parse --verify -q 'HEAD^{commit}')
  if [ -z "$tip" ] || ! grep -qx "$tip" allowed; then
    echo "HEAD of $real is past the base commit: check the base commit out first" >&2; exit 3
  fi
  if [ -e "$real/reftable" ]; then echo "$real keeps its refs in a reftable: only files are stripped" >&2; exit 3; fi

  # 1. everything of the past in one new pack, also what was borrowed by alternates
  grep -v '^$' known > wanted
  git cat-file --batch-check='%(objectname)' < wanted | grep -v ' missing$' > present
  all_objects | cut -d ' ' -f 1 | sort -u > all
  comm -13 known all > surplus
  own=
  if [ -s surplus ] || [ -e "$real/objects/info/alternates" ] || [ -e "$real/objects/info/http-alternates" ]; then
    own=$(git pack-objects -q --delta-base-offset "$at/kept" < present) ||
      own=$(git pack-objects -q "$at/kept" < present) || exit 1
    mkdir -p "$real/objects/pack"
    if [ ! -f "$real/objects/pack/pack-$own.idx" ]; then
      cp "$at/kept-$own.pack" "$real/objects/pack/tmp_memtrial.pack" &&
        chmod 444 "$real/objects/pack/tmp_memtrial.pack" &&
        mv -f "$real/objects/pack/tmp_memtrial.pack" "$real/objects/pack/pack-$own.pack" || exit 1
      cp "$at/kept-$own.idx" "$real/objects/pack/tmp_memtrial.idx" &&
        chmod 444 "$real/objects/pack/tmp_memtrial.idx" &&
        mv -f "$real/objects/pack/tmp_memtrial.idx" "$real/objects/pack/pack-$own.idx" || exit 1
    fi
  fi

  # 2. refs: the kept ones move into packed-refs, then the loose files of the others go
  while read -r object ref; do took "ref $ref"; done < refs-later
  if [ -s refs-later ] || [ -f "$real/packed-refs" ]; then
    { echo '# pack-refs with: peeled fully-peeled sorted '
      awk 'NR == FNR { kept[$2] = 1; next }
        $4 in kept { print $3, $4; if ($1 != $3) print "^" $1 }' refs-kept peeled; } > "$real/packed-refs.memtrial" && mv -f "$real/packed-refs.memtrial" "$real/packed-refs" || exit 1
  fi
  cut -d ' ' -f 2 refs-later | while read -r ref; do rm -f "$real/$ref"; done

  # 3. what names the future, and what a killed run left
  rm -f "$real"/*.memtrial
  gone() { if [ -e "$real/$1" ] || [ -L "$real/$1" ]; then rm -rf "${real:?}/$1" && took "file $1"; fi; }
  for path in logs worktrees rebase-apply rebase-merge sequencer info/grafts info/refs objects/info/packs rr-cache \
    objects/info/commit-graph objects/info/commit-graphs objects/pack/multi-pack-index AUTO_MERGE SQUASH_MSG \
    MERGE_MSG MERGE_MODE MERGE_RR COMMIT_EDITMSG TAG_EDITMSG; do
    gone "$path"
  done
  (cd "$real" && find . -maxdepth 1 \( -name '*_HEAD' -o -name 'BISECT_*' -o -name 'index?*' -o -name 'next-index*' \)) |
    while read -r path; do gone "${path#./}"; done
  (cd "$real" && find . -type f -size -20000) | sed 's|^\./||' | while read -r file; do
    case $file in
      objects/*|refs/*|modules/*|lfs/*|annex/*|packed-refs|HEAD|index|hooks/*|config|config.worktree|shallow|info/exclude|info/attributes|info/sparse-checkout|description) continue ;;
    esac
    if grep -o "$hex" "$real/$file" | grep -v '^0*$' | sort -u | comm -23 - known | grep -q .; then gone "$file"; fi
  done
  if [ -f "$real/shallow" ]; then
    # only where the past itself is cut
    sort -u "$real/shallow" | comm -12 - allowed > shallow-kept
    if [ -s shallow-kept ]; then
      if [ "$(wc -l < shallow-kept)" != "$(wc -l < "$real/shallow")" ]; then
        cp shallow-kept "$real/shallow.memtrial" && mv -f "$real/shallow.memtrial" "$real/shallow" && took 'lines of shallow'
      fi
    else
      gone shallow
    fi
  fi
  if [ -f "$real/config" ]; then
    cp "$real/config" config.new
    # `git config` would follow no include here: it edits this one file
    git config -f config.new --name-only \
      --get-regexp '^(remote\..*\.(url|promisor|partialclonefilter)|extensions\.partialclone|branch\..*\.(remote|merge|description))$' 2>/dev/null |
      sort -u | while IFS= read -r key; do
        case $key in
          remote.*) git config -f config.new --remove-section "${key%.*}" 2>/dev/null && took "${key%.*}" ;;
          *) git config -f config.new --unset-all "$key" && took "setting $key" ;;
        esac
      done
    if ! cmp -s config.new "$real/config"; then
      cp config.new "$real/config.memtrial" && mv -f "$real/config.memtrial" "$real/config" || exit 1
    fi
  fi
  # what is staged, where its blob is no part of the past, goes back to HEAD
  if [ -f "$real/index" ]; then
    cp "$real/index" index.copy
    if GIT_INDEX_FILE=$at/index.copy git ls-files --stage 2>/dev/null | awk '$1 != 160000 { print $2 }' | sort -u |
      grep -v "^$(git hash-object --stdin < /dev/null)\$" | comm -23 - known | grep -q .; then
      GIT_INDEX_FILE=$at/index.new git read-tree "$tip" && cp index.new "$real/index.memtrial" &&
        mv -f "$real/index.memtrial" "$real/index" && took 'what was staged'
    fi
  fi

  # 4. objects: each index before its pack, so that what is left half-way is a pack that git overlooks
  if [ -n "$own" ]; then
    gone objects/info/alternates; gone objects/info/http-alternates
    for index in "$real"/objects/pack/*.idx; do
      if [ -f "$index" ] && [ "${index##*/}" != "pack-$own.idx" ]; then rm -f "$index"; fi
    done
    find "$real/objects/pack" -type f ! -name "pack-$own.*" -exec rm -f {} +
    (cd "$real/objects" && find . -type f -path './[0-9a-f][0-9a-f]/*') | while read -r file; do
      rm -f "$real/objects/$file"
    done
    find "$real/objects" -maxdepth 1 \( -name 'tmp_*' -o -name 'incoming-*' -o -name 'quarantine*' \) -exec rm -rf {} +
    took "$(wc -l < surplus | tr -d ' ') objects"
  else
    for file in "$real"/objects/pack/*; do
      case $file in
        *.promisor|*/tmp_*) rm -f "$file"; took "file objects/pack/${file##*/}" ;;
        *.idx) if [ ! -f "${file%.idx}.pack" ]; then rm -f "$file"; took "file objects/pack/${file##*/}"; fi ;;
      esac
    done
    find "$real/objects" -maxdepth 1 \( -name 'tmp_*' -o -name 'incoming-*' -o -name 'quarantine*' \) -exec rm -rf {} +
  fi
)

number=0
# submodules' own repositories first: each at what is checked out of it
if [ -d "$real/modules" ]; then
  find "$real/modules" -type d -name objects | sed 's|/objects$||' | sort > modules
  while read -r module; do
    [ -f "$module/HEAD" ] || continue
    number=$((number + 1))
    strip_one "$module" "$state/$number" HEAD > said || exit $?
    sed 's/^took.//' said | while read -r line; do took "submodule ${module#"$real"/modules/}: $line"; done
  done < modules
fi
strip_one "$real" "$state/main" "$base"
