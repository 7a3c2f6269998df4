//! Measures the encoder: one JSON line per kernel and text length.
#![expect(clippy::print_stdout, reason = "the measurement is the output")]

use std::error::Error;
use std::time::{Duration, Instant};

use waggle_recall::encoder::{Encoder, Kernel, KernelChoice};

/// 12 tokens with the model's own marks.
const QUERY: &str = "when did we move the weekly planning call to four";
/// 40 tokens.
const TURN: &str = "We moved the weekly planning call to Thursday at four, because Ines has to pick up her daughter on \
                    Wednesdays and the people in Lyon, all of them, cannot join before half past";
const MEASURE: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().nth(1);
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
        if only.as_deref().is_some_and(|only| only != kernel.as_str()) {
            continue;
        }
        let before = resident_mb();
        let begun = now();
        let encoder = Encoder::embedded_with(KernelChoice::Only(kernel))?;
        let load_ms = begun.elapsed().as_secs_f64() * 1e3;
        let loaded = resident_mb();
        for text in [QUERY, TURN] {
            measure(&encoder, text, load_ms, [before, loaded]);
        }
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a stopwatch is what a benchmark is")]
fn now() -> Instant {
    Instant::now()
}

fn measure(encoder: &Encoder, text: &str, load_ms: f64, [before, loaded]: [f64; 2]) {
    let tokens = encoder.embed(text).tokens;
    let begun = now();
    let cpu_begun = cpu_seconds();
    let mut texts = 0u32;
    let mut best = f64::MAX;
    while begun.elapsed() < MEASURE {
        let one = now();
        std::hint::black_box(encoder.embed(std::hint::black_box(text)));
        best = best.min(one.elapsed().as_secs_f64());
        texts += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu_begun;
    let line = serde_json::json!({
        "kernel": encoder.kernel().as_str(),
        "tokens": tokens,
        "ms_per_text": rounded(seconds * 1e3 / f64::from(texts)),
        "cpu_ms_per_text": rounded(cpu * 1e3 / f64::from(texts)),
        "ms_best": rounded(best * 1e3),
        "texts_per_s": rounded(f64::from(texts) / seconds),
        "load_ms": rounded(load_ms),
        "resident_mb_before": before,
        "resident_mb_loaded": loaded,
        "resident_mb": resident_mb(),
    });
    println!("{line}");
}

fn rounded(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}

/// Time on a processor, which other work on the machine does not stretch much; zero where the system does not tell.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
    nanos.unwrap_or(0.0) / 1e9
}

/// Zero where the system does not tell.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes.and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
