//! Figures as they come: JSON lines to standard output, progress and the table to standard error.
#![expect(clippy::print_stdout, reason = "the figures are the output")]

use std::time::Instant;

use serde_json::Value;

pub(crate) struct Report {
    began: Instant,
    figures: Vec<Value>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            figures: Vec::new(),
        }
    }
}

impl Report {
    pub(crate) fn say(&self, text: &str) {
        eprintln!("[{:6.1}s] {text}", self.began.elapsed().as_secs_f64());
    }

    pub(crate) fn add(&mut self, figure: Value) {
        println!("{figure}");
        self.figures.push(figure);
    }

    pub(crate) fn print_table(&self) {
        let of = |name: &'static str| self.figures.iter().filter(move |figure| figure["bench"] == name);
        eprintln!();
        eprintln!(
            "{:12} {:>9} {:>8} {:>9} {:>8} {:>8} {:>8} {:>9} {:>11}",
            "call", "memories", "clients", "calls/s", "p50 ms", "p95 ms", "p99 ms", "CPU ms", "text first"
        );
        for name in ["query_graph", "store_node"] {
            for f in of(name) {
                eprintln!(
                    "{:12} {:>9} {:>8} {:>9} {:>8} {:>8} {:>8} {:>9} {:>11}",
                    name,
                    f["size"].to_string(),
                    f["clients"].to_string(),
                    f["calls_per_s"].to_string(),
                    f["ms_p50"].to_string(),
                    f["ms_p95"].to_string(),
                    f["ms_p99"].to_string(),
                    f["server_cpu_ms_per_call"].to_string(),
                    f["text_first"].to_string(),
                );
            }
        }
        for name in ["idle", "bytes", "restart", "encoder"] {
            for figure in of(name) {
                eprintln!("{figure}");
            }
        }
    }
}
