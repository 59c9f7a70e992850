//! Writes made-up test logs into a folder a family, one file each, for a fuzzer to begin with.
//!
//! Usage: `log_corpus FOLDER [LOGS_A_PARSER]`

use std::collections::BTreeSet;
use std::path::Path;

use memtrial_testkit::logs::{Generator, seeds};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().ok_or_else(|| anyhow::anyhow!("usage: log_corpus FOLDER [LOGS_A_PARSER]"))?;
    let count = words.next().map_or(Ok(100), |word| word.parse())?;
    let parsers: BTreeSet<_> = seeds()
        .into_iter()
        .flat_map(|seed| seed.parsers.into_iter().map(move |name| (seed.family, name)))
        .collect();
    for (family, parser) in parsers {
        let folder = Path::new(&folder).join(family);
        fs_err::create_dir_all(&folder)?;
        let mut generator = Generator::new(family, parser, 1);
        let seeds = generator.seeds().to_vec();
        let made = std::iter::from_fn(move || Some(generator.log()));
        for (at, log) in seeds.into_iter().chain(made).take(count).enumerate() {
            fs_err::write(folder.join(format!("{parser}-{at}")), log)?;
        }
    }
    Ok(())
}
