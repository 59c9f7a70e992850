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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    /// A member of a zip file: with `streamed`, the header states no sizes and they follow the data.
    fn member(name: &str, text: &[u8], deflate: bool, streamed: bool) -> Vec<u8> {
        let mut data = text.to_vec();
        if deflate {
            let mut writer = DeflateEncoder::new(Vec::new(), Compression::default());
            writer.write_all(text).unwrap();
            data = writer.finish().unwrap();
        }
        let length = |bytes: &[u8]| if streamed { 0 } else { u32::try_from(bytes.len()).unwrap() };
        let mut bytes = b"PK\x03\x04\x14\0".to_vec();
        bytes.extend_from_slice(&[if streamed { 8 } else { 0 }, 0, if deflate { 8 } else { 0 }, 0]);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&length(&data).to_le_bytes());
        bytes.extend_from_slice(&length(text).to_le_bytes());
        bytes.extend_from_slice(&u16::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&[2, 0]);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b"xx");
        bytes.extend_from_slice(&data);
        if streamed {
            bytes.extend_from_slice(b"PK\x07\x08");
            bytes.extend_from_slice(&[0; 12]);
        }
        bytes
    }

    #[test]
    fn unpacks_gzip_with_all_its_parts_and_zstd() {
        let both = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(unpack(&both).as_deref(), Some(b"one two".as_slice()));
        let packed = zstd::stream::encode_all(b"three".as_slice(), 0).unwrap();
        assert_eq!(unpack(&packed).as_deref(), Some(b"three".as_slice()));
        assert_eq!(unpack(b"three"), None);
        assert_eq!(unpack(b""), None);
    }

    #[test]
    fn unpacks_each_member_of_a_zip_file() {
        let zip = [
            member("a.py", b"first first first", true, false),
            member("b.py", b"second", false, false),
            member("c.py", b"third third third", true, true),
            member("d.py", b"fourth", true, false),
            b"PK\x01\x02 the directory".to_vec(),
        ];
        let said = unpack(&zip.concat()).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert_eq!(said, "a.py\nfirst first first\nb.py\nsecond\nc.py\nthird third third\nd.py\nfourth\n");
    }

    #[test]
    fn a_damaged_archive_gives_what_can_be_had() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let packed = gzip(&text);
        let some = unpack(&packed[..packed.len() / 2]).unwrap();
        assert!(!some.is_empty() && text.starts_with(&some), "{}", some.len());
        let zip = member("a.py", b"first", false, false);
        assert_eq!(unpack(&zip[..zip.len() - 2]).as_deref(), Some(b"a.py\nfir\n".as_slice()));
        assert_eq!(unpack(&zip[..20]).as_deref(), Some(b"".as_slice()));
    }
}
