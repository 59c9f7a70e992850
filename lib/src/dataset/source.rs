//! Opens a file of rows: what it is is told from its first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use super::error::DatasetError;

/// An opened file of rows.
pub(super) enum Source {
    /// A parquet file.
    Parquet(File),
    /// JSON or JSONL text, decompressed.
    Text(Box<dyn BufRead>),
}

/// Opens a file and looks at its first bytes.
pub(super) fn open(path: &Path) -> Result<Source, DatasetError> {
    let read_error = |cause| DatasetError::Read { path: path.to_owned(), rows: 0, cause };
    let mut file = File::open(path).map_err(read_error)?;
    if file.metadata().map_err(read_error)?.is_dir() {
        return Err(DatasetError::Folder { path: path.to_owned() });
    }
    let mut magic = Vec::new();
    (&mut file).take(4).read_to_end(&mut magic).map_err(read_error)?;
    if magic.is_empty() {
        return Err(DatasetError::Empty { path: path.to_owned() });
    }
    file.rewind().map_err(read_error)?;
    text_or_parquet(file, &magic).map_err(read_error)
}

fn text_or_parquet(file: File, magic: &[u8]) -> io::Result<Source> {
    Ok(match magic {
        b"PAR1" => Source::Parquet(file),
        [0x1F, 0x8B, ..] => {
            let decoder = flate2::bufread::MultiGzDecoder::new(BufReader::new(file));
            Source::Text(Box::new(BufReader::with_capacity(1 << 16, decoder)))
        }
        [0x28, 0xB5, 0x2F, 0xFD] => {
            let decoder = zstd::stream::read::Decoder::new(file)?;
            Source::Text(Box::new(BufReader::with_capacity(1 << 16, decoder)))
        }
        _ => Source::Text(Box::new(BufReader::with_capacity(1 << 16, file))),
    })
}
