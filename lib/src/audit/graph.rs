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

#[cfg(test)]
mod tests {
    use super::*;

    /// An index file with these chunks, as git lays it out: header, table with a last entry for the end, chunks.
    fn file(header: &[u8], chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut bytes = header.to_vec();
        let mut offset = header.len() as u64 + 12 * (chunks.len() as u64 + 1);
        for (id, chunk) in chunks {
            bytes.extend_from_slice(*id);
            bytes.extend_from_slice(&offset.to_be_bytes());
            offset += chunk.len() as u64;
        }
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&offset.to_be_bytes());
        chunks.iter().for_each(|(_, chunk)| bytes.extend_from_slice(chunk));
        bytes
    }

    #[test]
    fn reads_the_names_of_both_kinds_and_both_lengths() {
        let fanout = (b"OIDF", vec![0; 1024]);
        let two = [[0xab; 20], [0xcd; 20]].concat();
        let commits = file(
            b"CGPH\x01\x01\x03\0",
            &[(fanout.0, fanout.1.clone()), (b"OIDL", two), (b"CDAT", vec![7; 72])],
        );
        assert_eq!(names(&commits), Some(vec!["ab".repeat(20), "cd".repeat(20)]));
        let packs = file(b"MIDX\x01\x02\x02\0\0\0\0\x01", &[fanout, (b"OIDL", vec![0x0f; 32])]);
        assert_eq!(names(&packs), Some(vec!["0f".repeat(32)]));
    }

    #[test]
    fn what_is_neither_or_damaged_gives_nothing() {
        let good = file(b"CGPH\x01\x01\x01\0", &[(b"OIDL", vec![1; 20])]);
        assert!(names(&good).is_some());
        for end in 0..good.len() {
            assert_eq!(names(&good[..end]), None, "cut after {end} bytes");
        }
        assert_eq!(names(b"PACK\0\0\0\x02\0\0\0\0"), None);
        assert_eq!(names(&file(b"CGPH\x01\x03\x01\0", &[(b"OIDL", vec![1; 20])])), None, "another hash");
        assert_eq!(names(&file(b"CGPH\x01\x01\x01\0", &[(b"CDAT", vec![1; 20])])), None, "no names");
        // an end before the start
        let mut turned = good.clone();
        turned[24..32].fill(0);
        assert_eq!(names(&turned), None);
    }
}
