//! A copy of the input in a file without a name: it can be read twice, and is gone when the process is.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::super::Args;
use super::super::failure::Failed;

const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that were read and not yet written.
const PIECES_MAX: usize = 4;

pub(super) fn spool(args: &Args) -> Result<File, Failed> {
    let mut spooled =
        tempfile::tempfile().map_err(|error| Failed::internal(format!("make a temporary file: {error}")))?;
    if args.input == "-" {
        copy_standard_input(args, &mut spooled)?;
    } else {
        let open = File::open(&args.input).and_then(|file| {
            let folder = file.metadata()?.is_dir();
            if folder {
                Err(io::Error::other("it is a folder"))
            } else {
                Ok(file)
            }
        });
        let file = open.map_err(|error| Failed::not_found(&args.input, &error.to_string()))?;
        // One byte more than is allowed tells a long input from one that fits.
        let mut bounded = file.take(args.max_input_bytes.saturating_add(1));
        let copied =
            io::copy(&mut bounded, &mut spooled).map_err(|error| Failed::not_found(&args.input, &error.to_string()))?;
        if copied > args.max_input_bytes {
            return Err(Failed::too_large(args.max_input_bytes));
        }
    }
    spooled.rewind().map_err(super::unreadable)?;
    Ok(spooled)
}

/// A read of the standard input cannot be given up, so a thread of its own does it: when the wait is over, the process
/// ends without it.
fn copy_standard_input(args: &Args, spooled: &mut File) -> Result<(), Failed> {
    let (sender, pieces) = mpsc::sync_channel::<io::Result<Vec<u8>>>(PIECES_MAX);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let read = input.read(&mut piece).map(|count| {
                piece.truncate(count);
                piece
            });
            let ended = !matches!(&read, Ok(piece) if !piece.is_empty());
            if sender.send(read).is_err() || ended {
                return;
            }
        }
    });
    let mut total = 0_u64;
    loop {
        let piece = match args.read_timeout_seconds {
            None => pieces.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(seconds) => pieces.recv_timeout(Duration::from_secs(seconds)),
        };
        let piece = match piece {
            Ok(Ok(piece)) => piece,
            Ok(Err(error)) => return Err(Failed::not_found("the standard input", &error.to_string())),
            Err(RecvTimeoutError::Timeout) => {
                return Err(Failed::read_timeout(args.read_timeout_seconds.unwrap_or_default()));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failed::internal("the reader of the standard input ended"));
            }
        };
        if piece.is_empty() {
            return Ok(());
        }
        total += piece.len() as u64;
        if total > args.max_input_bytes {
            return Err(Failed::too_large(args.max_input_bytes));
        }
        spooled.write_all(&piece).map_err(super::unreadable)?;
    }
}
