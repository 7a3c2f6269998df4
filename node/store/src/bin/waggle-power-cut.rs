//! `waggle-power-cut DIRECTORY [--garbage]`: what a loss of power leaves of the store of a killed node. Only with the
//! cargo feature `planted-bugs`; `waggle-chaos` runs it.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (Some(directory), garbage) = (words.first(), words.get(1).is_some_and(|word| word == "--garbage")) else {
        return 2.into();
    };
    let said = match waggle_store::planted::cut_power(Path::new(directory), garbage) {
        Ok(Some(cut)) => format!(
            "{} writes, {} bytes of {} are gone\n",
            cut.writes,
            cut.bytes,
            cut.file.display()
        ),
        Ok(None) => "all was synced\n".to_owned(),
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "{directory}: {problem}");
            return 1.into();
        }
    };
    // Nobody who does not read it misses it.
    let _ = std::io::stdout().write_all(said.as_bytes());
    ExitCode::SUCCESS
}
