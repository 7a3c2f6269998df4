//! Names that columns hold as numbers, and by which words speakers are known.

use std::collections::HashMap;

use crate::text::{self, Context, Limits};

use super::interner::Interner;

/// Names that columns hold as numbers.
pub(super) struct Names {
    pub(super) namespaces: Interner,
    pub(super) projects: Interner,
    pub(super) sessions: Interner,
    pub(super) agents: Interner,
    pub(super) speakers: Interner,
    pub(super) tags: Interner,
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            namespaces: Interner::new(),
            projects: Interner::new(),
            sessions: Interner::new(),
            agents: Interner::new(),
            speakers: Interner::new(),
            tags: Interner::new(),
        }
    }

    pub(super) fn resident_bytes(&self) -> usize {
        [
            &self.namespaces,
            &self.projects,
            &self.sessions,
            &self.agents,
            &self.speakers,
            &self.tags,
        ]
        .iter()
        .map(|names| names.resident_bytes())
        .sum()
    }
}

/// By which words the speakers are known.
#[derive(Default)]
pub(super) struct Speakers {
    by_word: HashMap<String, Vec<u32>>,
    /// Living documents of each speaker.
    counts: Vec<u32>,
}

impl Speakers {
    pub(super) fn add(&mut self, speaker: u32, name: &str) {
        if speaker == 0 {
            return;
        }
        let at = speaker as usize;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        if self.counts[at] == 1 {
            text::analyze(name, &Context::query(), &Limits::QUERY, &mut |term, form| {
                if form.is_word() && term.len() > 1 {
                    let known = self.by_word.entry(term.to_owned()).or_default();
                    if !known.contains(&speaker) {
                        known.push(speaker);
                    }
                }
            });
        }
    }

    pub(super) fn remove(&mut self, speaker: u32) {
        if let Some(count) = self.counts.get_mut(speaker as usize) {
            *count = count.saturating_sub(1);
        }
    }

    /// The one speaker whom these terms name; None if they name nobody, or several.
    pub(super) fn named<'a>(&self, terms: impl Iterator<Item = &'a str>) -> Option<u32> {
        let mut named: Option<u32> = None;
        for term in terms {
            for speaker in self.by_word.get(term).into_iter().flatten() {
                let alive = self.counts.get(*speaker as usize).is_some_and(|count| *count > 0);
                match named {
                    _ if !alive => {}
                    None => named = Some(*speaker),
                    Some(other) if other != *speaker => return None,
                    Some(_) => {}
                }
            }
        }
        named
    }
}
