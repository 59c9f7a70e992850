//! Looking into archives: gzip (`.tar.gz`, `.tgz`, `.crate`), zstd and zip (`.whl`, `.egg`, `.jar`).

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder};

/// How much is unpacked of one archive.
const MOST: u64 = 256 << 20;

/// What an archive holds, unpacked, its members one behind the other with their names; `None` where the bytes are no
/// archive of a known kind. A damaged archive gives what can be had.
pub(super) fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    match bytes {
        [0x1f, 0x8b, ..] => {
            let mut content = Vec::new();
            let _ = MultiGzDecoder::new(bytes).take(MOST).read_to_end(&mut content);
            Some(content)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let mut content = Vec::new();
            let _ = zstd::stream::read::Decoder::new(bytes).map(|it| it.take(MOST).read_to_end(&mut content));
            Some(content)
        }
        [b'P', b'K', 3, 4, ..] => Some(unzip(bytes)),
        _ => None,
    }
}

/// The members of a zip file in their order in the file, by their local headers: 30 bytes, name, extra field, data.
fn unzip(bytes: &[u8]) -> Vec<u8> {
    let mut content: Vec<u8> = Vec::new();
    let mut from = 0;
    while let Some(at) = find(&bytes[from..], b"PK\x03\x04").map(|at| from + at) {
        let word = |offset: usize| {
            let two = bytes.get(at + offset..at + offset + 2)?;
            Some(usize::from(u16::from_le_bytes(two.try_into().ok()?)))
        };
        let (Some(method), Some(name), Some(extra)) = (word(8), word(26), word(28)) else { break };
        let start = at + 30 + name + extra;
        let (Some(title), Some(data)) = (bytes.get(at + 30..at + 30 + name), bytes.get(start..)) else {
            break;
        };
        content.extend_from_slice(title);
        content.push(b'\n');
        let room = MOST.saturating_sub(content.len() as u64);
        from = start;
        if method == 8 {
            // the stream knows its own end, whatever the header says
            let mut member = DeflateDecoder::new(data).take(room);
            let _ = member.read_to_end(&mut content);
            from += usize::try_from(member.into_inner().total_in()).unwrap_or(0);
        } else if method == 0 {
            let next = find(data, b"PK\x03\x04").or_else(|| find(data, b"PK\x01\x02")).unwrap_or(data.len());
            content.extend_from_slice(&data[..next]);
        }
        content.push(b'\n');
        if room == 0 {
            break;
        }
    }
    content
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
