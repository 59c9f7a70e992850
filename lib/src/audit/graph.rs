//! git's index files that name commits by themselves: commit-graph and multi-pack-index.

/// The object names in a commit-graph (`CGPH`) or a multi-pack-index (`MIDX`), in hex; `None` where the bytes are
/// neither. Format: git's `gitformat-commit-graph` and `gitformat-pack`: a header, a table of chunks (four letters, an
/// offset of eight bytes), among them `OIDL`, the sorted names.
pub(super) fn names(bytes: &[u8]) -> Option<Vec<String>> {
    let header = match bytes.get(..4)? {
        b"CGPH" => 8,
        b"MIDX" => 12,
        _ => return None,
    };
    let length = match bytes.get(5)? {
        1 => 20,
        2 => 32,
        _ => return None,
    };
    let chunks = usize::from(*bytes.get(6)?);
    let entry = |number: usize| {
        let at = header + 12 * number;
        let offset = bytes.get(at + 4..at + 12)?.try_into().ok().map(u64::from_be_bytes)?;
        Some((bytes.get(at..at + 4)?, usize::try_from(offset).ok()?))
    };
    let list = (0..chunks).find(|&number| entry(number).is_some_and(|(id, _)| id == b"OIDL"))?;
    let (start, end) = (entry(list)?.1, entry(list + 1)?.1);
    let name = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(bytes.get(start..end)?.chunks_exact(length).map(name).collect())
}
